package haggar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"dalmatiner/internal/model/metric"
)

// Defaults of the original.
const (
	defaultAgents   = 100
	defaultMetrics  = 10_000
	defaultInterval = 10 * time.Second
	defaultAddr     = "localhost:2003"
	DefaultBucket   = "haggar"
)

// fastHistory is how far in the past a fast run of unknown length starts.
const fastHistory = 30 * 24 * time.Hour

// maxMetrics bounds what an agent holds encoded: half a gigabyte.
const maxMetrics = 10_000_000

// Config says what a run sends, where and how. Slots are seconds: the bucket
// has a resolution of 1 s.
type Config struct {
	Data

	Addr    string // of the store's TCP port
	Bucket  string // PublishedBucket where the preset is Published
	Agents  int    // each is one connection at a time
	Metrics int    // of each agent

	FlushInterval time.Duration // from one flush of an agent to its next
	SpawnInterval time.Duration // from one agent's start to the next one's
	Jitter        time.Duration // of the spawn interval, up or down; at most that

	CacheConnections bool // keep the connection from flush to flush
	TinyWrites       bool // three writes per point, as the original
	Batch            bool // batch messages instead of one entry per point
	Shuffle          bool // an agent's metrics in another order in every row
	Ack              bool // the acknowledged stream

	// Fast sends without waiting, all agents at once, in synthetic time.
	Fast bool
	// Start is the time of the first row; zero is the present, or for a fast
	// run Steps before the present (30 days where Steps is 0). Unless it is
	// zero or the run is fast, a flush takes the present.
	Start time.Time
	// Step is the synthetic time from row to row, whole seconds; 0 is one.
	Step time.Duration
	// Steps ends an agent after that many rows; 0 is unbounded.
	Steps int64
	// Duration ends the run; 0 is unbounded. With the preset it counts from the
	// end of the backfill.
	Duration time.Duration

	Backfill time.Duration // Published: how much of the past is written first
	NoLive   bool          // Published: end after the backfill

	Journal  io.Writer        // gets what was sent, see ReadJournal; or nil
	Progress io.Writer        // gets a line a second; or nil
	Log      *slog.Logger     // gets failures; or nil
	Toggle   <-chan os.Signal // each stops or resumes the start of agents; or nil

	// Dial connects to the store; nil is TCP to Addr.
	Dial func(context.Context) (net.Conn, error)
	// Now tells the time; nil is time.Now.
	Now func() time.Time
}

// prepare checks the configuration and fills in what was left out.
func (c *Config) prepare() error {
	if c.Preset == Published {
		// One agent sends all of it.
		c.Agents, c.Metrics, c.Batch, c.CacheConnections = 1, len(publishedSeries()), true, true
		c.Bucket, c.FlushInterval = PublishedBucket, time.Second
	}
	if err := c.check(); err != nil {
		return err
	}
	if c.Step == 0 {
		c.Step = time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Dial == nil {
		d := net.Dialer{Timeout: dialTimeout}
		c.Dial = func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", c.Addr) }
	}
	if c.Fast && c.Start.IsZero() {
		back := fastHistory
		if c.Steps > 0 {
			back = time.Duration(c.Steps) * c.Step
		}
		c.Start = c.Now().Add(-back)
	}
	return nil
}

func (c *Config) check() error {
	switch {
	case c.Preset != "" && c.Preset != Published:
		return fmt.Errorf("preset %q is unknown, there is %q", c.Preset, Published)
	case c.Agents < 1:
		return fmt.Errorf("agents is %d, at least 1 is needed", c.Agents)
	case c.Metrics < 1 || c.Metrics > maxMetrics:
		return fmt.Errorf("metrics is %d, it goes from 1 to %d", c.Metrics, maxMetrics)
	case c.Bucket == "" || len(c.Bucket) > metric.MaxBucket:
		return fmt.Errorf("prefix, the bucket, has %d bytes, it has 1 to %d", len(c.Bucket),
			metric.MaxBucket)
	case !c.Fast && c.FlushInterval <= 0:
		return fmt.Errorf("flush-interval is %v, it must be above 0: for no waiting use -fast",
			c.FlushInterval)
	case c.Jitter < 0 || c.Jitter > c.SpawnInterval:
		return fmt.Errorf("jitter is %v, it goes from 0 to the spawn-interval, %v", c.Jitter,
			c.SpawnInterval)
	case c.Step < 0 || c.Step%time.Second != 0:
		return fmt.Errorf("step is %v, it must be whole seconds: the bucket has slots of 1 s", c.Step)
	case c.Steps < 0:
		return fmt.Errorf("steps is %d, it must not be below 0", c.Steps)
	case c.Duration < 0 || c.Backfill < 0:
		return errors.New("duration and backfill must not be below 0")
	case c.Preset == Published && (c.Fast || !c.Start.IsZero() || c.Steps > 0):
		return errors.New("the preset has its own time: -fast, -start and -steps do not go with it")
	case c.TinyWrites && (c.Batch || c.Preset == Published):
		return errors.New("tiny-writes sends entries: it does not go with -batch and -preset")
	case c.Shuffle && (c.TinyWrites || c.Preset == Published):
		return errors.New("shuffle does not go with -tiny-writes and -preset")
	}
	return nil
}

package admin

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"dalmatiner/internal/query/calendar"
)

// FlushCommand flushes the node.
type FlushCommand struct {
	Target `embed:""`
	Output `embed:""`
	Merge  bool `help:"Then merge segments until nothing is left to merge; the node does it by itself in the background."`
}

// flushed is what the command prints.
type flushed struct {
	Flushed
	Merge *Merged `json:"merge,omitempty"`
}

// Help is shown below the usage of the command.
func (c *FlushCommand) Help() string {
	return `With --merge, flushes become windows: of 2 hours at a resolution of 1 s, then of
a day. A window is written an hour after its end, when its bucket has points
behind it. A flush goes away when all but 5 % of it lies in such windows, and
keeps the flushes behind it until then.

Examples:
  ddb admin flush            everything in memory is in a segment
  ddb admin flush --merge    the space of deleted series comes back`
}

// Run flushes and prints what was written.
func (c *FlushCommand) Run(env *Env) error {
	f, err := c.client(env).Flush(env.Context)
	if err != nil {
		return err
	}
	out := flushed{Flushed: f}
	if c.Merge {
		m, err := c.client(env).Merge(env.Context)
		if err != nil {
			return err
		}
		out.Merge = &m
	}
	return c.Write(env, out, func(w io.Writer) error { return writeFlushed(w, &out) })
}

func writeFlushed(w io.Writer, f *flushed) error {
	text := "Nothing to flush.\n"
	if f.Segment != "" {
		text = fmt.Sprintf("Flushed %d points of %d series into %s: %d bytes in %s ms.\n",
			f.Points, f.Series, f.Segment, f.Bytes, milliseconds(time.Duration(f.TookUS)*time.Microsecond))
	}
	switch m := f.Merge; {
	case m == nil:
	case m.Removed+m.Windows+m.Overlays == 0:
		text += "Nothing is left to merge: the node does it by itself, and flushes wait until their " +
			"windows have closed, see ddb admin flush --help.\n"
	default:
		text += fmt.Sprintf("Merged %d segments into %d windows and %d overlays: %d bytes in %s ms.\n",
			m.Removed, m.Windows, m.Overlays, m.Bytes,
			milliseconds(time.Duration(m.TookUS)*time.Microsecond))
	}
	_, err := io.WriteString(w, text)
	return err
}

// AccountCommand shows the ledger.
type AccountCommand struct {
	Target  `embed:""`
	Output  `embed:""`
	Bucket  string `help:"Show only this bucket." placeholder:"NAME"`
	Minutes int    `help:"Show each of the last N minutes of arrival instead of the total; needs --bucket." placeholder:"N"`
}

// Help is shown below the usage of the command.
func (c *AccountCommand) Help() string {
	return `Every received point is counted once:
  accepted     stored in a slot that was empty
  duplicate    the slot held the same value
  conflicting  stored over a different value
  late         stored behind the blocks in memory
  unset        an explicit "no value", which never erases
  refused      not stored, for the reason given

Examples:
  ddb admin account
  ddb admin account --bucket metrics --minutes 10`
}

// Run prints the account, and fails when its sum does not hold.
func (c *AccountCommand) Run(env *Env) error {
	if c.Minutes < 0 || c.Minutes > 0 && c.Bucket == "" {
		return errors.New("--minutes needs --bucket and a number from 1 up")
	}
	bucket := ""
	if c.Bucket != "" {
		name, err := canonical(c.Bucket)
		if err != nil {
			return fmt.Errorf("bucket %s: %w", c.Bucket, err)
		}
		bucket = name
	}
	a, err := c.client(env).Account(env.Context, bucket, c.Minutes)
	if err != nil {
		return err
	}
	all := slices.Concat(a.Rows, a.Events.Rows)
	wrong := 0
	for i := range all {
		if all[i].Sum() != all[i].Received {
			wrong++
		}
	}
	err = c.Write(env, a, func(w io.Writer) error {
		_, err := WriteAccount(w, a)
		return err
	})
	if err == nil && wrong > 0 {
		return fmt.Errorf("the account does not add up in %d of %d lines", wrong, len(all))
	}
	return err
}

// StatsCommand prints the node's figures.
type StatsCommand struct {
	Target `embed:""`
	Output `embed:""`
}

// Run prints one line per figure.
func (c *StatsCommand) Run(env *Env) error {
	stats, err := c.client(env).Stats(env.Context)
	if err != nil {
		return err
	}
	return c.Write(env, stats, func(w io.Writer) error { return writeStats(w, stats) })
}

// QueryCommand runs a query: ddb query.
type QueryCommand struct {
	Target  `embed:""`
	JSON    bool   `help:"Print the node's JSON as it is."`
	Damaged bool   `help:"Show older values in place of those that damage took: they may have been overwritten."`
	TZ      string `name:"tz" placeholder:"ZONE" help:"Time zone of dates and of the calendar, such as Europe/Zagreb."`
	Query   string `arg:"" help:"The query, quoted for the shell."`
}

// Help is shown below the usage of the command.
func (c *QueryCommand) Help() string {
	return `Examples:
  ddb query "SELECT 'cpu'.'user' BUCKET 'metrics' LAST 60s"
  ddb query "SELECT max(cpu.user BUCKET metrics, 1m) LAST 1h"
  ddb query "SELECT avg(sum(*.mps BUCKET dalmatinerdb), 5m) AS 'metrics/s' LAST 1h"
  ddb query --tz Europe/Zagreb "SELECT max(cpu.user BUCKET metrics, 1h) LAST 1mo"

Times are UTC, or with --tz those of the zone. A gap is "-". Points are those that were read for a
series, coverage is their share of those that the interval of the sender promises. Where a sender is
slower than its bucket, the table says how far apart its points are; of a series that has ended it
says when its last point was. Slots that damage took are named as unknown, and their values have a
"?".`
}

// Run prints the results as tables, or the JSON.
func (c *QueryCommand) Run(env *Env) error {
	client := c.client(env)
	client.Damaged, client.Zone = c.Damaged, c.TZ
	var zone *time.Location
	if c.TZ != "" {
		var err error
		if zone, err = calendar.Zone(c.TZ); err != nil {
			return err
		}
	}
	if c.JSON {
		return client.CopyQuery(env.Context, env.Out, c.Query)
	}
	begin := time.Now()
	r, err := client.Query(env.Context, c.Query)
	if err != nil {
		return err
	}
	r.Zone = zone
	return WriteResult(env.Out, r, time.Since(begin))
}

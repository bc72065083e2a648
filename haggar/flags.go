package haggar

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"

	"dalmatiner/client/usage"
)

const explanation = `haggar sends metrics to a store, to load it or to fill it.

  100 agents of 2,000 metrics each, one flush a second, in the present:
    haggar -carbon localhost:5555 -agents 100 -metrics 2000 -flush-interval 1s -spawn-interval 1s -jitter 1s

  10,000 series of the published mix, an hour of them as fast as the store takes it:
    haggar -carbon localhost:5555 -agents 8 -metrics 1250 -fast -batch -walk -steps 3600

  the series of the published queries, the last day and then the present:
    haggar -carbon localhost:5555 -preset published -backfill 1d

Progress goes to standard error, a summary in JSON to standard output. The exit status is 1 when something failed
on the way, and 2 when the command line makes no sense.

`

// ParseFlags reads the command line of the haggar program, without the name of
// the program, and checks it. journal is the file to write the journal to, or
// empty. After flag.ErrHelp or any other error the reason stands in out.
func ParseFlags(args []string, out io.Writer) (c Config, journal string, err error) {
	f := flag.NewFlagSet("haggar", flag.ContinueOnError)
	f.SetOutput(io.Discard) // it would print all of the help ahead of an error
	var start, protocol string
	f.StringVar(&c.Addr, "carbon", defaultAddr, "host:`port` of the store (ddb listens on 5555)")
	f.StringVar(&c.Bucket, "prefix", DefaultBucket, "`bucket` to write to, with a resolution of 1 s")
	f.IntVar(&c.Agents, "agents", defaultAgents, "number of agents, each a connection")
	f.IntVar(&c.Metrics, "metrics", defaultMetrics, "metrics per agent")
	f.Var(durationFlag(&c.FlushInterval, defaultInterval), "flush-interval",
		"`time` between an agent's flushes")
	f.Var(durationFlag(&c.SpawnInterval, defaultInterval), "spawn-interval",
		"`time` between the starts of agents")
	f.Var(durationFlag(&c.Jitter, defaultInterval), "jitter",
		"most `time` a start is moved, up to the spawn-interval")
	f.BoolVar(&c.CacheConnections, "cache_connections", false,
		"keep connections from flush to flush (true with -fast)")
	f.BoolVar(&c.TinyWrites, "tiny-writes", false, "three writes per point, as the original")
	f.BoolVar(&c.Batch, "batch", false, "batch messages instead of one entry per point")
	f.BoolVar(&c.Shuffle, "shuffle", false, "the metrics of an agent in another order in every flush")
	f.BoolVar(&c.Ack, "ack", false, "the acknowledged stream (not known to the original store)")
	f.StringVar(&protocol, "protocol", "ddb", "`protocol` to speak; there is one")
	f.Uint64Var(&c.Seed, "seed", 0, "`number` that chooses the values")
	f.BoolVar(&c.Walk, "walk", false, "the published mix of series instead of uniform 0 to 999")
	f.BoolVar(&c.Fast, "fast", false, "all agents at once, no waiting, in synthetic time")
	f.StringVar(&start, "start", "",
		"synthetic `time` of the first row: unix seconds or RFC 3339 (default: with -fast -steps "+
			"before now, else 30 days ago)")
	f.Var(durationFlag(&c.Step, time.Second), "step", "synthetic `time` from row to row")
	f.Int64Var(&c.Steps, "steps", 0, "end an agent after this `number` of rows (default unbounded)")
	f.Var(durationFlag(&c.Duration, 0), "duration",
		"end after this `time` (default unbounded; 0 with -preset: end after the backfill)")
	f.StringVar(&c.Preset, "preset", "", "`name` of a data set: published")
	f.Var(durationFlag(&c.Backfill, 0), "backfill",
		"with -preset: `time` of the past to write first, such as 1d")
	f.StringVar(&journal, "journal", "", "`file` for a journal of what was sent")
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, explanation)
		f.SetOutput(out)
		f.PrintDefaults()
		return c, "", err
	case err != nil:
		complain(out, err)
		return c, "", err
	}
	set := map[string]bool{}
	f.Visit(func(fl *flag.Flag) { set[fl.Name] = true })
	if err := c.interpret(f.Args(), start, protocol, set); err != nil {
		complain(out, err)
		return c, "", err
	}
	return c, journal, nil
}

func complain(out io.Writer, err error) {
	usage.Lines(out, "haggar", err, "haggar [-carbon host:port] [flags]", "haggar -h")
}

// interpret does what the flags say beyond their values.
func (c *Config) interpret(rest []string, start, protocol string, set map[string]bool) error {
	if len(rest) > 0 {
		return fmt.Errorf("%q is no flag", rest[0])
	}
	if protocol != "ddb" {
		return fmt.Errorf("protocol %q is unknown, there is ddb", protocol)
	}
	if set["backfill"] && c.Preset == "" {
		return errors.New("backfill needs -preset")
	}
	if set["duration"] && c.Duration == 0 {
		if c.Preset == "" {
			return errors.New("duration is 0, which sends nothing")
		}
		c.NoLive = true
	}
	if set["prefix"] && c.Preset != "" {
		return fmt.Errorf("prefix does not go with -preset, which writes to bucket %s", PublishedBucket)
	}
	if c.Fast && !set["cache_connections"] {
		c.CacheConnections = true
	}
	if set["step"] && start == "" && !c.Fast {
		return errors.New("step needs -start or -fast")
	}
	if start != "" {
		t, err := parseTime(start)
		if err != nil {
			return err
		}
		c.Start = t
	}
	checked := *c
	return checked.prepare()
}

func parseTime(s string) (time.Time, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.Unix(n, 0), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fmt.Errorf("start %q is neither unix seconds nor RFC 3339, as 2026-11-20T12:00:00Z", s)
	}
	return t, nil
}

// duration is a flag in Go's notation, or a number of days as 1d.
type duration struct {
	d *time.Duration
}

func durationFlag(d *time.Duration, def time.Duration) duration {
	*d = def
	return duration{d}
}

func (d duration) String() string {
	if d.d == nil {
		return ""
	}
	return d.d.String()
}

func (d duration) Set(s string) error {
	if n := len(s); n > 1 && s[n-1] == 'd' {
		days, err := strconv.ParseUint(s[:n-1], 10, 16)
		if err != nil {
			return fmt.Errorf("%q is no number of days", s)
		}
		*d.d = time.Duration(days) * 24 * time.Hour
		return nil
	}
	v, err := time.ParseDuration(s)
	*d.d = v
	return err
}

// Package load sends points to servers that are measured and tells what they
// cost; and it asks queries whose answers it can compute again.
package load

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"dalmatiner/bench/measure"
	"dalmatiner/bench/server"
	"dalmatiner/haggar"
)

// Connections is how many senders a load has at once.
const Connections = 8

// GroupWidth is the store's number of series per column group. Connections of
// a load in synthetic time drift apart by more rows than a group keeps open:
// they get whole groups, so that none is shared and no point comes late.
const GroupWidth = 256

// Sample is one load of one server.
type Sample struct {
	Points    int64
	Warm      int64       // points that went ahead
	Seconds   float64     // until the server had read everything
	CPU       measure.CPU // with the flush behind the load
	Now, Peak int64       // resident bytes
	GC        float64     // share of CPU
	Merge     measure.CPU // of merging what the load left, apart from CPU
	Head      string      // what of the memory was the head's before the flush
}

// Nanos returns the processor time of a point in nanoseconds.
func (s *Sample) Nanos() float64 { return s.Per(s.CPU.Sum()) }

// Per returns nanoseconds per point.
func (s *Sample) Per(d time.Duration) float64 { return float64(d) / float64(s.Points) }

// PerAll is Per for what all points caused, those that went ahead included.
func (s *Sample) PerAll(d time.Duration) float64 { return float64(d) / float64(s.Points+s.Warm) }

// Pair is both servers under the same bytes, one after the other.
type Pair struct{ Discard, DDB Sample }

// Above returns what the store takes beyond the discard server, in nanoseconds
// of a point.
func (p *Pair) Above() float64 { return p.DDB.Nanos() - p.Discard.Nanos() }

// Uniform is a load of uniform values that ends at the present.
func Uniform(agents, metrics int, rows int64) haggar.Config {
	start := time.Now().Add(-time.Duration(rows+warmRows+60) * time.Second).Truncate(time.Second)
	return haggar.Config{
		Bucket: haggar.DefaultBucket, Agents: agents, Metrics: metrics, Steps: rows,
		Fast: true, Batch: true, CacheConnections: true, Start: start,
	}
}

// Send runs a load against a server; it is an error when any of it failed.
func Send(ctx context.Context, env *server.Env, s *server.Server,
	c haggar.Config) (haggar.Summary, error) {
	c.Addr = s.TCP
	c.Log = slog.New(slog.NewTextHandler(env.Log, nil))
	sum, err := haggar.Run(ctx, c)
	switch {
	case err != nil:
		return sum, err
	case ctx.Err() != nil:
		return sum, ctx.Err()
	case sum.Errors > 0:
		return sum, fmt.Errorf("haggar met %d errors: %s", sum.Errors, s.LastLines())
	}
	return sum, nil
}

// warmRows go ahead of a measured load, and are flushed: the series are known then,
// to the catalogue as well, and no point of theirs is encoded later.
const warmRows = 300

// sample measures a server under a load. The store is flushed at the end: sealing
// and writing are part of what a point costs. Merging is measured by itself.
func sample(ctx context.Context, env *server.Env, s *server.Server,
	c haggar.Config) (Sample, error) {
	first := c
	first.Steps = min(warmRows, c.Steps)
	if _, err := Send(ctx, env, s, first); err != nil {
		return Sample{}, err
	}
	if s.Data != "" {
		if _, err := s.Client().Flush(ctx); err != nil {
			return Sample{}, err
		}
	}
	before, err := s.CPU()
	if err != nil {
		return Sample{}, err
	}
	c.Start = c.Start.Add(time.Duration(first.Steps) * time.Second)
	sum, err := Send(ctx, env, s, c)
	if err != nil {
		return Sample{}, err
	}
	out := Sample{
		Points:  sum.Points,
		Warm:    first.Steps * int64(c.Agents*c.Metrics),
		Seconds: sum.Seconds,
	}
	if s.Data != "" {
		if out.Head, err = s.HeadNote(ctx); err != nil {
			return Sample{}, err
		}
		if _, err := s.Client().Flush(ctx); err != nil {
			return Sample{}, err
		}
	}
	after, err := s.CPU()
	if err != nil {
		return Sample{}, err
	}
	out.CPU = after.Sub(before)
	if s.Data != "" {
		if err := s.Accepted(ctx, c.Bucket, out.Points+out.Warm); err != nil {
			return Sample{}, err
		}
		if out.Merge, err = merge(ctx, s); err != nil {
			return Sample{}, err
		}
		out.GC = s.Collecting().Seconds() / after.Sum().Seconds()
	}
	out.Now, out.Peak, err = s.Memory()
	return out, err
}

// merge merges what is there to merge and returns its processor time.
func merge(ctx context.Context, s *server.Server) (measure.CPU, error) {
	before, err := s.CPU()
	if err != nil {
		return measure.CPU{}, err
	}
	if _, err := s.Client().Merge(ctx); err != nil {
		return measure.CPU{}, err
	}
	after, err := s.CPU()
	return after.Sub(before), err
}

// Pairs loads both servers in turn, each time new ones, count times: what others
// take of the machine meanwhile is in both of a pair.
func Pairs(ctx context.Context, env *server.Env, c haggar.Config, count int) ([]Pair, error) {
	var pairs []Pair
	for i := range count {
		var p Pair
		var err error
		if p.Discard, err = Discard(ctx, env, c); err != nil {
			return nil, err
		}
		data := filepath.Join(env.Dir, "ingest")
		p.DDB, err = On(ctx, env, c, func() (*server.Server, error) {
			return env.Start(data, "merge.background=off")
		}, (*server.Server).Stop)
		if err = errors.Join(err, os.RemoveAll(data)); err != nil {
			return nil, err
		}
		env.Logf("  %d: discard %.1f ns/point, ddb %.1f ns/point, %.1f and %.1f M points/s", i+1,
			p.Discard.Nanos(), p.DDB.Nanos(), p.Discard.Rate(), p.DDB.Rate())
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// Discard loads a new discard server.
func Discard(ctx context.Context, env *server.Env, c haggar.Config) (Sample, error) {
	return On(ctx, env, c, server.StartDiscard, func(s *server.Server) error {
		s.Kill()
		return nil
	})
}

// On loads the server that start starts, and ends it with end.
func On(ctx context.Context, env *server.Env, c haggar.Config, start func() (*server.Server, error),
	end func(*server.Server) error) (Sample, error) {
	s, err := start()
	if err != nil {
		return Sample{}, err
	}
	out, err := sample(ctx, env, s, c)
	if err != nil {
		s.Kill()
		return Sample{}, err
	}
	return out, end(s)
}

// Rate is in million points per second.
func (s *Sample) Rate() float64 { return float64(s.Points) / s.Seconds / 1e6 }

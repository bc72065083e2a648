package rows

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"dalmatiner/bench/load"
	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
	"dalmatiner/haggar"
)

// Budgets in bits per point of everything in the data directory, once merged.
const (
	uniformBudget = 10.5
	mixBudget     = 2.9
)

// usage is what a data directory has in it, in bytes.
type usage struct {
	segments, catalogue, rest int64
	log                       int64 // written again from its start; no part of what is kept
}

func (u *usage) kept() int64 { return u.segments + u.catalogue + u.rest }

// diskUsage sums up the sizes of the files in a data directory.
func diskUsage(dir string) (u usage, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch top, _, _ := strings.Cut(filepath.ToSlash(rel), "/"); top {
		case "flush", "overlay", "window":
			u.segments += info.Size()
		case "catalogue":
			u.catalogue += info.Size()
		case "wal":
			u.log += info.Size()
		default:
			u.rest += info.Size()
		}
		return nil
	})
	return u, err
}

// diskFigure is the size of a merged data directory per point.
func diskFigure(s *server.Server, points int64, entropy, budget float64) (report.Figure, error) {
	u, err := diskUsage(s.Data)
	if err != nil {
		return report.Figure{}, err
	}
	bits := func(n int64) float64 { return 8 * float64(n) / float64(points) }
	return report.Figure{Area: "disk", Unit: "bits/point", Value: bits(u.kept()), Budget: budget,
		Note: fmt.Sprintf(
			"entropy of what was sent %.2f; segments %.3f, catalogue %.3f, rest %.3f; flushed and merged; "+
				"the log, %d MiB, is apart; %d M points",
			entropy, bits(u.segments), bits(u.catalogue), bits(u.rest), u.log>>20, points/1e6)}, nil
}

// diskUniform is two hours of 10 k series of uniform values.
func (b *bench) diskUniform(ctx context.Context) error {
	s, err := b.Start(filepath.Join(b.Dir, "uniform"))
	if err != nil {
		return err
	}
	defer s.Remove()
	c := load.Uniform(load.Connections, 5*load.GroupWidth, smallWindow)
	c.Start = closed(smallWindow)
	sum, err := load.Send(ctx, b.Env, s, c)
	if err != nil {
		return err
	}
	if err := b.mergeAll(ctx, s, c, sum.Points); err != nil {
		return err
	}
	f, err := diskFigure(s, sum.Points, entropyOfUniform(), uniformBudget)
	if err != nil {
		return err
	}
	f.What = "uniform 0…999, 10 k series, 2 h"
	b.table.Add(f)
	return s.Stop()
}

// The windows that the store merges into, in slots.
const (
	smallWindow = load.SmallWindow
	largeWindow = load.LargeWindow
)

// closed returns the start of a window that ended long enough ago to be merged
// once the data has gone on.
func closed(window int64) time.Time {
	ended := time.Now().Unix() - 6*smallWindow
	return time.Unix((ended/window-1)*window, 0)
}

// mergeAll sends one point that lies windows further on, flushes and merges,
// and checks that all points are there.
func (b *bench) mergeAll(ctx context.Context, s *server.Server, c haggar.Config,
	points int64) error {
	last := c
	last.Start = c.Start.Add(time.Duration(c.Steps+4*smallWindow) * time.Second)
	last.Agents, last.Metrics, last.Steps = 1, 1, 1
	if _, err := load.Send(ctx, b.Env, s, last); err != nil {
		return err
	}
	if _, err := s.Client().Flush(ctx); err != nil {
		return err
	}
	if _, err := s.Client().Merge(ctx); err != nil {
		return err
	}
	return s.Accepted(ctx, c.Bucket, points+1)
}

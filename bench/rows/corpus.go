package rows

import (
	"context"
	"fmt"
	"path/filepath"

	"dalmatiner/bench/corpus"
	"dalmatiner/bench/load"
	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
)

// Sizes loads recordings into stores of their own, merges them, and returns
// what a point takes with and without its timestamp: all recordings if no name
// is given. bounds is whether it also tells what general compressors make of
// them.
func Sizes(ctx context.Context, env *server.Env, dir string, names []string,
	bounds bool) ([]report.Figure, error) {
	if len(names) == 0 {
		var err error
		if names, err = corpus.Names(dir); err != nil {
			return nil, err
		}
	}
	var out []report.Figure
	for _, name := range names {
		c, err := corpus.Load(dir, name)
		if err != nil {
			return nil, err
		}
		thinned := load.Ready(c)
		for _, timestamped := range []bool{false, true} {
			f, err := corpusSize(ctx, env, c, timestamped)
			if err != nil {
				return nil, fmt.Errorf("recording %s: %w", name, err)
			}
			if thinned > 0 {
				f.Note += fmt.Sprintf("; %d samples left out, which came in the slot of another", thinned)
			}
			out = append(out, f)
		}
		if bounds {
			for _, program := range [][]string{{"xz", "-9e", "--threads=1"}, {"zstd", "-19"}} {
				n, err := corpus.Compressed(ctx, c, program[0], program[1:]...)
				if err != nil {
					env.Logf("no bound by %s: %v", program[0], err)
					continue
				}
				out = append(out, report.Figure{Area: corpusArea, What: c.Name + ", bound " + program[0],
					Unit: "B/point", Value: float64(n) / float64(c.Points()),
					Note: "names, times with milliseconds and differences of values in columns, compressed as a " +
						"whole"})
			}
		}
	}
	return out, nil
}

// corpus is the space that recordings of real series take.
func (b *bench) corpus(ctx context.Context) error {
	figures, err := Sizes(ctx, b.Env, corpus.Dir, nil, true)
	for _, f := range figures {
		b.table.Add(f)
	}
	return err
}

const corpusArea = "disk, recordings"

// corpusSize loads a corpus into a fresh store and returns its size, merged and
// closed.
func corpusSize(ctx context.Context, env *server.Env, c *corpus.Corpus,
	timestamped bool) (f report.Figure, err error) {
	s, err := env.Start(filepath.Join(env.Dir, "corpus"))
	if err != nil {
		return f, err
	}
	defer s.Remove()
	p := load.Playback{Bucket: "corpus", Timestamped: timestamped}
	points, err := p.Send(ctx, s.TCP, c)
	if err != nil {
		return f, err
	}
	if _, err := s.Client().Flush(ctx); err != nil {
		return f, err
	}
	if _, err := s.Client().Merge(ctx); err != nil {
		return f, err
	}
	if err := s.Accepted(ctx, p.Bucket, points); err != nil {
		return f, err
	}
	if err := p.Check(ctx, s.TCP, c); err != nil {
		return f, err
	}
	segments, err := s.Client().Segments(ctx, p.Bucket)
	if err != nil {
		return f, err
	}
	if err := s.Stop(); err != nil {
		return f, err
	}
	u, err := diskUsage(s.Data)
	if err != nil {
		return f, err
	}
	per := func(n int64) float64 { return float64(n) / float64(points) }
	f = report.Figure{Area: corpusArea, What: c.Name, Unit: "B/point", Value: per(u.kept())}
	if timestamped {
		f.What += ", hpts"
	}
	chunks := int64(0)
	for _, g := range segments {
		chunks += g.ChunkBytes
	}
	f.Note = fmt.Sprintf("segments %.4f, chunks %.4f before blocks are compressed and equal ones "+
		"shared; catalogue %.4f, rest %.4f; %d segments; %d points of %d series, all in the account "+
		"and read back as they were sent; log apart",
		per(u.segments), per(chunks), per(u.catalogue), per(u.rest), len(segments), points, len(c.Series))
	return f, nil
}

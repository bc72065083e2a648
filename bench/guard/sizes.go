package guard

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"dalmatiner/bench/report"
	"dalmatiner/haggar"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store"
)

// window is that which the store merges into at first, in slots.
const window = 7_200

// sizeSeries is the number of series of which a window is written to see what
// they take: every kind of the mix 25 times.
const sizeSeries = 250

// sizes adds the bytes that fixed data takes. They do not depend on the
// machine: a bound is what they are, and a change that makes them more says so
// by raising it.
func (g *guarded) sizes(ctx context.Context) error {
	for _, d := range []struct {
		name string
		haggar.Data
	}{{"uniform", haggar.Data{Seed: 1}}, {"the mix", haggar.Data{Seed: 1, Walk: true}}} {
		if err := g.size(ctx, d.name, d.Data); err != nil {
			return fmt.Errorf("size of %s: %w", d.name, err)
		}
	}
	return nil
}

func (g *guarded) size(ctx context.Context, name string, data haggar.Data) (err error) {
	s, err := openStore(filepath.Join(g.Dir, "size of "+name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	info, err := write(s, "size", data, sizeSeries)
	if err != nil {
		return err
	}
	if _, err := s.Flush(ctx); err != nil {
		return err
	}
	const points = sizeSeries * window
	note := func(bytes int64) string {
		return fmt.Sprintf("%.3f bits a point", 8*float64(bytes)/points)
	}
	flushed := s.Stats()
	if flushed.Segments.Points != points {
		return fmt.Errorf("%d points were written, the segments hold %d", points, flushed.Segments.Points)
	}
	g.add(report.Figure{
		Area:  "size",
		What:  name + ", flushed",
		Unit:  "B",
		Value: float64(flushed.Segments.Bytes),
		Note:  note(flushed.Segments.Bytes),
	})
	if err := goOn(s, info); err != nil {
		return err
	}
	if _, err := s.Flush(ctx); err != nil {
		return err
	}
	if _, err := s.Merge(ctx); err != nil {
		return err
	}
	merged := s.Stats()
	if merged.Segments.Points != points+1 {
		return fmt.Errorf("%d points were written, the merged segments hold %d", points+1,
			merged.Segments.Points)
	}
	g.add(report.Figure{
		Area:  "size",
		What:  name + ", merged",
		Unit:  "B",
		Value: float64(merged.Segments.Bytes),
		Note:  note(merged.Segments.Bytes),
	})
	return nil
}

// write writes a window of series into a bucket, slot by slot as agents do.
func write(s *store.Store, bucket string, data haggar.Data, series int) (buckets.Info, error) {
	info, err := s.EnsureBucket(bucket)
	if err != nil {
		return info, err
	}
	x, err := s.NewSession(info)
	if err != nil {
		return info, err
	}
	keys, values := make([][]byte, series), make([]haggar.Iter, series)
	for i := range keys {
		keys[i], values[i] = seriesKey(i), data.Series(3, i)
	}
	for slot := int64(epoch); slot < epoch+window; slot++ {
		for i, key := range keys {
			x.Point(key, uint64(slot), values[i].Word(slot))
		}
	}
	return info, x.Close()
}

// goOn writes a point so far on that the window before it is complete.
func goOn(s *store.Store, info buckets.Info) error {
	x, err := s.NewSession(info)
	if err != nil {
		return err
	}
	x.Point(seriesKey(0), epoch+4*window, point.FromInt(1))
	return x.Close()
}

// clock is past the window that is written: it counts as closed.
func clock() time.Time { return time.Unix(epoch+10*window, 0) }

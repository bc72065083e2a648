package rows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
)

const (
	sparseSeries = 200_000
	sparseHours  = 6
	sparseBucket = "sparse"
	sparseArea   = "200 k series, a point a minute"
)

// sparse writes 200 k series that send a point a minute into a bucket of 1 s,
// for six hours of synthetic time, each in its second of the minute, and looks
// at what the store keeps in memory after an hour and at the end.
func (b *bench) sparse(ctx context.Context) (err error) {
	var now atomic.Int64
	now.Store(1_699_992_000 * int64(time.Second)) // a multiple of 12 minutes
	o := store.DefaultOptions(filepath.Join(b.Dir, "sparse"))
	o.Now = func() time.Time { return time.Unix(0, now.Load()) }
	o.MinFree, o.BackgroundMerge = 0, false
	o.MaxFuture = sparseHours * time.Hour // the store looks at the clock ten times a second
	s, err := store.Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	info, err := s.EnsureBucket(sparseBucket)
	if err != nil {
		return err
	}
	x, err := s.NewSession(info)
	if err != nil {
		return err
	}
	keys, err := sparseKeys()
	if err != nil {
		return err
	}
	debug.FreeOSMemory() // what the rows before left
	for minute := range sparseHours * 60 {
		for i, k := range keys {
			at := now.Load()/int64(time.Second) + int64(i)*60/sparseSeries
			x.Point(k, uint64(at), point.FromInt(int64(uint32(i*7919+minute)*2654435761>>22)))
		}
		if _, err := x.Commit(); err != nil {
			return err
		}
		now.Add(int64(time.Minute))
		if err := ctx.Err(); err != nil {
			return err
		}
		if minute+1 == 60 || minute+1 == sparseHours*60 {
			if err := b.sparseMemory(s, fmt.Sprintf("after %d h", (minute+1)/60)); err != nil {
				return err
			}
		}
	}
	if _, err := x.Commit(); err != nil {
		return err
	}
	// The windows are complete when the data goes on past them. The store looks at
	// the clock during the flush.
	now.Add(2 * int64(time.Hour))
	if err := b.sparseFlush(ctx, s); err != nil {
		return err
	}
	x.Point(keys[0], uint64(now.Load()/int64(time.Second)), point.FromInt(1))
	if err := x.Close(); err != nil {
		return err
	}
	return b.sparseMerge(ctx, s, info.ID)
}

func sparseKeys() ([][]byte, error) {
	keys := make([][]byte, sparseSeries)
	for i := range keys {
		var err error
		if keys[i], err = metric.Key("site", fmt.Sprintf("meter-%06d", i), "power"); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// sparseMemory adds what the store and this process have in memory now.
func (b *bench) sparseMemory(s *store.Store, when string) error {
	debug.FreeOSMemory()
	rss, err := measure.Kibibytes(measure.Field(fmt.Sprintf("/proc/%d/status", os.Getpid()),
		"RssAnon"))
	if err != nil {
		return err
	}
	st := s.Stats()
	for _, f := range []report.Figure{
		{
			What:  "blocks in use",
			Value: measure.Mebi(st.Head.Bytes),
			Note:  "up to four open ones a group: in synthetic time the clock closes none",
		},
		{What: "blocks kept", Value: measure.Mebi(st.Head.Warm)},
		{
			What:  "encoded and late points",
			Value: measure.Mebi(st.Head.Sealed + st.Head.Late),
			Note:  "flushed at 64 MiB or after 12 minutes",
		},
		{
			What:  "resident",
			Value: measure.Mebi(rss),
			Note: "of this process, which is also the sender, after a collection and without what files " +
				"have mapped",
		},
	} {
		f.Area, f.What, f.Unit = sparseArea, f.What+", "+when, "MiB"
		b.table.Add(f)
	}
	return nil
}

// sparseFlush flushes and adds what a point takes in flushes.
func (b *bench) sparseFlush(ctx context.Context, s *store.Store) error {
	if _, err := s.Flush(ctx); err != nil {
		return err
	}
	st := s.Stats()
	b.table.Add(report.Figure{
		Area: sparseArea, What: "disk before merging", Unit: "B/point",
		Value: float64(st.Flushes.Bytes) / float64(st.Flushes.Points),
		Note:  fmt.Sprintf("%d flushes", st.Flushes.Count),
	})
	return nil
}

// sparseMerge merges and adds what a point takes then.
func (b *bench) sparseMerge(ctx context.Context, s *store.Store, bucket uint64) error {
	if _, err := s.Flush(ctx); err != nil {
		return err
	}
	merged, err := s.Merge(ctx)
	if err != nil {
		return err
	}
	// To a store that looks at such a clock ten times a second a block may look idle
	// that is being written: a few points then come late.
	st, sent := s.Stats(), int64(sparseSeries*sparseHours*60+1)
	if c := s.Account().Total(bucket); c.Accepted+c.Late != uint64(sent) ||
		st.Segments.Points != sent {
		return fmt.Errorf("%d points were sent, the segments hold %d, the account is %+v", sent,
			st.Segments.Points, c)
	}
	b.table.Add(report.Figure{
		Area: sparseArea, What: "disk merged", Unit: "B/point",
		Value: float64(st.Segments.Bytes) / float64(sent),
		Note: fmt.Sprintf("uniform 0…1023, 10 bits; %d windows of 2 h, a chunk has 12 points; every "+
			"point is in the account and in a segment", merged.Windows),
	})
	return nil
}

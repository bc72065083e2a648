package rows

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"dalmatiner/bench/report"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
)

const (
	churnSeries = 1280             // at a time
	churnStep   = 10 * time.Minute // a tenth of them is replaced …
	churnHours  = 24               // … for so long
	churnFlush  = 12 * time.Minute // the default flush.interval
	churnBucket = "churn"
)

// churn replaces a tenth of the series every ten minutes for a day of synthetic
// time, in contiguous parts as senders come and go, and looks at what the store
// keeps in memory after two hours and at the end.
func (b *bench) churn(ctx context.Context) error {
	var now atomic.Int64
	now.Store(1_700_000_000 * int64(time.Second))
	o := store.DefaultOptions(filepath.Join(b.Dir, "churn"))
	o.Now = func() time.Time { return time.Unix(0, now.Load()) }
	o.MaxFuture = churnHours * time.Hour // the store looks at the clock too seldom for so fast a day
	o.MinFree, o.BackgroundMerge, o.WALMaxSize = 0, false, 64<<20
	s, err := store.Open(o)
	if err != nil {
		return err
	}
	info, err := s.EnsureBucket(churnBucket)
	if err != nil {
		return err
	}
	x, err := s.NewSession(info)
	if err != nil {
		return err
	}
	keys := make([][]byte, churnSeries)
	born := 0
	birth := func(i int) error {
		keys[i], err = metric.Key("host", fmt.Sprintf("container-%08d", born), "cpu", "usage")
		born++
		return err
	}
	for i := range keys {
		if err := birth(i); err != nil {
			return err
		}
	}
	points, part, random := int64(0), 0, uint64(1)
	for second := range churnHours * 3600 {
		if second > 0 && time.Duration(second)*time.Second%churnStep == 0 {
			for i := part * churnSeries / 10; i < (part+1)*churnSeries/10; i++ {
				if err := birth(i); err != nil {
					return err
				}
			}
			part = (part + 1) % 10
		}
		slot := uint64(now.Load() / int64(time.Second))
		for _, k := range keys {
			random = random*6364136223846793005 + 1442695040888963407
			x.Point(k, slot, point.FromInt(int64(random>>33%1000)))
		}
		points += churnSeries
		now.Add(int64(time.Second))
		if time.Duration(second)*time.Second%churnFlush == 0 {
			if _, err := x.Commit(); err != nil {
				return err
			}
			if _, err := s.Flush(ctx); err != nil {
				return err
			}
		}
		if second == 2*3600-60 || second == churnHours*3600-1 {
			b.churnFigures(s, fmt.Sprintf("%d h", (second+61)/3600))
		}
	}
	if err := x.Close(); err != nil {
		return err
	}
	if n := x.Totals().Refused; n > 0 {
		return fmt.Errorf("churn: %d of %d points were refused", n, points)
	}
	return b.churnDisk(ctx, s, points)
}

// churnDisk takes the size of what is merged and closes the store.
func (b *bench) churnDisk(ctx context.Context, s *store.Store, points int64) error {
	if _, err := s.Flush(ctx); err != nil {
		return err
	}
	if _, err := s.Merge(ctx); err != nil {
		return err
	}
	b.table.Add(report.Figure{Area: "churn", What: "bytes per point after merging", Unit: "B",
		Note:  "uniform 0…999",
		Value: float64(s.Stats().Segments.Bytes) / float64(points)})
	return s.Close()
}

func (b *bench) churnFigures(s *store.Store, when string) {
	st := s.Stats()
	for _, f := range []report.Figure{
		{What: "column groups", Value: float64(st.Groups)},
		{What: "series known", Value: float64(st.Series)},
		{What: "series without a column", Value: float64(st.Inactive.Series)},
		{What: "names without a column", Unit: "MB", Value: float64(st.Inactive.Bytes) / 1e6},
		{What: "blocks in use", Unit: "MB", Value: float64(st.Head.Bytes) / 1e6},
		{What: "blocks kept", Unit: "MB", Value: float64(st.Head.Warm) / 1e6},
	} {
		f.Area, f.What = "churn", f.What+", after "+when
		b.table.Add(f)
	}
}

package corpus

import (
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/haggar"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
)

const (
	epoch = 1_699_920_000 // a multiple of every window
	hours = 7200          // slots that are merged into one window
)

// BenchmarkMerge is a whole merge in memory: read what a flush wrote, lay out a window of two
// hours, write it. Beside the clock it reports the processor time, both per point.
func BenchmarkMerge(b *testing.B) {
	b.Run("mix", func(b *testing.B) { benchMerge(b, mix()) })
	for _, name := range []string{"busy", "quiet", "telegraf"} {
		c, err := Load("data", name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) { benchMerge(b, recorded(b, c)) })
	}
}

// mix returns the words of series of the published mix.
func mix() (series [][]uint64) {
	d := haggar.Data{Walk: true}
	for i := range 256 {
		it, words := d.Series(0, i), make([]uint64, hours)
		for slot := range words {
			words[slot] = point.FromInt(it.At(epoch + int64(slot)))
		}
		series = append(series, words)
	}
	return series
}

// recorded returns the words of a recording, a sample a slot, again and again.
func recorded(b *testing.B, c *Corpus) (series [][]uint64) {
	first, last := c.Span()
	length := int((last-first)/c.Interval) + 1
	for i := range c.Series {
		s, words := &c.Series[i], make([]uint64, hours)
		for k, at := range s.Times {
			w, err := Word(s.Values[k])
			if err != nil {
				b.Fatal(err)
			}
			for slot := int((at - first) / c.Interval); slot < hours; slot += length {
				words[slot] = w
			}
		}
		series = append(series, words)
	}
	return series
}

func benchMerge(b *testing.B, series [][]uint64) {
	points := 0
	var took time.Duration
	for b.Loop() {
		b.StopTimer()
		s, n := flushed(b, series)
		points += n
		before := processorTime(b)
		b.StartTimer()
		if m, err := s.Merge(b.Context()); err != nil || m.Windows == 0 {
			b.Fatal(m, err)
		}
		b.StopTimer()
		took += processorTime(b) - before
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(points), "ns/point")
	b.ReportMetric(float64(took.Nanoseconds())/float64(points), "cpu-ns/point")
}

// flushed returns a store that has the points of series in one flush.
func flushed(b *testing.B, series [][]uint64) (s *store.Store, points int) {
	o := store.DefaultOptions("/data")
	o.FS, o.Logger, o.MinFree, o.BackgroundMerge = vfs.NewMem(), slog.New(slog.DiscardHandler), 0,
		false
	s, err := store.Open(o)
	if err != nil {
		b.Fatal(err)
	}
	info, err := s.EnsureBucket("b")
	if err != nil {
		b.Fatal(err)
	}
	x, err := s.NewSession(info)
	if err != nil {
		b.Fatal(err)
	}
	keys := make([][]byte, len(series))
	for i := range series {
		if keys[i], err = metric.Key("series", fmt.Sprint(i)); err != nil {
			b.Fatal(err)
		}
	}
	for slot := range hours { // in rows, as senders do: chunks of a flush have many pieces
		for i, words := range series {
			if words[slot] != point.Unset {
				x.Point(keys[i], uint64(epoch+slot), words[slot])
				points++
			}
		}
	}
	x.Point([]byte("\x05later"), epoch+86400, point.FromInt(1)) // the window is over
	if err := x.Close(); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s, points
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

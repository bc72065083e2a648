package store

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/metric"
)

// longKey is the key of a series whose name has about so many bytes.
func longKey(i, bytes int) []byte {
	k, err := metric.Key(fmt.Sprint(i), strings.Repeat("x", bytes%251))
	if err != nil {
		panic(err) // the parts are short
	}
	for len(k)+251 <= bytes {
		k = metric.AppendPart(k, strings.Repeat("y", 250))
	}
	return k
}

// New series are refused before they take more than there is, whatever their names
// are long and however many come between two looks at the memory: the next look
// finds less than the mark from which on they are refused, but for what their points
// take, which are stored with them.
func TestNewSeriesTakeTheirMemoryFirst(t *testing.T) {
	// Not beside other tests: a merge that gets no processor holds its memory at the last look.
	for _, bytes := range []int{20, 250, 4_000} {
		clock := newTestClock()
		o := testOptions(vfs.NewMem(), clock)
		o.Memory = memory.New(testLimit, clock.Now, nil)
		s := mustOpen(t, o)
		x := mustSession(t, s, "flood")
		s.o.Memory.Look()
		catalogue := poolUse(s, "catalogue")
		i := 0
		for ; x.Totals().Refused == 0 && i < 1_000_000; i++ {
			x.Point(longKey(i, bytes), epoch, point.FromInt(1))
			if i%1000 == 0 {
				if _, err := x.Commit(); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.o.Memory.Look()
		// The catalogue takes its own memory when it likes, and nothing of the flood
		// before the next flush.
		points := poolUse(s, "head-tables") + poolUse(s, "unpredicted-points") +
			s.flusher.Need() - s.columns.Unflushed.FlushMemory()
		used, stored := s.o.Memory.UsedBytes()-(poolUse(s, "catalogue")-catalogue)-points, i
		t.Logf("names of %d bytes: %d series, %d bytes in use, and %d for points", bytes, stored, used,
			points)
		if mark := int64(testLimit) / 100 * 85; used >= mark || stored < 1000 {
			for _, p := range s.o.Memory.Pools() {
				t.Log(p.Name, p.Use)
			}
			t.Errorf("names of %d bytes: %d series and %d bytes in use, new ones are to be refused at %d",
				bytes, stored, used, mark)
		}
		s.Crash()
	}
}

// poolUse is what a pool of the memory budget had at the last look.
func poolUse(s *Store, name string) int64 {
	for _, p := range s.o.Memory.Pools() {
		if p.Name == name {
			return p.Use
		}
	}
	return 0
}

// What counts for new series is what they take on the heap, and what the flush will
// take that names them: no less, and no more than three times as much.
func TestNewSeriesCountWhatTheyTake(t *testing.T) {
	for _, bytes := range []int{20, 250, 4_000} {
		clock := newTestClock()
		o := testOptions(vfs.Default, clock) // a log in memory would count as well
		o.Dir = t.TempDir()
		o.Memory = memory.New(1<<40, clock.Now, nil)
		s := mustOpen(t, o)
		if _, err := s.EnsureBucket("flood"); err != nil {
			t.Fatal(err)
		}
		b := s.buckets.Get("flood")
		filler := s.columns.NewFiller(b)
		counted := func() int64 { return s.columns.Names().Bytes() + s.columns.Unflushed.FlushMemory() }
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		count, was := counted(), heap()
		for i := range 40 << 20 / (bytes + 400) {
			key := longKey(i, bytes)
			if _, _, err := filler.Define(b.SeriesID(key), key); err != nil {
				t.Fatal(err)
			}
		}
		var naming int64 // a copy of each name
		changes := s.columns.Unflushed.Take(0)
		for _, c := range changes.Catalogue {
			naming += int64(len(c.Series.Key))
		}
		s.columns.Unflushed.PutBack(changes)
		count, took := counted()-count, heap()-was
		t.Logf("names of %d bytes: %d MiB counted, %d taken and %d to be taken", bytes, count>>20,
			took>>20, naming>>20)
		if need := took + naming; count < need || count > 3*need {
			t.Errorf("names of %d bytes: %d bytes count, %d are taken and %d will be", bytes, count, took,
				naming)
		}
		s.Crash()
	}
}

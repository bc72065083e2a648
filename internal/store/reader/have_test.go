package reader_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
)

// Many series asked together have the points that were written of each, and no others: the latest
// points are in open blocks, and those of some series are in files.
func TestManySeriesHavePoints(t *testing.T) {
	t.Parallel()
	const series = 3000 // in many groups, and more than are looked up together
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 6))
		clock := drivetest.NewClock()
		o := storetest.OptionsAt(vfs.NewMem(), clock)
		storetest.ByHand(&o)
		s := storetest.Start(t, o)
		x := drivetest.Session(t, s, "rows")
		now := clock.Now().Unix()
		set := make([]map[int64]bool, series)
		for i := range set {
			set[i] = make(map[int64]bool)
		}
		write := func(i int, slot int64) {
			if x.Point(key(i), uint64(slot), point.FromInt(1)); slot >= 0 {
				set[i][slot] = true
			}
		}
		dense := 256 + r.IntN(600)
		for row := range int64(40) {
			for i := range dense {
				write(i, now-60+row)
			}
		}
		for range 500 {
			write(r.IntN(series/2), now-int64(r.IntN(5000)))
		}
		if _, err := x.Commit(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		last := now + int64(1+r.IntN(3))
		behind := make(map[int]bool) // what open blocks have
		for range 1500 {
			i := r.IntN(series)
			write(i, last)
			behind[i] = true
		}
		if _, err := x.Commit(); err != nil {
			t.Fatal(err)
		}
		h := &writtenPoints{r: r, set: set, behind: behind, last: last}
		h.check(t, s, now)
		for _, i := range r.Perm(dense)[:3] {
			if len(set[i]) == 0 {
				continue
			}
			if _, err := s.DeleteSeries(t.Context(), "rows", deletion.Choice{Key: key(i)},
				false); err != nil {
				t.Fatal(err)
			}
			clear(set[i])
			delete(behind, i)
		}
		h.check(t, s, now)
		if _, err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.flushed = true
		h.check(t, s, now)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// writtenPoints is what was written.
type writtenPoints struct {
	r      *rand.Rand
	set    []map[int64]bool // slots of each series
	behind map[int]bool     // series that open blocks have at last
	last   int64

	flushed bool // all is in files
}

// check asks for random series and ranges.
func (h *writtenPoints) check(t *testing.T, s *storetest.Store, now int64) {
	t.Helper()
	b, err := s.Bucket("rows")
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		from := now - int64(h.r.IntN(100))
		past := from + 1 + int64(h.r.IntN(120))
		all := h.r.IntN(3) == 0
		if all {
			from, past = now-10_000, now+10
		} else if h.r.IntN(2) == 0 {
			from -= int64(h.r.IntN(5000))
		}
		numbers := h.r.Perm(len(h.set) + 100)[:1+h.r.IntN(len(h.set))] // some are unknown
		keys, has := make([][]byte, len(numbers)), make([]bool, len(numbers))
		for i, n := range numbers {
			keys[i], has[i] = key(n), h.r.IntN(2) == 0
		}
		if err := b.Have(t.Context(), keys, from, past, has); err != nil {
			t.Fatal(err)
		}
		for i, n := range numbers {
			near := false
			if n < len(h.set) {
				for slot := range h.set[n] {
					near = near || from <= slot && slot < past
				}
			}
			if all && h.flushed && has[i] != near {
				t.Fatalf("series %d has points in files: %v, want %v", n, has[i], near)
			}
			if has[i] && !near {
				t.Fatalf("series %d has no point in [%d,%d)", n, from, past)
			}
			if open := h.behind[n] && from <= h.last && h.last < past; open && !has[i] {
				t.Fatalf("series %d has a point at %d, in [%d,%d)", n, h.last, from, past)
			}
		}
	}
}

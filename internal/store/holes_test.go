package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/store/reader"
	"dalmatiner/internal/testkit/filetest"
)

// holeSeries series of holeSlots slots from epoch on are what the tests of holes damage.
const (
	holeSeries = 3
	holeSlots  = 3 * chunk.Slots
)

// layers are what a test has written, by the order in which it was flushed.
type holeLayers struct {
	t     *testing.T
	s     *Store
	clock *testClock
	o     Options
	words []map[[2]int64]uint64 // by layer: series and slot

	merges int
	from   int64       // slots below have expired
	born   map[int]int // layers before it are of a former series of that number, which was deleted
}

func newHoleLayers(t *testing.T) *holeLayers {
	clock := newTestClock()
	clock.Advance(6 * time.Hour)
	o := testOptions(vfs.NewMem(), clock)
	byHand(&o)
	h := &holeLayers{t: t, clock: clock, o: o, s: mustOpen(t, o)}
	t.Cleanup(func() { h.s.Crash() })
	return h
}

// put writes slots of a series as a layer and flushes it.
func (h *holeLayers) put(series []int, from, past int64) string {
	h.t.Helper()
	x := mustSession(h.t, h.s, "b")
	layer := make(map[[2]int64]uint64)
	for slot := from; slot < past; slot++ {
		for _, n := range series {
			w := point.FromInt(int64(len(h.words)+1)*100_000 + slot)
			layer[[2]int64{int64(n), slot}] = w
			x.Point(key(n), uint64(epoch+slot), w)
		}
	}
	x.Close()
	h.words = append(h.words, layer)
	r, err := h.s.Flush(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return r.Segment
}

// unknownDeleteSequence wants the slots of a series unknown where no layer above holds them.
type unknownDeleteSequence struct {
	series     int
	from, past int64
	layer      int // layers up to this one do not show
}

// check compares reads, aggregates and their unknown slots with the layers, of which
// gone has those that cannot be read.
func (h *holeLayers) check(what string, gone map[int]bool, holes ...unknownDeleteSequence) {
	h.t.Helper()
	for n := range holeSeries {
		want, unknown := make([]uint64, holeSlots), make([]bool, holeSlots)
		for slot := range int64(holeSlots) {
			below := -1
			for _, u := range holes {
				if u.series == n && u.from <= slot && slot < u.past && u.layer >= h.born[n] && slot >= h.from {
					below = max(below, u.layer)
				}
			}
			unknown[slot] = below >= 0
			for i := max(below+1, h.born[n]); i < len(h.words) && slot >= h.from; i++ {
				if w := h.words[i][[2]int64{int64(n), slot}]; w != 0 && !gone[i] {
					want[slot], unknown[slot] = w, false
				}
			}
		}
		h.checkSeries(what, n, want, unknown)
	}
}

// checkOlder compares reads of older values with the layers that can be read.
func (h *holeLayers) checkOlder(gone map[int]bool) {
	h.t.Helper()
	info, err := h.s.BucketByName("b")
	if err != nil {
		h.t.Fatal(err)
	}
	for n := range holeSeries {
		got := make([]uint64, holeSlots)
		if _, err := h.s.Series(info, key(n)).ReadOlder(h.t.Context(), epoch, got); err != nil {
			h.t.Fatal(err)
		}
		for slot := range int64(holeSlots) {
			want := uint64(0)
			for i, words := range h.words {
				if w := words[[2]int64{int64(n), slot}]; w != 0 && !gone[i] {
					want = w
				}
			}
			if got[slot] != want {
				h.t.Fatalf("series %d slot %d is %x, want the older %x", n, slot, got[slot], want)
			}
		}
	}
}

func (h *holeLayers) checkSeries(what string, n int, want []uint64, unknown []bool) {
	h.t.Helper()
	info, err := h.s.BucketByName("b")
	if err != nil {
		h.t.Fatal(err)
	}
	got := make([]uint64, len(want))
	st, err := h.s.Series(info, key(n)).ReadCounted(h.t.Context(), epoch, got)
	if err != nil {
		h.t.Fatal(err)
	}
	expect := func(how string, all []reader.Unknown) {
		h.t.Helper()
		is := make([]bool, len(want))
		for _, u := range all {
			if u.Why == "" {
				h.t.Fatalf("%s: %s of series %d does not say why %v is unknown", what, how, n, u)
			}
			for slot := u.From; slot < u.Past; slot++ {
				is[slot-epoch] = true
			}
		}
		for i := range want {
			if is[i] != unknown[i] {
				h.t.Fatalf("%s: %s of series %d has slot %d unknown: %v, want %v", what, how, n, i, is[i],
					unknown[i])
			}
		}
	}
	expect("a read", st.Unknown)
	for i, w := range want {
		if got[i] != w {
			h.t.Fatalf("%s: series %d slot %d is %d, want %d", what, n, i, point.Int(got[i]), point.Int(w))
		}
	}
	for _, step := range []int64{7, 60, chunk.Slots, 2 * chunk.Slots, 10 * chunk.Slots} {
		dst := make([]chunk.Header, (int64(len(want))+step-1)/step)
		st, err := h.s.Series(info, key(n)).Aggregate(h.t.Context(), epoch, step, dst)
		if err != nil {
			h.t.Fatal(err)
		}
		expect(fmt.Sprintf("an aggregate of %d slots", step), st.Unknown)
		aggregateEach(h.t, h.s, info, []int{n, n}, epoch, step, len(dst))
		for i := range dst {
			lo, hi := int64(i)*step, min(int64(i+1)*step, int64(len(want)))
			sum := chunk.Summarize(want[lo:hi], 0)
			if dst[i].Count != sum.Count || dst[i].Count > 0 &&
				(dst[i].First != sum.First || dst[i].Last != sum.Last || dst[i].Min != sum.Min ||
					dst[i].Max != sum.Max) {
				h.t.Fatalf("%s: step %d of %d slots of series %d is %+v, want %+v", what, i, step, n, dst[i],
					sum)
			}
		}
	}
}

// reopen opens the store again.
func (h *holeLayers) reopen() {
	h.t.Helper()
	h.s.Crash()
	h.s = mustOpen(h.t, h.o)
}

// merge merges, after the bucket's data has gone on so far that the windows close.
func (h *holeLayers) merge() {
	h.t.Helper()
	h.clock.Advance(6 * time.Hour)
	h.s.clock.Advance()
	h.merges++
	x := mustSession(h.t, h.s, "b")
	x.Point(key(holeSeries), uint64(epoch+20_000*h.merges), point.FromInt(1))
	x.Close()
	if _, err := h.s.Flush(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	if r, err := h.s.Merge(h.t.Context()); err != nil || r.Removed == 0 {
		h.t.Fatalf("%v, %d segments were merged", err, r.Removed)
	}
}

func fileSize(t *testing.T, fs vfs.FS, path string) int64 {
	t.Helper()
	st, err := fs.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}

// TestALostRewriteIsUnknown: one bit in the data block of a rewrite. What it wrote over
// must not come back, in its chunk of that series and nowhere else.
func TestALostRewriteIsUnknown(t *testing.T) {
	t.Parallel()
	h := newHoleLayers(t)
	h.put([]int{0, 1, 2}, 0, holeSlots)
	file := h.put([]int{1}, 100, 900) // late: chunks 0 and 1 of series 1
	h.check("whole", nil)
	filetest.FlipBit(t, h.o.FS, "/data/"+file, 8*20)
	h.reopen()
	holes := []unknownDeleteSequence{{1, 0, 2 * chunk.Slots, 1}}
	gone := map[int]bool{1: true}
	h.check("damaged", gone, holes...)
	h.checkOlder(gone)
	h.put([]int{1}, 700, 740)
	h.checkOlder(gone)
	h.check("written again", gone, holes...)
	h.merge()
	h.check("merged", gone, holes...)
	h.reopen()
	h.check("opened again", gone, holes...)
	h.put([]int{0, 1}, 0, 50)
	h.check("written once more", gone, holes...)
	h.merge()
	h.check("merged once more", gone, holes...)
}

// TestALostFileIsUnknownWhereItWasMarked: a file that is missing, cut off or without a
// footer leaves a hole of its marks; what it did not write over are gaps.
func TestALostFileIsUnknownWhereItWasMarked(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"missing", "cut", "footer"} {
		t.Run(how, func(t *testing.T) {
			h := newHoleLayers(t)
			h.put([]int{0, 1, 2}, 0, 2*chunk.Slots)
			h.put([]int{1}, 100, 200)
			file := "/data/" + h.put([]int{1}, 300, 310)
			h.put([]int{1}, 305, 320)
			h.s.Crash()
			switch how {
			case "missing":
				if err := h.o.FS.Remove(file); err != nil {
					t.Fatal(err)
				}
			case "cut":
				cutFile(t, h.o.FS, file, 100)
			case "footer":
				filetest.FlipBit(t, h.o.FS, file, 8*(fileSize(t, h.o.FS, file)-50))
			}
			h.s = mustOpen(t, h.o)
			gone, holes := map[int]bool{2: true}, []unknownDeleteSequence{{1, 0, chunk.Slots, 2}}
			h.check("lost", gone, holes...)
			h.s.Crash()
			if r := mustCheck(t, h.o.FS, "/data"); r.Damaged == 0 || r.Damages[0].Part != "hole" {
				t.Fatalf("the check does not name the hole: %v", r.Damages)
			}
			h.s = mustOpen(t, h.o)
			h.check("opened again", gone, holes...)
			h.merge()
			h.check("merged", gone, holes...)
			h.put([]int{1}, 0, 100)
			h.merge()
			h.reopen()
			h.check("written again and merged", gone, holes...)
		})
	}
}

// TestALostFileWithoutMarksIsAGap: what nothing lies below hides nothing.
func TestALostFileWithoutMarksIsAGap(t *testing.T) {
	t.Parallel()
	h := newHoleLayers(t)
	h.put([]int{0, 1, 2}, 0, 300)
	file := "/data/" + h.put([]int{0, 1, 2}, 300, 900) // goes on in the same chunk
	h.put([]int{0, 1, 2}, 900, 1000)
	h.s.Crash()
	if err := h.o.FS.Remove(file); err != nil {
		t.Fatal(err)
	}
	h.s = mustOpen(t, h.o)
	h.check("lost", map[int]bool{1: true})
	h.merge()
	h.check("merged", map[int]bool{1: true})
}

// TestADamagedIndexIsUnknown: the leaf of a rewrite.
func TestADamagedIndexIsUnknown(t *testing.T) {
	t.Parallel()
	h := newHoleLayers(t)
	h.put([]int{0, 1, 2}, 0, holeSlots)
	h.put([]int{0, 2}, 700, 1500)
	seg := h.s.versions.Latest().Segments[len(h.s.versions.Latest().Segments)-1]
	data := seg.Info.DataBytes + 4 // one block
	filetest.FlipBit(t, h.o.FS, "/data/"+seg.Name(), 8*(data+5))
	h.reopen()
	gone := map[int]bool{1: true}
	holes := []unknownDeleteSequence{{0, 0, holeSlots, 1}, {2, 0, holeSlots, 1}}
	// Series 1 is unknown where its hash lies between those of the others.
	lo, hi := h.prefix(0), h.prefix(2)
	if p := h.prefix(1); min(lo, hi) < p && p < max(lo, hi) {
		holes = append(holes, unknownDeleteSequence{1, 0, holeSlots, 1})
	}
	h.check("damaged", gone, holes...)
	h.merge()
	h.check("merged", gone, holes...)
	h.reopen()
	h.check("opened again", gone, holes...)
}

func (h *holeLayers) prefix(series int) uint64 {
	info, err := h.s.BucketByName("b")
	if err != nil {
		h.t.Fatal(err)
	}
	return hole.PrefixOf(h.s.buckets.ID(info.ID).SeriesID(key(series)))
}

func cutFile(t *testing.T, fs vfs.FS, path string, n int64) {
	t.Helper()
	data := make([]byte, n)
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(data, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = fs.Create(path, vfs.WriteCategoryUnspecified); err != nil {
		t.Fatal(err)
	}
	if _, err = f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

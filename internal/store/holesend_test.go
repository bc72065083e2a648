package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/snapshot"
)

// lostRewrite has three series, and a file that was lost and lay over the first chunk of
// series 1. It returns the file and where it was put.
func lostRewrite(t *testing.T) (h *holeLayers, file, aside string, gone map[int]bool,
	hole unknownDeleteSequence) {
	h = newHoleLayers(t)
	h.put([]int{0, 1, 2}, 0, holeSlots)
	file = "/data/" + h.put([]int{1}, 100, 200)
	h.s.Crash()
	aside = "/away"
	if err := h.o.FS.Rename(file, aside); err != nil {
		t.Fatal(err)
	}
	h.s = mustOpen(t, h.o)
	gone, hole = map[int]bool{1: true}, unknownDeleteSequence{1, 0, chunk.Slots, 1}
	h.check("lost", gone, hole)
	return h, file, aside, gone, hole
}

func (h *holeLayers) holes() int { return len(h.s.disk.Manifest.Holes()) }

// TestAHoleEndsWhenItIsWritten: not while a slot of it is unset in segments, and not for
// what is in memory only.
func TestAHoleEndsWhenItIsWritten(t *testing.T) {
	t.Parallel()
	h, _, _, gone, hole := lostRewrite(t)
	h.put([]int{1}, 1, chunk.Slots)
	h.merge()
	h.check("but one", gone, hole)
	if h.holes() != 1 {
		t.Fatalf("%d holes, one slot is still unknown", h.holes())
	}
	x := mustSession(t, h.s, "b")
	x.Point(key(1), epoch, point.FromInt(7))
	x.Close()
	if err := h.s.merges.EndHoles(t.Context()); err != nil || h.holes() != 1 {
		t.Fatalf("%d holes, what ends it is in memory: %v", h.holes(), err)
	}
	h.words = append(h.words, map[[2]int64]uint64{{1, 0}: point.FromInt(7)})
	mustFlush(t, h.s)
	h.merge()
	h.check("written", gone, hole)
	if h.holes() != 0 {
		t.Fatalf("left: %v", h.s.disk.Manifest.Holes())
	}
	h.reopen()
	h.check("opened again", gone, hole)
	h.s.Crash()
	for _, d := range mustCheck(t, h.o.FS, "/data").Damages {
		t.Errorf("the check says %v", d)
	}
	h.s = mustOpen(t, h.o)
}

// TestWhatAMergeHidesIsLost: the older points that a merge leaves out are counted then, once,
// and those that the lost file lies over are recovered with it.
func TestWhatAMergeHidesIsLost(t *testing.T) {
	t.Parallel()
	h, file, aside, gone, hole := lostRewrite(t)
	lost := func() (n, recovered uint64) {
		for _, l := range h.s.Account().Losses() {
			n, recovered = n+l.Points, recovered+l.Recovered
		}
		return n, recovered
	}
	if n, _ := lost(); n != 100 {
		t.Fatalf("%d points of the file are lost, want 100", n)
	}
	h.put([]int{1}, 0, 20)
	h.merge()
	if n, _ := lost(); n != 100+chunk.Slots {
		t.Fatalf("%d points are lost, want 100 of the file and %d below it", n, chunk.Slots)
	}
	h.merge()
	if n, _ := lost(); n != 100+chunk.Slots {
		t.Fatalf("%d points are lost after another merge", n)
	}
	h.check("merged", gone, hole)
	mustFlush(t, h.s)
	h.s.Crash()
	if err := h.o.FS.Rename(aside, file); err != nil {
		t.Fatal(err)
	}
	h.s = mustOpen(t, h.o)
	if n, back := lost(); n != 100+chunk.Slots || back != 200 {
		t.Fatalf("%d lost, %d recovered, want 200: its own points, and those below them", n, back)
	}
	if h.holes() != 0 {
		t.Fatalf("the file is back: %v", h.s.disk.Manifest.Holes())
	}
}

// TestALostFileComesBack: its hole ends, and all is as it was.
func TestALostFileComesBack(t *testing.T) {
	t.Parallel()
	h, file, aside, gone, hole := lostRewrite(t)
	h.put([]int{1}, 150, 160)
	h.check("written over", gone, hole)
	h.s.Crash()
	if err := h.o.FS.Rename(aside, file); err != nil {
		t.Fatal(err)
	}
	h.s = mustOpen(t, h.o)
	h.check("back", nil)
	h.merge()
	h.check("merged", nil)
	h.reopen()
	h.check("opened again", nil)
	if h.holes() != 0 {
		t.Errorf("left: %v", h.s.disk.Manifest.Holes())
	}
}

// TestTTLAndDeletionUnderAHole: what is older than the lifetime is unset, not unknown, and
// so is what a deleted series had; a series that is sent again has no hole.
func TestTTLAndDeletionUnderAHole(t *testing.T) {
	t.Parallel()
	t.Run("lifetime", func(t *testing.T) {
		h, _, _, gone, hole := lostRewrite(t)
		for _, from := range []int64{300, chunk.Slots} {
			now := h.clock.Now().Unix()
			if err := h.s.SetTTL("b", now-(epoch+from)); err != nil {
				t.Fatal(err)
			}
			h.s.clock.Advance()
			h.from = from
			h.check(fmt.Sprint("older than ", from), gone, hole)
		}
		if err := h.s.merges.EndHoles(t.Context()); err != nil || h.holes() != 0 {
			t.Fatalf("%d holes, all is older than the lifetime: %v", h.holes(), err)
		}
		h.check("ended", gone, hole)
	})
	t.Run("deletion", func(t *testing.T) {
		h, _, _, gone, hole := lostRewrite(t)
		if _, err := h.s.DeleteSeries(t.Context(), "b", deletion.Choice{Key: key(1)}, false); err != nil {
			t.Fatal(err)
		}
		h.born = map[int]int{1: 2}
		h.check("deleted", gone, hole)
		h.put([]int{1}, 50, 60)
		h.check("sent again", gone, hole)
		h.reopen()
		h.check("opened again", gone, hole)
		h.merge()
		h.check("merged", gone, hole)
		if _, err := h.s.DeleteSeries(t.Context(), "b", deletion.Choice{Key: key(1)}, false); err != nil {
			t.Fatal(err)
		}
		h.born[1] = 3
		mustFlush(t, h.s)
		h.merge()
		h.check("deleted again", gone, hole)
		if h.holes() != 0 {
			t.Errorf("a hole of no series: %v", h.s.disk.Manifest.Holes())
		}
	})
}

// TestSnapshotsKeepHoles: a snapshot and its restore, before and behind a merge.
func TestSnapshotsKeepHoles(t *testing.T) {
	t.Parallel()
	for _, merged := range []bool{false, true} {
		h, _, _, gone, hole := lostRewrite(t)
		h.put([]int{1}, 10, 20)
		if merged {
			h.merge()
		}
		if _, err := NewOperations(h.s).Snapshot(t.Context(), "snap"); err != nil {
			t.Fatal(err)
		}
		h.s.Crash()
		if _, err := snapshot.Restore(t.Context(),
			snapshot.RestoreOptions{FS: h.o.FS, From: "/data/snapshots/snap", To: "/restored",
				AllowDamage: true}); err != nil {
			t.Fatal(err)
		}
		h.o.Dir = "/restored"
		h.s = mustOpen(t, h.o)
		h.check(fmt.Sprintf("restored, merged %t", merged), gone, hole)
		h.merge()
		h.check(fmt.Sprintf("restored and merged, merged %t", merged), gone, hole)
	}
}

// TestAnyZeroed4KiB zeroes 4 KiB at every place of every segment, a window with rollups, an
// overlay and a flush with tombstones among them: no slot ever has an older value, nothing
// deleted is back, aggregates and reads agree, and series and chunks that the damaged file
// does not hold are whole; before and behind a merge.
func TestAnyZeroed4KiB(t *testing.T) {
	t.Parallel()
	h := newHoleLayers(t)
	drivetest.FillUnit(t, h.s, "b", key(holeSeries))
	h.put([]int{0, 1, 2}, 0, holeSlots)
	h.merge()
	h.put([]int{1}, 100, 200)
	h.put([]int{0}, 800, 900)
	if _, err := h.s.DeleteSeries(t.Context(), "b", deletion.Choice{Key: key(2)}, false); err != nil {
		t.Fatal(err)
	}
	h.put([]int{2}, 5, 15)
	var metas []manifest.Segment
	for _, seg := range h.s.versions.Latest().Segments {
		metas = append(metas, seg.Meta)
	}
	if err := h.s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	h.s.Crash()
	image := h.o.FS
	last := func(n int, slot int64) uint64 {
		for i := len(h.words) - 1; i >= 0; i-- {
			if w := h.words[i][[2]int64{int64(n), slot}]; w != 0 && (n != 2 || i == len(h.words)-1) {
				return w
			}
		}
		return 0
	}
	h.checkSpared(image, metas, last)
	for i := range metas {
		size, step := fileSize(t, image, "/data/"+datadir.Segment(metas[i].Kind, metas[i].Seq)),
			int64(512)
		if testing.Short() {
			step = 2048
		}
		for at := int64(0); at < size; at += step {
			o := h.o
			o.FS = vfs.NewMem()
			if ok, err := vfs.Clone(image, o.FS, "/data", "/data"); !ok || err != nil {
				t.Fatal(ok, err)
			}
			zero(t, o.FS, "/data/"+datadir.Segment(metas[i].Kind, metas[i].Seq), at, min(4096, size-at))
			what := fmt.Sprintf("%s, 4 KiB at %d of %d", datadir.Segment(metas[i].Kind, metas[i].Seq), at,
				size)
			z := &holeLayers{t: t, s: mustOpen(t, o), clock: h.clock, o: o, merges: h.merges}
			z.checkNoOlder(what, &metas[i], last)
			z.put([]int{1}, 2000, 2001)
			z.merge()
			z.checkNoOlder(what+", merged", &metas[i], func(n int, slot int64) uint64 {
				if n == 1 && slot == 2000 {
					return point.FromInt(100_000 + slot)
				}
				return last(n, slot)
			})
			z.s.Crash()
		}
	}
	h.s = mustOpen(t, h.o)
}

// checkSpared zeroes some bytes at many places: where only rollups, names or tombstones are
// damaged no point is missing and none is unknown.
func (h *holeLayers) checkSpared(image vfs.FS, metas []manifest.Segment,
	last func(n int, slot int64) uint64) {
	h.t.Helper()
	spared := map[string]int{}
	for i := range metas {
		file := datadir.Segment(metas[i].Kind, metas[i].Seq)
		size := fileSize(h.t, image, "/data/"+file)
		for at := int64(0); at < size; at += 24 {
			o := h.o
			o.FS = vfs.NewMem()
			if ok, err := vfs.Clone(image, o.FS, "/data", "/data"); !ok || err != nil {
				h.t.Fatal(ok, err)
			}
			zero(h.t, o.FS, "/data/"+file, at, min(16, size-at))
			part, ok := onlyRedundant(h.t, &o, &metas[i])
			if !ok {
				continue
			}
			spared[part]++
			z := &holeLayers{t: h.t, s: mustOpen(h.t, o), clock: h.clock, o: o, merges: h.merges}
			z.checkAll(fmt.Sprintf("%s, %s damaged at %d of %d", file, part, at, size), last)
			z.s.Crash()
		}
	}
	if spared["rollups"] == 0 || spared["series"] == 0 {
		h.t.Errorf("damage by part: %v", spared)
	}
}

// checkAll wants every slot to be the last write, and none unknown: damage to rollups, to
// names and to tombstones takes no point.
func (h *holeLayers) checkAll(what string, last func(n int, slot int64) uint64) {
	h.t.Helper()
	for n := range holeSeries {
		want := make([]uint64, holeSlots)
		for slot := range want {
			want[slot] = last(n, int64(slot))
		}
		h.checkSeries(what, n, want, make([]bool, holeSlots))
	}
}

// checkNoOlder wants every slot to be the last write or nothing, the latter only in a
// range of the damaged segment.
func (h *holeLayers) checkNoOlder(what string, damaged *manifest.Segment,
	last func(n int, slot int64) uint64) {
	h.t.Helper()
	info, err := h.s.BucketByName("b")
	if err != nil {
		h.t.Fatal(err)
	}
	for n := range holeSeries {
		got := make([]uint64, holeSlots)
		st, err := h.s.Series(info, key(n)).ReadCounted(h.t.Context(), epoch, got)
		if err != nil {
			h.t.Fatal(err)
		}
		unknown := make([]bool, holeSlots)
		for _, u := range st.Unknown {
			for slot := u.From; slot < u.Past; slot++ {
				unknown[slot-epoch] = true
			}
		}
		for slot, w := range got {
			switch want := last(n, int64(slot)); {
			case w == want:
			case w != 0:
				h.t.Fatalf("%s: series %d slot %d is %d, want %d or nothing", what, n, slot, point.Int(w),
					point.Int(want))
			case !holdsSlot(damaged, info.ID, epoch+int64(slot)):
				h.t.Fatalf("%s: series %d slot %d is missing, which the damaged file does not hold", what, n,
					slot)
			}
		}
		h.checkSeries(what, n, got, unknown)
	}
}

func holdsSlot(m *manifest.Segment, bucket uint64, slot int64) bool {
	for _, r := range m.Ranges {
		if r.Bucket == bucket && r.First <= slot/chunk.Slots && slot/chunk.Slots < r.Past {
			return true
		}
	}
	return false
}

func zero(t *testing.T, fs vfs.FS, path string, at, n int64) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, n), at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTheSecondFlushAfterAStartIsMarked: a group that was used for the first time after a
// start has flushed little itself; what it flushed before the start still lies below.
func TestTheSecondFlushAfterAStartIsMarked(t *testing.T) {
	t.Parallel()
	h := newHoleLayers(t)
	h.put([]int{0, 1, 2}, 0, holeSlots)
	h.reopen()
	h.put([]int{1}, 100, 200)
	file := "/data/" + h.put([]int{1}, 650, 807)
	h.s.Crash()
	if err := h.o.FS.Remove(file); err != nil {
		t.Fatal(err)
	}
	h.s = mustOpen(t, h.o)
	h.check("lost", map[int]bool{2: true}, unknownDeleteSequence{1, 0, 2 * chunk.Slots, 2})
}

// TestHolesOfManyLosses: rewrites of random series and slots, some lost, written again,
// merged and opened in any order: reads equal the list of layers, slot by slot.
func TestHolesOfManyLosses(t *testing.T) {
	t.Parallel()
	rounds := uint64(12)
	if testing.Short() {
		rounds = 4
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 9))
		h := newHoleLayers(t)
		h.put([]int{0, 1, 2}, 0, holeSlots)
		gone, holes := map[int]bool{}, []unknownDeleteSequence(nil)
		for step := range 12 {
			what := fmt.Sprintf("seed %d step %d", seed, step)
			switch from := r.Int64N(holeSlots - 10); r.IntN(5) {
			case 0, 1:
				h.put([]int{r.IntN(3)}, from, min(holeSlots, from+1+r.Int64N(900)))
			case 2: // a rewrite that is lost
				n, past := r.IntN(3), min(holeSlots, from+1+r.Int64N(900))
				file := h.put([]int{n}, from, past)
				h.s.Crash()
				if err := h.o.FS.Remove("/data/" + file); err != nil {
					t.Fatal(err)
				}
				h.s = mustOpen(t, h.o)
				layer := len(h.words) - 1
				gone[layer] = true
				holes = append(holes,
					unknownDeleteSequence{n, from - from%chunk.Slots,
						(past + chunk.Slots - 1) / chunk.Slots * chunk.Slots, layer})
			case 3:
				h.merge()
			case 4:
				h.reopen()
			}
			h.check(what, gone, holes...)
		}
		for n := range 3 {
			h.put([]int{n}, 0, holeSlots)
		}
		h.clock.Advance(time.Hour)
		h.merge()
		h.check(fmt.Sprintf("seed %d, all written again", seed), gone, holes...)
		if h.holes() != 0 {
			t.Errorf("seed %d: left: %v", seed, h.s.disk.Manifest.Holes())
		}
		h.s.Crash()
		h.s = mustOpen(t, h.o)
	}
}

package store

import (
	"testing"
	"time"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/store/drivetest"
)

// silence lets a series of h fall silent until it loses its column to another one.
func (h *holeLayers) silence(series int) {
	h.t.Helper()
	b := h.s.buckets.Get("b")
	next := 100
	for range 8 {
		x := mustSession(h.t, h.s, "b")
		for range 200 {
			x.Point(key(next), uint64(h.clock.Now().Unix()), point.FromInt(1))
			next++
		}
		x.Close()
		if ref, ok := h.s.columns.Index.Lookup(b.SeriesID(key(series))); !ok || ref.Inactive() {
			return
		}
		h.clock.Advance(10 * time.Minute)
		h.s.clock.Advance()
		h.s.upkeep.EverySecond()
		mustFlush(h.t, h.s)
	}
	h.t.Fatalf("series %d still has a column", series)
}

// TestAnInactiveSeriesReturnsUnderAHole: what is unknown of a series stays so while it has
// no column and when it gets another one; what it writes then lies over the hole. Where that
// write is lost in turn, its chunk is unknown: it is marked, whatever its new group flushed.
func TestAnInactiveSeriesReturnsUnderAHole(t *testing.T) {
	t.Parallel()
	h, _, _, gone, hole := lostRewrite(t)
	h.silence(1)
	h.check("inactive", gone, hole)
	h.put([]int{1}, 150, 160)
	h.check("returned", gone, hole)
	h.reopen()
	h.check("returned and opened again", gone, hole)
	h.silence(0)
	h.check("another one inactive", gone, hole)
	// returns, below what the bucket has flushed
	file := h.put([]int{0}, chunk.Slots+10, chunk.Slots+20)
	layer := len(h.words) - 1
	h.s.Crash()
	if err := h.o.FS.Remove("/data/" + file); err != nil {
		t.Fatal(err)
	}
	h.s = mustOpen(t, h.o)
	gone[layer] = true
	lost := unknownDeleteSequence{0, chunk.Slots, 2 * chunk.Slots, layer}
	h.check("its return is lost", gone, hole, lost)
	h.checkOlder(gone)
}

// TestOlderValuesUnderAChunkThatDoesNotDecode: a rewrite with right checksums that no encoder
// makes is unknown in exactly its chunk; asked for older values, a read gives those below,
// and nothing of what was decoded before the damage was met.
func TestOlderValuesUnderAChunkThatDoesNotDecode(t *testing.T) {
	t.Parallel()
	h := newHoleLayers(t)
	h.put([]int{0, 1, 2}, 0, holeSlots)
	file := h.put([]int{1}, 100, 900)
	h.put([]int{1}, 300, 310)
	bucket := mustBucket(t, h.s, "b")
	if err := h.s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	h.s.Crash()
	n := drivetest.Spoil(t, h.o.FS, "/data/"+file, bucket, key(1), epoch/chunk.Slots)
	if n != chunk.Slots-100 {
		t.Fatalf("%d points were spoilt", n)
	}
	h.s = mustOpen(t, h.o)
	for slot := range int64(chunk.Slots) { // the other chunk of the rewrite is whole
		delete(h.words[1], [2]int64{1, slot})
	}
	hole := unknownDeleteSequence{1, 0, chunk.Slots, 1}
	h.check("spoilt", nil, hole)
	h.checkOlder(nil)
}

// onlyRedundant reports whether there is damage to a segment, and all of it is to its
// rollups, to names or to tombstones: it returns which.
func onlyRedundant(t *testing.T, o *Options, m *manifest.Segment) (part string, ok bool) {
	t.Helper()
	r, err := segment.Open(o.FS, o.Dir+"/"+datadir.Segment(m.Kind, m.Seq))
	if err != nil {
		return "", false
	}
	defer func() { _ = r.Close() }()
	for _, d := range segment.Damages(r.Verify()) {
		if part = d.Part; part != "rollups" && part != "series" {
			return "", false
		}
	}
	return part, part != ""
}

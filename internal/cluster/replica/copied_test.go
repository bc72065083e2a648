package replica

import (
	"testing"
	"time"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// A point that a copy brought before its write is accepted once; what was there already is a
// duplicate.
func TestACopyBeforeItsWriteIsNoDuplicate(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	defer n.stop(t)
	id, number := n.series(n.bucket(t, "b", false), 1), uint64(0)
	p := partitionOf(id)
	write := func(what string, want replication.Counts, slot uint64, word int64) {
		t.Helper()
		number++
		got, _, err := n.Write(key(number, p),
			replication.Change{Partition: p, Rows: []replication.Row{row(id, slot, word)}})
		if err != nil || got != want {
			t.Errorf("%s: %+v, want %+v: %v", what, got, want, err)
		}
	}
	merge := func(slot uint64, word int64) {
		t.Helper()
		if _, err := n.Merge(replication.Change{
			Rows: []replication.Row{row(id, slot, word)}}); err != nil {
			t.Fatal(err)
		}
	}
	accepted, duplicate, conflicting := replication.Counts{Accepted: 1},
		replication.Counts{Duplicate: 1}, replication.Counts{Conflicting: 1}
	merge(today, 5)
	merge(today, 5) // from another member
	write("the first", accepted, today, 5)
	write("the second", duplicate, today, 5)
	write("before any copy", accepted, today+1, 5)
	merge(today+1, 5)
	write("again behind the copy", duplicate, today+1, 5)
	merge(today+1, 7)
	write("what took the place of another", duplicate, today+1, 7)
	merge(today+2, 9)
	write("another than the copy", conflicting, today+2, 3)
	write("the one of the copy", accepted, today+2, 9)
	merge(today+3, 1)
	merge(today+4, 1)
	n.now.Add(int64(copiedFor.Seconds()))
	write("behind the copy", accepted, today+3, 1)
	n.now.Add(int64(copiedFor.Seconds()))
	write("long behind the copy", duplicate, today+4, 1)
}

// Copies of many chunks are remembered, whenever their slots are, and of too many those of the
// generation before are not.
func TestManyCopiesAreRemembered(t *testing.T) {
	var c copyMemory
	var id metric.SeriesID
	at := time.Unix(today, 0)
	words := make([]uint64, chunk.Slots)
	for i := range words {
		words[i] = point.FromInt(int64(i))
	}
	words[5] = point.Unset
	taken := func(number int64, slot int) bool {
		of, place := placeOf(id, 0, number*chunk.Slots+int64(slot))
		return c.take(of, place, at)
	}
	for number := range int64(2 * maxCopied) {
		of, _ := placeOf(id, 0, number*chunk.Slots)
		c.addChunk(of, words, at)
	}
	for number := range int64(2 * maxCopied) {
		for _, slot := range []int{0, chunk.Slots - 1} {
			if !taken(number, slot) || taken(number, slot) {
				t.Fatalf("slot %d of chunk %d was not remembered once", slot, number)
			}
		}
		if taken(number, 5) {
			t.Fatalf("what is unset in chunk %d came as a copy", number)
		}
	}
	of, place := placeOf(id, 0, 2*maxCopied*chunk.Slots)
	c.add(of, place, at)
	if taken(0, 1) || !taken(maxCopied, 1) || !taken(2*maxCopied, 0) {
		t.Error("of too many chunks not the oldest are forgotten")
	}
	one, _ := placeOf(id, 0, 1)
	if other, _ := placeOf(id, 2, 1); one == other {
		t.Error("a slot of another life has the same place")
	}
}

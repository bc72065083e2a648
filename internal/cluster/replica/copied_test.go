package replica

import (
	"testing"
	"time"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/metric"
)

// A point that a copy brought before its write is accepted once; what was there already is a duplicate.
func TestACopyBeforeItsWriteIsNoDuplicate(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	defer n.stop(t)
	id, number := n.series(n.bucket(t, "b", false), 1), uint64(0)
	p := partitionOf(id)
	write := func(what string, want replication.Counts, slot uint64, word int64) {
		t.Helper()
		number++
		got, _, err := n.Write(key(number, p), replication.Change{Partition: p, Rows: []replication.Row{row(id, slot, word)}})
		if err != nil || got != want {
			t.Errorf("%s: %+v, want %+v: %v", what, got, want, err)
		}
	}
	merge := func(slot uint64, word int64) {
		t.Helper()
		if _, err := n.Merge(replication.Change{Rows: []replication.Row{row(id, slot, word)}}); err != nil {
			t.Fatal(err)
		}
	}
	accepted, duplicate, conflicting := replication.Counts{Accepted: 1}, replication.Counts{Duplicate: 1}, replication.Counts{Conflicting: 1}
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
	n.now.Add(int64(copiedFor.Seconds()))
	write("long behind the copy", duplicate, today+3, 1)
}

// Of many slots in one place of the table the oldest goes.
func TestTheOldestCopyIsForgotten(t *testing.T) {
	var c copied
	at := time.Unix(today, 0)
	for i := range uint64(copiedWays + 1) {
		c.add(i+1, at.Add(time.Duration(i)*time.Second))
	}
	for i := range uint64(copiedWays + 1) {
		if got := c.take(i+1, at.Add(copiedWays*time.Second)); got != (i > 0) {
			t.Errorf("%d: %t", i, got)
		}
	}
	if a, b := placeOf(metric.SeriesID{1}, 0, 1), placeOf(metric.SeriesID{1}, 2, 1); a == b {
		t.Error("a slot of another life has the same place")
	}
}

package compaction

import (
	"math"
	"slices"
	"testing"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/metric"
)

// A segment that was merged away needs its tombstones while its file may be there: a start that
// takes it in would show what was deleted.
func TestATombstoneStaysUntilTheFileIsGone(t *testing.T) {
	n := newNode(t)
	seg := n.flush(func(i int) []byte { return []byte{1, byte(i)} }, 1, 1000)
	stone := version.Tombstone{ID: metric.SeriesID(hashOf(0)),
		DeleteSequence: n.c.o.Dir.TakeDeletion(), LSN: 1}
	all := []*version.Segment{seg}
	gone := func(s *version.Segment) bool { return s == seg }
	n.c.o.Dir.NoteDropped(all, gone)
	n.c.o.Versions.Publish(func(v *version.Version) { v.Delete(1, version.Tombstones{stone}) })
	// Somebody reads the segment: its file stays.
	reads := n.c.o.Versions.Pin()
	n.c.o.Versions.Publish(func(v *version.Version) { v.Drop(gone) })
	left := func() int {
		t.Helper()
		if err := n.c.DropTombstones(); err != nil {
			t.Fatal(err)
		}
		return len(n.c.o.Versions.Latest().Tombstones(1))
	}
	if left() != 1 {
		t.Error("the tombstone has gone before the file")
	}
	n.c.o.Versions.Unpin(reads)
	if left() != 0 {
		t.Error("the tombstone stays behind the file")
	}
}

// Of a series that a hole hides a living slot of it is not known whether it has points: it does not
// expire. One hole is enough, and one below the lifetime of the bucket is none.
func TestHolesKeepSeries(t *testing.T) {
	n := newNode(t)
	n.buckets[0].TTL = 100
	series := func(i int) hole.Prefix { return hole.PrefixOf(hashOf(i)) }
	lives := n.c.oldest(&n.buckets[0])
	over := func(i int, from, past int64, source uint64) hole.Hole {
		return hole.Hole{Bucket: 1, Low: series(i), High: series(i), From: from, Past: past,
			At: hole.Position{Generation: source}, Source: source}
	}
	n.c.o.Versions.Publish(func(v *version.Version) {
		v.ShowHoles(n.buckets, []hole.Hole{
			over(0, lives, lives+1, 7),                                            // its first living slot
			over(1, 0, lives, 8),                                                  // older ones only
			over(2, lives-1, lives+50, 9), over(2, lives+60, math.MaxInt64/2, 10), // two
			{Bucket: 2, Low: 0, High: math.MaxUint64, Past: math.MaxInt64, Source: 11}, // of another bucket
		})
	})
	got := n.c.outsideHoles(&n.buckets[0], []segment.Hash{hashOf(0), hashOf(1), hashOf(2), hashOf(3)})
	if want := []segment.Hash{hashOf(1), hashOf(3)}; !slices.Equal(got, want) {
		t.Errorf("%x may expire, want %x", got, want)
	}
}

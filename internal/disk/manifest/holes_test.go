package manifest

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/model/buckets"
)

func drawHoles(rt *rapid.T, e *Edit) {
	bucket := rapid.Uint64Range(1, 6)
	draw := func() hole.Hole {
		low, from := rapid.Uint64Range(0, 3).Draw(rt, "low"), rapid.Int64Range(-2, 2).Draw(rt, "from")
		return hole.Hole{Bucket: bucket.Draw(rt, "bucket"), Low: low, High: low +
			rapid.Uint64Range(0, 2).Draw(rt, "series"), From: from, Past: from +
			rapid.Int64Range(1, 3).Draw(rt, "slots"),
			At: hole.Position{Generation: rapid.Uint64Range(0, 2).Draw(rt, "at"),
				Window: rapid.Bool().Draw(rt, "window")},
			Cause: hole.Cause(rapid.IntRange(0, 3).Draw(rt, "cause"))}
	}
	for range rapid.IntRange(0, 3).Draw(rt, "holes") {
		e.AddHoles = append(e.AddHoles, draw())
	}
	for range rapid.IntRange(0, 2).Draw(rt, "ended") {
		e.EndHoles = append(e.EndHoles, draw())
	}
	for range rapid.IntRange(0, 2).Draw(rt, "buckets") {
		e.Highest = append(e.Highest,
			Highest{Bucket: bucket.Draw(rt, "bucket"), Slot: rapid.Int64Range(-1, 9).Draw(rt, "slot")})
	}
	for i := range e.AddSegments {
		if rapid.Bool().Draw(rt, "marked") {
			e.AddSegments[i].Marks = hole.MarksOf([]hole.Mark{
				{Bucket: bucket.Draw(rt, "bucket"), First: 1, Past: 3, Low: 4, High: 5}})
		}
	}
}

// TestHolesOfAState: they are those that were added and have not ended, but for
// deleted buckets; the highest slots never fall.
func TestHolesOfAState(t *testing.T) {
	one := hole.Hole{Bucket: 1, Low: 1, High: 2, From: 0, Past: 720, At: hole.Position{Generation: 3},
		Cause: hole.File, Source: 3}
	two := one
	two.Bucket = 2
	next := one
	next.From, next.Past = 720, 800
	var s State
	s.apply(&Edit{AddHoles: []hole.Hole{one, two}, Slots: Slots{Highest: []Highest{{1, 5}, {2, 9}}}})
	s.apply(&Edit{AddHoles: []hole.Hole{next}, Slots: Slots{Highest: []Highest{{1, 4}}}})
	both := one
	both.Past = 800
	if want := []hole.Hole{both, two}; !reflect.DeepEqual(s.Holes, want) {
		t.Fatalf("holes %v, want %v", s.Holes, want)
	}
	s.apply(&Edit{DeleteBuckets: []buckets.Deletion{{ID: 2}}})
	if want := []Highest{{1, 5}}; !reflect.DeepEqual(s.Highest, want) || len(s.Holes) != 1 {
		t.Fatalf("highest slots %v, want %v; holes %v", s.Highest, want, s.Holes)
	}
	s.apply(&Edit{EndHoles: []hole.Hole{both}})
	if len(s.Holes) != 0 {
		t.Fatalf("holes %v, want none", s.Holes)
	}
}

// TestLostMarks: a lost segment hides what it marked in its ranges, all of them where
// its marks are not known.
func TestLostMarks(t *testing.T) {
	s := Segment{Seq: 8, Kind: Window, Generation: 7, Ranges: []Range{{1, 0, 10}, {2, 10, 20}},
		Marks: frozenMarks()}
	at := hole.Position{Generation: 7, Window: true}
	want := []hole.Hole{
		{Bucket: 1, Low: 5, High: 1 << 63, From: 0, Past: 4 * 720, At: at, Cause: hole.File, Source: 8}}
	if got := s.LostMarks(720); !reflect.DeepEqual(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	s.Marks = hole.Marks{All: true}
	want = []hole.Hole{
		{Bucket: 1, High: hole.HighestPrefix, From: 0, Past: 7200, At: at, Cause: hole.File, Source: 8},
		{Bucket: 2, High: hole.HighestPrefix, From: 7200, Past: 14400, At: at, Cause: hole.File,
			Source: 8},
	}
	if got := s.LostMarks(720); !reflect.DeepEqual(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}

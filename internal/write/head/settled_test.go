package head

import (
	"dalmatiner/internal/model/history"
	"fmt"
	"testing"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/metric"
)

func boundGroup() *Group {
	g := NewGroup(0, 1, 60, NewArena(60), new(history.Journal))
	g.Bind(0, []byte("a"), 1, 1, metric.SeriesID{1})
	return g
}

func logOne(*account.Counts) (uint64, error) { return 1, nil }

// flushMarks flushes a group and returns which chunks of its first column are
// marked. settled is what is known of all groups of the bucket.
func flushMarks(t *testing.T, g *Group, settled int64, abort bool) map[int64]bool {
	t.Helper()
	g.CloseBlocks(func(uint64, int64, int64) bool { return true })
	var s Sealer
	for ok := true; ok; {
		_, ok = s.Seal(g)
	}
	c := g.BeginFlush()
	if c.Unsettled {
		c.Settled = max(c.Settled, settled)
	}
	marks := make(map[int64]bool)
	var f Flusher
	err := f.Column(&c, 0, func(number int64, _ int, _ []byte, _, marked bool) error {
		marks[number] = marked
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if abort {
		g.AbortFlush()
	} else {
		g.EndFlush()
	}
	return marks
}

func expectMarks(t *testing.T, got map[int64]bool, want map[int64]bool) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("marks of chunks %v, want %v", got, want)
	}
}

// TestMarksOfAFlush: a chunk is marked if it has late points or a slot not above the
// settled slot, and not otherwise.
func TestMarksOfAFlush(t *testing.T) {
	g := boundGroup()
	one := []uint64{1}
	write := func(slot int64) {
		t.Helper()
		if _, err := g.Apply(Write{Slot: slot, Words: one, Epoch: g.Columns().Epoch()}, 1,
			logOne); err != nil {
			t.Fatal(err)
		}
	}
	const base = 10 * chunk.Slots
	write(base + 100)
	expectMarks(t, flushMarks(t, g, -1, false), map[int64]bool{10: false})
	write(base + 101) // in the same block, behind what was flushed
	expectMarks(t, flushMarks(t, g, base+500, false), map[int64]bool{10: false})
	write(base + 101) // flushed before: it is late
	write(base + 2*chunk.Slots)
	expectMarks(t, flushMarks(t, g, base, false), map[int64]bool{10: true, 12: false})

	// A group that got a series does not know what others have flushed of it.
	g.Bind(1, []byte("b"), 1, 1, metric.SeriesID{2})
	write(base + 2*chunk.Slots + 60)
	expectMarks(t, flushMarks(t, g, base+2*chunk.Slots+60, true), map[int64]bool{12: true})
	expectMarks(t, flushMarks(t, g, base+2*chunk.Slots+60, false), map[int64]bool{12: true})
	write(base + 2*chunk.Slots + 61)
	expectMarks(t, flushMarks(t, g, base+9*chunk.Slots, false), map[int64]bool{12: false})
}

// TestLatePointsSettle: what came late and was flushed is settled, though no block held
// it.
func TestLatePointsSettle(t *testing.T) {
	g := boundGroup()
	for i := range int64(MaxOpen) {
		if _, err := g.Apply(Write{Slot: 6000 + 60*i, Words: []uint64{1}, Epoch: g.Columns().Epoch()}, 1,
			logOne); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Apply(Write{Slot: 5000, Words: []uint64{1}, Epoch: g.Columns().Epoch()}, 1,
		logOne); err != nil {
		t.Fatal(err)
	}
	if c := g.BeginFlush(); c.Highest != 5000 {
		t.Fatalf("the highest slot of the capture is %d, want that of the late point, 5000", c.Highest)
	}
	g.EndFlush()
	if c := g.BeginFlush(); c.Settled != 5000 || c.Highest != -1 {
		t.Fatalf("settled %d, highest %d; want 5000 and none", c.Settled, c.Highest)
	}
	g.EndFlush()
}

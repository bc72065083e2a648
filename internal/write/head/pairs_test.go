package head

import (
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
)

// pairModel is the naive truth of a column of pairs, and what was flushed of it.
type pairModel struct {
	values, others   map[int64]uint64
	flushed, belongs map[int64]uint64
}

func (m *pairModel) write(slot int64, value, other uint64) {
	switch {
	case value > point.Stale:
		m.values[slot], m.others[slot] = value, other
	case value == point.Stale && m.values[slot] == point.Unset:
		m.values[slot] = value
	}
}

func (m *pairModel) check(t *rapid.T, g *Group) {
	t.Helper()
	var values, others [1500]uint64
	for i := range values {
		values[i], others[i] = m.flushed[int64(i)], m.belongs[int64(i)]
	}
	if _, err := g.ReadPair(0, g.Columns().ID(0), 0, values[:], others[:]); err != nil {
		t.Fatal(err)
	}
	for i, got := range values {
		if slot := int64(i); got != m.values[slot] || others[i] != m.others[slot] {
			t.Fatalf("slot %d holds %x with %x, want %x with %x", slot, got, others[i], m.values[slot],
				m.others[slot])
		}
	}
}

// A stale marker never takes what belongs to a value from it, in whatever part of the head both
// are.
func TestStaleMarkersLeavePairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := testGroup(2)
		g.blocks.form.sparse = rapid.IntRange(0, sparseBlocks).Draw(t, "sparse")
		m := pairModel{make(map[int64]uint64), make(map[int64]uint64), make(map[int64]uint64),
			make(map[int64]uint64)}
		var sealer Sealer
		for n := range rapid.Int64Range(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0:
				g.CloseBlocks(func(uint64, int64, int64) bool { return true })
			case 1, 2:
				for _, ok := sealer.Seal(g); ok; {
					_, ok = sealer.Seal(g)
				}
				if rapid.Bool().Draw(t, "flush") {
					flushPair(t, g, &m)
				}
			default:
				w := Write{Slot: rapid.Int64Range(0, 1400).Draw(t, "slot"), Pairs: true,
					Down: rapid.Bool().Draw(t, "down")}
				points := 1
				if w.Down {
					points = rapid.IntRange(1, 99).Draw(t, "points")
				}
				for i := range points {
					value, other := drawWord(t, -1), uint64(point.Unset)
					if value > point.Stale {
						other = point.FromInt(n*100 + int64(i))
					}
					w.Words = append(w.Words, value, other)
					m.write(w.Slot+int64(i), value, other)
				}
				if _, err := g.Apply(w, 0, func(*account.Counts) (uint64, error) {
					return uint64(n) + 1, nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			m.check(t, g)
		}
	})
}

// flushPair moves what is sealed and late into the maps that stand for the segments.
func flushPair(t *rapid.T, g *Group, m *pairModel) {
	t.Helper()
	c := g.BeginFlush()
	var f Flusher
	for col, to := range []map[int64]uint64{m.flushed, m.belongs} {
		err := f.Column(&c, col, func(number int64, _ int, data []byte, _, _ bool) error {
			var words [chunk.Slots]uint64
			err := chunk.DecodeRange(words[:], data, 0)
			for i, w := range words {
				slot := number*chunk.Slots + int64(i)
				to[slot] = point.Overwrite(w, to[slot])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	g.EndFlush()
}

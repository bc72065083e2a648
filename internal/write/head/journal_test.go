package head

import (
	"math"
	"testing"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/history"
	"dalmatiner/internal/model/metric"
)

// TestWritesTellTheJournal their lowest slot, deletions that anything may change, and what only
// moves points says nothing.
func TestWritesTellTheJournal(t *testing.T) {
	var j history.Journal
	g := NewGroup(0, 1, testHeight, NewArena(testHeight), &j)
	for col, name := range []string{"a", "b"} {
		g.Bind(col, []byte(name), 1, 0, metric.Series(1, []byte(name)))
	}
	lsn := uint64(0)
	write := func(w Write) func() {
		return func() {
			if _, err := g.Apply(w, 0, func(*account.Counts) (uint64, error) {
				lsn++
				return lsn, nil
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var s Sealer
	const nothing = math.MaxInt64
	for _, step := range []struct {
		name  string
		below int64
		do    func()
	}{
		{"row", 7200, write(Write{Slot: 7200, Words: []uint64{1, 2}})},
		{"column", 7201, write(Write{Slot: 7201, Words: []uint64{1, 2, 3}, Down: true})},
		{"pairs", 7209, write(Write{Slot: 7209, Words: []uint64{1, 2}, Pairs: true})},
		{"pairs down", 7210,
			write(Write{Slot: 7210, Words: []uint64{1, 2, 3, 4}, Pairs: true, Down: true})},
		{"runs", 7204, write(Write{
			Slot: 3, Runs: []Run{{Slot: 7205, Points: 1}, {Slot: 7204, Points: 1, Column: 1}},
			Words: []uint64{1, 2}})},
		{"future", 90000, write(Write{Slot: 90000, Words: []uint64{1}})},
		{"close", nothing, func() { g.CloseBlocks(func(uint64, int64, int64) bool { return true }) }},
		{"seal", nothing, func() {
			for _, ok := s.Seal(g); ok; {
				_, ok = s.Seal(g)
			}
		}},
		{"late", 7203, write(Write{Slot: 7203, Words: []uint64{1}})},
		{"long ago", 3600, write(Write{Slot: 3610, Words: []uint64{1}})},
		{"stale", nothing, write(Write{Slot: 5, Words: []uint64{1}, Epoch: 7})},
		{"flush", nothing, func() { g.BeginFlush(); g.EndFlush() }},
		{"delete", history.Nothing, func() {
			if _, err := g.Delete(Mask{2}, 1, false, func(Mask) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}},
		{"silent", nothing, func() {
			g.NoteCommit(1000, 10)
			g.Deactivate(10, 1, func(int, []byte, metric.SeriesID) {})
		}},
	} {
		m := j.Mark(7300)
		step.do()
		if got := j.Since(m, 0).Below; got != step.below {
			t.Errorf("%s: nothing changed below %d, want %d", step.name, got, step.below)
		}
	}
}

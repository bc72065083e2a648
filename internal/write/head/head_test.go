package head

import (
	"dalmatiner/internal/model/history"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/metric"
)

const testHeight = 60

func testGroup(columns int) *Group {
	g := NewGroup(0, 1, testHeight, NewArena(testHeight), new(history.Journal))
	for i := range columns {
		key := fmt.Appendf(nil, "series %d", i)
		g.Bind(i, key, 0, 0, metric.Series(1, key))
	}
	return g
}

// model is the naive truth: the last value of every slot of every column, or its stale marker.
type model struct {
	words  map[[2]int64]uint64
	counts account.Counts
}

func (m *model) write(w Write) {
	for i, word := range w.Words {
		col, slot := int64(w.Column), w.Slot
		if w.Down {
			slot += int64(i)
		} else {
			col += int64(i)
		}
		lay(m.words, [2]int64{col, slot}, word)
	}
}

// lay writes a word to a slot, by the definition.
func lay(words map[[2]int64]uint64, at [2]int64, word uint64) {
	if word > point.Stale || word == point.Stale && words[at] == point.Unset {
		words[at] = word
	}
}

func (m *model) check(t *rapid.T, g *Group, flushed map[[2]int64]uint64, col int, from int64,
	n int) {
	t.Helper()
	dst := make([]uint64, n)
	for i := range dst {
		dst[i] = flushed[[2]int64{int64(col), from + int64(i)}]
	}
	if _, err := g.Read(col, g.Columns().ID(col), from, dst); err != nil {
		t.Fatal(err)
	}
	for i, got := range dst {
		if want := m.words[[2]int64{int64(col), from + int64(i)}]; got != want {
			t.Fatalf("column %d slot %d holds %016x, want %016x", col, from+int64(i), got, want)
		}
	}
}

// flush moves everything sealed and late into the map that stands for the
// segments, of the first columns: newer chunks over older ones.
func flush(t *rapid.T, g *Group, flushed map[[2]int64]uint64, columns int) {
	t.Helper()
	c := g.BeginFlush()
	var f Flusher
	for col := range columns {
		last := int64(-1)
		err := f.Column(&c, col, func(number int64, points int, data []byte, _, _ bool) error {
			if number <= last {
				return fmt.Errorf("chunk %d of column %d comes after %d", number, col, last)
			}
			last = number
			var words [chunk.Slots]uint64
			if err := chunk.DecodeRange(words[:], data, 0); err != nil {
				return err
			}
			for i, w := range words {
				if w != 0 {
					lay(flushed, [2]int64{int64(col), number*chunk.Slots + int64(i)}, w)
					points--
				}
			}
			if points != 0 {
				return fmt.Errorf("chunk %d of column %d: the count is %d too high", number, col, points)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever is written, sealed and flushed in whatever order, a reader that
// lays the head over what was flushed sees the last write of every slot, and
// every point is counted once (I3).
func TestReadsEqualTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const columns, slots = 5, 1500
		width := columns
		if rapid.Bool().Draw(t, "full group") {
			width = Width // complete blocks close behind newer ones
		}
		g := testGroup(width)
		g.blocks.form.sparse = rapid.IntRange(0, sparseBlocks).Draw(t, "thin")
		m := model{words: make(map[[2]int64]uint64)}
		flushed := make(map[[2]int64]uint64)
		var sealer Sealer
		lsn, written := uint64(0), uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				g.CloseBlocks(func(uint64, int64, int64) bool { return true })
			case 1, 2:
				sealer.Seal(g)
			case 3:
				for _, ok := sealer.Seal(g); ok; {
					_, ok = sealer.Seal(g)
				}
				flush(t, g, flushed, columns)
				m.check(t, g, flushed, 0, 0, slots)
				g.EndFlush()
			default:
				for _, w := range drawWrites(t, columns, width, slots) {
					lsn++
					written += uint64(len(w.Words))
					a, err := g.Apply(w, 0, func(c *account.Counts) (uint64, error) {
						m.counts.Add(c)
						return lsn, nil
					})
					if err != nil || a.Dead {
						t.Fatalf("%+v, %v", a, err)
					}
					if !w.Down {
						w.Words = w.Words[:min(len(w.Words), columns-w.Column)] // the model has no more
					}
					m.write(w)
				}
			}
			checkParts(t, g)
			col := rapid.IntRange(0, columns-1).Draw(t, "read column")
			from := rapid.Int64Range(0, slots).Draw(t, "read from")
			m.check(t, g, flushed, col, from, rapid.IntRange(0, 400).Draw(t, "read slots"))
		}
		if m.counts.ReceivedPoints() != written {
			t.Fatalf("%d points written, %d counted: %+v", written, m.counts.ReceivedPoints(), m.counts)
		}
		g.CloseBlocks(func(uint64, int64, int64) bool { return true })
		for _, ok := sealer.Seal(g); ok; {
			_, ok = sealer.Seal(g)
		}
		if c := g.BeginFlush(); c.ReplayPosition != 0 {
			t.Fatalf("nothing is open, yet the log is needed from %d", c.ReplayPosition)
		}
	})
}

// checkParts checks what the parts of a group promise between two calls.
func checkParts(t *rapid.T, g *Group) {
	t.Helper()
	s := &g.blocks
	if len(s.open) > MaxOpen || !slices.IsSortedFunc(s.open, func(b, before *block) int {
		return int(b.start - before.start - before.height)
	}) {
		t.Fatalf("%d open blocks, or some overlap", len(s.open))
	}
	if s.cur != nil && !slices.Contains(s.open, s.cur) {
		t.Fatal("the block written last is not open")
	}
	for _, b := range s.closed {
		if slices.Contains(s.open, b) || b.last >= s.closedTo {
			t.Fatalf("the closed block of slot %d is open, or its last slot %d is not behind %d", b.start,
				b.last, s.closedTo)
		}
	}
	if u := &g.unflushed; !slices.Equal(u.flushing.sealedBlocks, u.captured) {
		t.Fatalf("a flush reads %d sealed blocks and frees %d", len(u.flushing.sealedBlocks),
			len(u.captured))
	}
}

// drawWrites is one write, or so many full rows that blocks are complete.
func drawWrites(t *rapid.T, columns, width, slots int) (writes []Write) {
	if rapid.IntRange(0, 3).Draw(t, "rows") != 0 {
		return []Write{drawWrite(t, columns, slots)}
	}
	first := rapid.Int64Range(0, int64(slots)).Draw(t, "first row")
	words := slices.Repeat([]uint64{drawWord(t, 0)}, width)
	for row := range rapid.Int64Range(1, 3*testHeight).Draw(t, "full rows") {
		writes = append(writes, Write{Slot: first + row, Words: words})
	}
	return writes
}

func drawWrite(t *rapid.T, columns, slots int) Write {
	down := rapid.Bool().Draw(t, "down")
	w := Write{Down: down, Column: rapid.IntRange(0, columns-1).Draw(t, "column"),
		Slot: rapid.Int64Range(0, int64(slots)).Draw(t, "slot")}
	n := columns - w.Column
	if down {
		n = 200
	}
	for range rapid.IntRange(1, n).Draw(t, "points") {
		w.Words = append(w.Words, drawWord(t, -1))
	}
	return w
}

// drawWord draws a value, a stale marker, or, from -1 on, an unset word.
func drawWord(t *rapid.T, from int64) uint64 {
	switch v := rapid.Int64Range(from, 4).Draw(t, "value"); v {
	case -1:
		return point.Unset
	case 4:
		return point.Stale
	default:
		return point.FromInt(v)
	}
}

// usage is what a group holds.
type usage struct {
	open, sealing, sealedBlocks int // blocks and sealed blocks
	sealedBytes, lateBytes      int64
	firstLSN                    uint64 // of the oldest record it still needs, 0 = none
}

func usageOf(g *Group) usage {
	g.mu.RLock()
	defer g.mu.RUnlock()
	u := usage{open: len(g.blocks.open), sealing: len(g.blocks.closed),
		sealedBlocks: len(g.unflushed.waiting.sealedBlocks) + len(g.unflushed.flushing.sealedBlocks)}
	u.sealedBytes, u.lateBytes = g.unflushed.bytes()
	for _, b := range g.blocks.open {
		if u.firstLSN == 0 || b.firstLSN < u.firstLSN {
			u.firstLSN = b.firstLSN
		}
	}
	return u
}

func TestOldestBlockClosesForANewerOne(t *testing.T) {
	g := testGroup(1)
	closed := 0
	for i := range int64(6) {
		a, err := g.Apply(Write{Slot: i * testHeight, Words: []uint64{point.FromInt(i)}}, 0,
			func(*account.Counts) (uint64, error) { return uint64(i) + 1, nil })
		if err != nil {
			t.Fatal(err)
		}
		closed += a.Closed
	}
	if u := usageOf(g); closed != 2 || u.open != MaxOpen || u.sealing != 2 || u.firstLSN != 3 {
		t.Errorf("closed %d, usage %+v", closed, u)
	}
	// A point behind the closed blocks is late; one that would need a fifth
	// block older than all open ones never closes a newer one.
	late := func(slot int64) uint64 {
		var c account.Counts
		_, err := g.Apply(Write{Slot: slot, Words: []uint64{point.FromInt(9)}}, 0,
			func(d *account.Counts) (uint64, error) { c = *d; return 99, nil })
		if err != nil {
			t.Fatal(err)
		}
		return c.Late
	}
	if late(5) != 1 || late(2*testHeight) != 0 {
		t.Errorf("late points: %+v", usageOf(g))
	}
}

func TestADeadGroupTakesNothing(t *testing.T) {
	g := testGroup(3)
	g.Kill()
	a, err := g.Apply(Write{Words: []uint64{point.FromInt(1)}}, 0,
		func(*account.Counts) (uint64, error) {
			t.Error("a dead group logged a write")
			return 0, nil
		})
	if err != nil || !a.Dead {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAnAbortedFlushLosesNothing(t *testing.T) {
	g := testGroup(1)
	log := func(*account.Counts) (uint64, error) { return 7, nil }
	write := func(slot, v int64) {
		if _, err := g.Apply(Write{Slot: slot, Words: []uint64{point.FromInt(v)}}, 0, log); err != nil {
			t.Fatal(err)
		}
	}
	var sealer Sealer
	write(700, 1)
	g.CloseBlocks(func(uint64, int64, int64) bool { return true })
	sealer.Seal(g)
	write(10, 2)
	g.BeginFlush()
	write(10, 3)
	g.AbortFlush()
	dst := make([]uint64, 720)
	if _, err := g.Read(0, g.Columns().ID(0), 0, dst); err != nil || dst[10] != point.FromInt(3) ||
		dst[700] != point.FromInt(1) {
		t.Fatalf("slot 10 %x, slot 700 %x, %v", dst[10], dst[700], err)
	}
	if c := g.BeginFlush(); len(c.sealedBlocks) != 1 || len(c.late.column(0).runs) != 2 {
		t.Errorf("the next flush takes %d sealed blocks and %d late runs", len(c.sealedBlocks),
			len(c.late.column(0).runs))
	}
}

// A flush by hand closes blocks in the middle: the rows behind go on being
// accepted, those before are late.
func TestRowsBehindAClosedBlockAreNotLate(t *testing.T) {
	g := testGroup(1)
	var c account.Counts
	log := func(d *account.Counts) (uint64, error) { c.Add(d); return 1, nil }
	write := func(w Write) {
		t.Helper()
		if _, err := g.Apply(w, 0, log); err != nil {
			t.Fatal(err)
		}
	}
	word := []uint64{point.FromInt(1)}
	for slot := range int64(20) {
		write(Write{Slot: slot, Words: word})
	}
	g.CloseBlocks(func(uint64, int64, int64) bool { return true })
	for slot := int64(20); slot < 80; slot++ {
		write(Write{Slot: slot, Words: word})
	}
	if c.Accepted != 80 || c.Late != 0 {
		t.Errorf("accepted %d, late %d, want 80 and 0", c.Accepted, c.Late)
	}
	write(Write{Slot: 19, Words: word})
	// A run down a column across the border: five late, five duplicates.
	write(Write{Slot: 15, Words: []uint64{word[0], word[0], word[0], word[0], word[0], word[0],
		word[0], word[0], word[0], word[0]}, Down: true})
	if c.Late != 6 || c.Duplicate != 5 {
		t.Errorf("late %d, duplicates %d, want 6 and 5", c.Late, c.Duplicate)
	}
}

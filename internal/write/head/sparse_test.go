package head

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/metric"
)

// twins are two groups with the same columns: the blocks of one may be tables,
// those of the other are rows.
type twins struct {
	t      *rapid.T
	tables *Group
	rows   *Group
	pairs  bool
	lsn    uint64
	sealer [2]Sealer
}

func newTwins(t *rapid.T) *twins {
	w := &twins{t: t, tables: testGroup(Width), rows: testGroup(Width),
		pairs: rapid.Bool().Draw(t, "pairs")}
	w.rows.blocks.form.sparse = -1 << 30
	w.tables.blocks.form.sparse = rapid.IntRange(0, sparseBlocks).Draw(t, "thin")
	return w
}

func (w *twins) write(run Write) {
	w.t.Helper()
	w.lsn++
	run.Pairs = w.pairs
	var counts [2]account.Counts
	var applied [2]WriteResult
	for i, g := range []*Group{w.tables, w.rows} {
		run.Epoch = g.Columns().Epoch()
		a, err := g.Apply(run, int64(w.lsn), func(c *account.Counts) (uint64, error) {
			counts[i] = *c
			return w.lsn, nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
		applied[i] = a
	}
	if counts[0] != counts[1] || applied[0] != applied[1] {
		w.t.Fatalf("tables: %+v %+v\nrows: %+v %+v", counts[0], applied[0], counts[1], applied[1])
	}
}

// draw returns a run of up to n points.
func (w *twins) draw(n int) Write {
	t := w.t
	run := Write{Down: rapid.Bool().Draw(t, "down"),
		Column: rapid.IntRange(0, Width-1).Draw(t, "column"),
		Slot:   rapid.Int64Range(0, 900).Draw(t, "slot")}
	step := 1
	if w.pairs {
		step = 2
		run.Column &^= 1
	}
	if !run.Down {
		n = min(n, (Width-run.Column)/step)
	}
	for range rapid.IntRange(1, n).Draw(t, "points") * step {
		word := drawWord(t, -1)
		if i := len(run.Words); w.pairs && i%2 == 1 &&
			(word == point.Stale || run.Words[i-1] == point.Stale) {
			word = point.Unset // of what belongs to a value
		}
		run.Words = append(run.Words, word)
	}
	return run
}

// crowd fills so many rows that tables turn into rows.
func (w *twins) crowd() {
	words := benchWords()
	from := rapid.Int64Range(0, 900).Draw(w.t, "crowd from")
	for i := range rapid.Int64Range(1, 40).Draw(w.t, "rows") {
		w.write(Write{Slot: from + i, Words: words})
	}
}

func (w *twins) seal() {
	for i, g := range []*Group{w.tables, w.rows} {
		for _, ok := w.sealer[i].Seal(g); ok; {
			_, ok = w.sealer[i].Seal(g)
		}
	}
}

func (w *twins) flush(end func(*Group)) {
	w.t.Helper()
	w.seal()
	var got [2]bytes.Buffer
	for i, g := range []*Group{w.tables, w.rows} {
		c := g.BeginFlush()
		fmt.Fprintf(&got[i], "replay position %d\n", c.ReplayPosition)
		var f Flusher
		for col := range Width {
			err := f.Column(&c, col, func(number int64, points int, data []byte, _, _ bool) error {
				fmt.Fprintf(&got[i], "%d %d %d %x\n", col, number, points, data)
				return nil
			})
			if err != nil {
				w.t.Fatal(err)
			}
		}
	}
	w.check()
	if !bytes.Equal(got[0].Bytes(), got[1].Bytes()) {
		w.t.Fatal("the chunks of a flush differ")
	}
	end(w.tables)
	end(w.rows)
}

func (w *twins) forget() {
	w.seal() // Delete waits for it
	var want Mask
	width := 1
	if w.pairs {
		width = 2
	}
	for range 5 {
		want.Set(rapid.IntRange(0, Width/width-1).Draw(w.t, "forget") * width)
	}
	idle := rapid.Bool().Draw(w.t, "idle")
	before := w.tables.Columns()
	var got [2]DeletedCounts
	var gone [2]Mask
	for i, g := range []*Group{w.tables, w.rows} {
		if g.HeldColumns() != w.rows.HeldColumns() {
			w.t.Fatal("they hold points of different columns")
		}
		var err error
		if got[i], err = g.Delete(want, width, idle, func(m Mask) error {
			gone[i] = m
			return nil
		}); err != nil {
			w.t.Fatal(err)
		}
	}
	if got[0] != got[1] || gone[0] != gone[1] {
		w.t.Fatalf("forgotten: tables %+v of %x, rows %+v of %x", got[0], gone[0], got[1], gone[1])
	}
	for col := 0; col < Width; col += width {
		if !gone[0].Has(col) {
			continue
		}
		ids := make([]metric.SeriesID, width)
		for i := range ids {
			ids[i] = before.ID(col + i)
		}
		key := fmt.Appendf(nil, "series %d", col)
		w.tables.Bind(col, key, 0, 0, ids...)
		w.rows.Bind(col, key, 0, 0, ids...)
	}
}

func (w *twins) check() {
	w.t.Helper()
	col := rapid.IntRange(0, Width-1).Draw(w.t, "read column")
	var got [2][1100]uint64
	for i, g := range []*Group{w.tables, w.rows} {
		if _, err := g.Read(col, g.Columns().ID(col), 0, got[i][:]); err != nil {
			w.t.Fatal(err)
		}
	}
	if got[0] != got[1] {
		w.t.Fatalf("column %d reads differently", col)
	}
	if a, b := usageOf(w.tables), usageOf(w.rows); a != b {
		w.t.Fatalf("tables use %+v, rows %+v", a, b)
	}
	for _, g := range []*Group{w.tables, w.rows} {
		for _, b := range slices.Concat(g.blocks.open, g.blocks.closed) {
			set := 0
			for i := range int(g.blocks.height) * Width {
				if b.cell(i/Width, i%Width) != 0 {
					set++
				}
			}
			if set != b.set && !w.pairs { // a pair counts as two, whatever belongs to its value
				w.t.Fatalf("the block of slot %d has %d cells set, and counts %d", b.start, set, b.set)
			}
		}
	}
}

// Whatever is done to a group, nobody can tell from its answers, its counts and
// its chunks whether its blocks are tables or rows, or turned from one into the
// other.
func TestTablesEqualRows(t *testing.T) {
	turned := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"write", "write", "write", "far", "crowd", "close", "seal",
				"flush", "abort", "forget"}).Draw(t, "step") {
			case "write":
				w.write(w.draw(10))
			case "far":
				w.write(w.draw(200))
			case "crowd":
				w.crowd()
			case "close":
				for _, g := range []*Group{w.tables, w.rows} {
					g.CloseBlocks(func(uint64, int64, int64) bool { return true })
				}
			case "seal":
				w.seal()
			case "flush":
				w.flush(func(g *Group) { g.EndFlush() })
			case "abort":
				w.flush((*Group).AbortFlush)
			case "forget":
				w.forget()
			}
			if w.tables.blocks.form.sparse == 0 {
				turned++
			}
			w.check()
		}
		// What is counted as the memory of tables ends with them.
		for _, g := range []*Group{w.tables, w.rows} {
			g.CloseBlocks(func(uint64, int64, int64) bool { return true })
		}
		w.seal()
		if n, _ := w.tables.blocks.arena.Bytes(); n+w.tables.blocks.arena.TableBytes() != 0 {
			t.Fatalf("%d bytes of rows and %d of tables are in use without a block", n,
				w.tables.blocks.arena.TableBytes())
		}
	})
	if turned == 0 {
		t.Error("no block was filled so far that it turned into rows")
	}
}

// A group that was sealed sparse twice keeps few cells in little memory, and one
// that fills gets rows at once.
func TestSparseGroupsTakeLittle(t *testing.T) {
	g := testGroup(Width)
	g.blocks.form.sparse = 0
	words := benchWords()
	var s Sealer
	inUse := func() int64 { n, _ := g.blocks.arena.Bytes(); return n + g.blocks.arena.TableBytes() }
	write := func(slot int64) {
		t.Helper()
		if _, err := g.Apply(Write{Slot: slot, Words: words}, 0, func(*account.Counts) (uint64, error) {
			return 1, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	sealAll := func() {
		g.CloseBlocks(func(uint64, int64, int64) bool { return true })
		s.Seal(g)
	}
	const rows = testHeight * Width * 8
	const part = partRows * Width * 8
	for block := range int64(4) {
		write(block * testHeight)
		want := int64(part)
		if block >= sparseBlocks {
			want = 512 * tableCell
		}
		if inUse() != want {
			t.Errorf("block %d takes %d bytes, want %d", block, inUse(), want)
		}
		sealAll()
	}
	for row := range int64(testHeight / rowsPart) {
		write(4*testHeight + row*rowsPart)
	}
	if n := inUse(); n >= rows {
		t.Errorf("a quarter of a block takes %d bytes", n)
	}
	write(5*testHeight - 1)
	if inUse() != rows {
		t.Errorf("more than a quarter takes %d bytes, want the %d of rows", inUse(), rows)
	}
	sealAll()
	write(5 * testHeight)
	if inUse() != part {
		t.Errorf("the block behind a full one takes %d bytes, want %d", inUse(), part)
	}
}

// Full rows behind each other are a dense group, which need not fill a quarter of
// a table first: those that lie apart may go on to be sparse.
func TestDenseGroupsSoonHaveRows(t *testing.T) {
	for _, c := range []struct {
		apart int64
		rows  bool
	}{{1, true}, {2, true}, {3, false}, {testHeight, false}} {
		g := testGroup(Width)
		words := benchWords()
		for row := range int64(soonRows + 1) {
			if n, _ := g.blocks.arena.Bytes(); n != 0 {
				t.Fatalf("rows %d apart: the block has rows behind %d of them", c.apart, row)
			}
			if _, err := g.Apply(Write{Slot: row * c.apart, Words: words}, 0,
				func(*account.Counts) (uint64, error) {
					return 1, nil
				}); err != nil {
				t.Fatal(err)
			}
		}
		if n, _ := g.blocks.arena.Bytes(); (n != 0) != c.rows {
			t.Errorf("rows %d apart: %d bytes of rows behind %d of them", c.apart, n, soonRows+1)
		}
	}
}

// A block of few points turns the group sparse only together with the one before.
func TestOneSparseBlockChangesNothing(t *testing.T) {
	g := testGroup(Width)
	const all = testHeight * Width
	for _, c := range []struct{ set, sparse int }{
		{all, 0}, {all / 16, 1}, {all / 6, 0}, {0, 1}, {all / 16, sparseBlocks}, {all / 6, sparseBlocks},
		{all / rowsPart, sparseBlocks}, {all/rowsPart + 1, 0},
	} {
		if g.blocks.form.learn(c.set, all); g.blocks.form.sparse != c.sparse {
			t.Fatalf("after a block with %d of %d cells: %d sparse blocks, want %d", c.set, all,
				g.blocks.form.sparse, c.sparse)
		}
	}
}

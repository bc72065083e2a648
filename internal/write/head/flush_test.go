package head

import (
	"bytes"
	"testing"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
)

// flushColumn returns the only chunk of a flush of one column with these points,
// written in order, and late ones on top.
func flushColumn(t *testing.T, words []uint64, late map[int64]uint64) []byte {
	t.Helper()
	g := testGroup(1)
	log := func(*account.Counts) (uint64, error) { return 1, nil }
	apply := func(slot int64, w uint64) {
		if _, err := g.Apply(Write{Slot: slot, Words: []uint64{w}}, 0, log); err != nil {
			t.Fatal(err)
		}
	}
	for i, w := range words {
		if w != point.Unset {
			apply(int64(i), w)
		}
	}
	g.CloseBlocks(func(uint64, int64, int64) bool { return true })
	for slot, w := range late {
		apply(slot, w)
	}
	var sealer Sealer
	for _, ok := sealer.Seal(g); ok; {
		_, ok = sealer.Seal(g)
	}
	c := g.BeginFlush()
	var f Flusher
	var chunks [][]byte
	err := f.Column(&c, 0, func(_ int64, _ int, data []byte, _, _ bool) error {
		chunks = append(chunks, bytes.Clone(data))
		return nil
	})
	if err != nil || len(chunks) != 1 {
		t.Fatalf("%d chunks, %v", len(chunks), err)
	}
	return chunks[0]
}

// Some pieces of a chunk are listed; one piece, all pieces, corrected ones and
// floats whose sum a list cannot give are what the encoder makes of the words.
func TestFlushListsSomeParts(t *testing.T) {
	ints := make([]uint64, chunk.Slots)
	floats := make([]uint64, chunk.Slots)
	for i := range ints {
		ints[i] = point.FromInt(int64(i * i % 1000))
		floats[i] = point.FromFloat(1 / float64(i+1))
	}
	gap := append([]uint64{}, floats[:3*testHeight]...)
	clear(gap[testHeight : testHeight+2])
	for _, c := range []struct {
		name  string
		words []uint64
		late  map[int64]uint64
		list  bool
	}{
		{"one piece", ints[:testHeight], nil, false},
		{"two pieces", ints[:testHeight+1], nil, true},
		{"all but one", ints[:chunk.Slots-testHeight], nil, true},
		{"complete", ints, nil, false},
		{"corrected", ints[:3*testHeight], map[int64]uint64{70: point.FromInt(5)}, false},
		{"floats", floats[:3*testHeight], nil, true},
		{"floats and a gap", gap, nil, true},
	} {
		got := flushColumn(t, c.words, c.late)
		words := append([]uint64{}, c.words...)
		for slot, w := range c.late {
			words[slot] = w
		}
		var enc chunk.Encoder
		want := enc.Append(nil, 0, words)
		if chunk.IsMultiPart(got) != c.list || !c.list && !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes with form %#x, encoded as a whole %d", c.name, len(got), got[0],
				len(want))
		}
		h, err := chunk.ParseHeader(got)
		whole, err2 := chunk.ParseHeader(want)
		if err != nil || err2 != nil || h != whole {
			t.Errorf("%s: header %+v, want %+v, %v %v", c.name, h, whole, err, err2)
		}
	}
}

// What a flush says that stays is there, unchanged, until the flush ends: the chunks that
// are one piece.
func TestWhatStaysInAFlush(t *testing.T) {
	const columns = 20
	g := testGroup(columns)
	words := make([]uint64, columns)
	apply := func(slot int64, words []uint64) {
		t.Helper()
		if _, err := g.Apply(Write{Slot: slot, Words: words}, 0, func(*account.Counts) (uint64, error) {
			return 1, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	// One block in chunk 0, two in chunk 1, one in chunk 2 with a late point in column 0.
	for _, slot := range []int64{3, chunk.Slots, chunk.Slots + testHeight, 2 * chunk.Slots} {
		for i := range words {
			words[i] = point.FromInt(slot * int64(i))
		}
		apply(slot, words)
		apply(slot+1, words)
	}
	g.CloseBlocks(func(uint64, int64, int64) bool { return true })
	apply(2*chunk.Slots, []uint64{point.FromInt(-1)})
	var sealer Sealer
	for _, ok := sealer.Seal(g); ok; {
		_, ok = sealer.Seal(g)
	}
	c := g.BeginFlush()
	var f Flusher
	var there, copies [][]byte
	for col := range columns {
		c.Fetch(col)
		err := f.Column(&c, col, func(number int64, points int, data []byte, stays, _ bool) error {
			if want := number != 1 && (number != 2 || col != 0); stays != want {
				t.Errorf("chunk %d of column %d: it stays: %v", number, col, stays)
			}
			if h, err := chunk.ParseHeader(data); err != nil || h.Count != points {
				t.Errorf("chunk %d of column %d: %d points, the header has %d, %v", number, col, points,
					h.Count, err)
			}
			if stays {
				there, copies = append(there, data), append(copies, bytes.Clone(data))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range there {
		if !bytes.Equal(there[i], copies[i]) {
			t.Fatalf("piece %d of %d changed", i, len(there))
		}
	}
	if len(there) != 2*columns-1 {
		t.Errorf("%d pieces stay, want %d", len(there), 2*columns-1)
	}
}

// What is said about the chunks of a flush before it is what it makes, where
// points come in order.
func TestFlushChunks(t *testing.T) {
	const columns = 3
	g := testGroup(columns)
	log := func(*account.Counts) (uint64, error) { return 1, nil }
	apply := func(slot int64, words ...uint64) {
		if _, err := g.Apply(Write{Slot: slot, Words: words}, 0, log); err != nil {
			t.Fatal(err)
		}
	}
	w := point.FromInt(1)
	for _, slot := range []int64{0, 1, testHeight, chunk.Slots, 5 * chunk.Slots} {
		apply(slot, w, 0, w)
	}
	g.CloseBlocks(func(uint64, int64, int64) bool { return true })
	var sealer Sealer
	for _, ok := sealer.Seal(g); ok; {
		_, ok = sealer.Seal(g)
	}
	apply(3*chunk.Slots-2, w) // late: one run in two chunks
	apply(3*chunk.Slots-1, w)
	apply(3*chunk.Slots, w)
	apply(4*chunk.Slots, w)
	want, size := g.FlushChunks()
	// the first two blocks are of one chunk
	shared := g.unflushed.waiting.sealedBlocks[0].bytes() + g.unflushed.waiting.sealedBlocks[1].bytes()
	if _, late := g.unflushed.bytes(); size != shared+late || late == 0 {
		t.Errorf("%d bytes are to be copied, of sealed blocks %d and late %d", size, shared, late)
	}
	for range 2 { // an aborted flush changes nothing
		c := g.BeginFlush()
		if n, bytes := g.FlushChunks(); n != want || bytes != size {
			t.Errorf("%d chunks of %d bytes are flushed, %d of %d were before", n, bytes, want, size)
		}
		var f Flusher
		made := map[[2]int64]bool{}
		for col := range columns {
			if err := f.Column(&c, col, func(number int64, _ int, _ []byte, _, _ bool) error {
				made[[2]int64{int64(col), number}] = true
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		if int64(len(made)) != want || want < 8 {
			t.Errorf("%d chunks, %d were announced", len(made), want)
		}
		g.AbortFlush()
	}
	g.BeginFlush()
	g.EndFlush()
	if n, bytes := g.FlushChunks(); n != 0 || bytes != 0 {
		t.Errorf("%d chunks of %d bytes after the flush", n, bytes)
	}
}

// What is said of blocks before they are sealed is what is said of them behind that, where a
// block has one cell a column, or all; it is never less.
func TestBlockChunks(t *testing.T) {
	const columns = 3
	w := point.FromInt(1)
	for name, c := range map[string]struct {
		writes []Write
		few    bool // some cells of a column in a block, and none of others
	}{
		"none":           {},
		"a point each":   {writes: []Write{{Slot: 5, Words: []uint64{w, w, w}}}},
		"a point of one": {writes: []Write{{Slot: 5, Words: []uint64{0, w}}}},
		"two blocks of a chunk": {
			writes: []Write{{Slot: 0, Words: []uint64{w, w, w}},
				{Slot: testHeight, Words: []uint64{w, w, w}}}},
		"different ones, of a chunk": {
			writes: []Write{{Slot: 0, Words: []uint64{w}}, {Slot: testHeight, Words: []uint64{0, w}}},
			few:    true},
		"blocks of two chunks": {
			writes: []Write{{Slot: 0, Words: []uint64{w, w}},
				{Slot: chunk.Slots, Words: []uint64{w, w, w}}}},
		"one column many times": {
			writes: []Write{{Slot: 0, Words: []uint64{w}}, {Slot: 1, Words: []uint64{w}},
				{Slot: 2, Words: []uint64{w}}}, few: true},
		"more blocks than may be open": {
			writes: []Write{{Words: []uint64{w, w, w}}, {Slot: testHeight, Words: []uint64{w, w, w}},
				{Slot: 2 * testHeight, Words: []uint64{w, w, w}},
				{Slot: 3 * testHeight, Words: []uint64{w, w, w}},
				{Slot: 4 * testHeight, Words: []uint64{w, w, w}}}},
	} {
		for _, rows := range []bool{false, true} {
			g := testGroup(columns)
			if rows {
				g.blocks.form.sparse = 0
			}
			said := func() (n, copied int64) {
				n, copied = g.BlockChunks()
				more, bytes := g.FlushChunks()
				return n + more, copied + bytes
			}
			var sealer Sealer
			for i, write := range c.writes {
				if _, err := g.Apply(write, 0, func(*account.Counts) (uint64, error) {
					return 1, nil
				}); err != nil {
					t.Fatal(err)
				}
				n, copied := said()
				if i == len(c.writes)-1 { // the blocks before lie sealed in front of it
					g.CloseBlocks(func(uint64, int64, int64) bool { return true })
				}
				for _, ok := sealer.Seal(g); ok; {
					_, ok = sealer.Seal(g)
				}
				if m, bytes := said(); m > n || m < n && !c.few || bytes > copied {
					t.Errorf("%s, in rows %t: %d chunks and %d bytes copied are said of blocks, %d and %d "+
						"behind the sealing", name, rows, n, copied, m, bytes)
				}
			}
			if n, copied := g.BlockChunks(); n != 0 || copied != 0 {
				t.Errorf("%s: %d chunks and %d bytes of no block", name, n, copied)
			}
		}
	}
}

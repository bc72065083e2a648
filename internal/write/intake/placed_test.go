package intake

import (
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/head"
)

// TestRowsAreStoredAsPoints: of points that come as rows, as batches would and by name, each series
// has in each slot the last one, whatever columns the series of a row have, and though more series
// come in between.
func TestRowsAreStoredAsPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := open(t)
		defer n.close()
		x := n.session(t, write.Options{})
		want, word := make(map[[2]int]uint64), int64(0)
		put := func(series, slot int) {
			word++
			want[[2]int{series, slot}] = point.FromInt(word)
			x.Point(key(series), uint64(epoch+slot), point.FromInt(word))
		}
		series := rapid.SampledFrom([]int{8, head.Width + 40}).Draw(t, "series")
		for i := range series {
			put(i, 0)
		}
		if _, err := x.Commit(); err != nil {
			t.Fatal(err)
		}
		width := rapid.SampledFrom([]int{1, min(5, series), series}).Draw(t, "series of a row")
		order, keys := make([]int, width), make([][]byte, width)
		first, step := rapid.IntRange(0, series-1).Draw(t, "first"),
			rapid.SampledFrom([]int{1, 1, 7, head.Width + 1}).Draw(t, "step")
		for i := range order {
			order[i] = (first + i*step) % series
			keys[i] = key(order[i])
		}
		placed := x.Place(keys)
		slots := rapid.SampledFrom([]int{2, 5, 60}).Draw(t, "slots")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			slot := rapid.IntRange(0, slots-1).Draw(t, "slot")
			switch rapid.IntRange(0, 9).Draw(t, "way") {
			case 4, 5, 6:
				put(rapid.IntRange(0, series-1).Draw(t, "by name"), slot)
			case 0:
				if _, err := x.Commit(); err != nil {
					t.Fatal(err)
				}
			case 1, 2, 3:
				put(series, slot) // the column behind those of the row
				series++
			default:
				from := rapid.IntRange(0, len(order)-1).Draw(t, "from")
				words := make([]uint64, rapid.IntRange(1, len(order)-from).Draw(t, "points"))
				for i := range words {
					word++
					words[i] = point.FromInt(word)
					want[[2]int{order[from+i], slot}] = words[i]
				}
				if !x.Row(placed, from, uint64(epoch+slot), words) {
					t.Fatal("a row whose columns are the same was not taken")
				}
			}
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		got := make([]uint64, 60)
		for i := range series {
			read(t, n, i, got)
			for slot, w := range got {
				if o := want[[2]int{i, slot}]; w != o {
					t.Fatalf("series %d in slot %d: %d, want %d", i, slot, w, o)
				}
			}
		}
		if a := n.account.Total(n.info.ID); a.Accepted+a.Conflicting+a.Late != uint64(word) {
			t.Fatalf("%d points were sent, the account has %+v", word, a)
		}
	})
}

// read reads the points of a series from the epoch on.
func read(t fataler, n *node, series int, dst []uint64) {
	t.Helper()
	id := n.o.Buckets.ID(n.info.ID).SeriesID(key(series))
	p, ok := n.o.Columns.Locate(id, key(series))
	if !ok {
		t.Fatalf("series %d has no column", series)
	}
	clear(dst)
	if _, err := p.Group.Read(p.Column, id, epoch, dst); err != nil {
		t.Fatalf("series %d: %v", series, err)
	}
}

// TestRowsOfLostColumns: a row of which a series has no column, or has lost it, is not taken; rows
// of others are.
func TestRowsOfLostColumns(t *testing.T) {
	n := open(t)
	defer n.close()
	x := n.session(t, write.Options{})
	keys := [][]byte{key(0), key(1), key(2), nil, key(3)}
	words := []uint64{point.FromInt(7), point.FromInt(8), point.FromInt(9), 0, 0}
	refused := func(what string, p *SeriesColumns, from, past int) {
		t.Helper()
		if x.Row(p, from, epoch+1, words[from:past]) || x.HasPending() {
			t.Error("a row was taken with a series that " + what)
		}
	}
	refused("nobody has sent", x.Place(keys), 0, 1)
	for _, k := range keys[:3] {
		x.Point(k, epoch, point.FromInt(1))
	}
	commit(t, x)
	placed := x.Place(keys)
	refused("has no key", placed, 2, 4)
	refused("has no key", placed, 3, 4)
	refused("nobody has sent", placed, 4, 5)
	p, _ := n.o.Columns.Locate(n.o.Buckets.ID(n.info.ID).SeriesID(keys[1]), keys[1])
	var gone head.Mask
	gone.Set(p.Column)
	if _, err := p.Group.Delete(gone, 1, false, func(head.Mask) error { return nil }); err != nil {
		t.Fatal(err)
	}
	refused("lost its column", placed, 0, 3)
	placed = x.Place(keys)
	refused("has no column any more", placed, 0, 3)
	refused("has no column any more", placed, 0, 2)
	if !x.Row(placed, 0, epoch+1, words[:1]) || !x.Row(placed, 2, epoch+1, words[2:3]) {
		t.Error("series that kept their columns are not taken")
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	dst := make([]uint64, 2)
	for i, want := range map[int]uint64{0: words[0], 2: words[2]} {
		if read(t, n, i, dst); dst[1] != want {
			t.Errorf("series %d has %d, want %d", i, dst[1], want)
		}
	}
}

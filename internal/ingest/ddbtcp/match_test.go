package ddbtcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/wire"
	"dalmatiner/internal/write/intake"
)

// pointByPoint is a stream that takes no points by itself.
type pointByPoint struct{ *intake.Session }

func (pointByPoint) Batch(uint64, []byte) int   { return 0 }
func (pointByPoint) Entries(uint64, []byte) int { return 0 }

// flushes commits where a stream asks for it.
type flushes struct{ *intake.Session }

func (f flushes) Flush()          { _, _ = f.Commit() } // its error comes back from Close
func (f flushes) FlushAck(uint64) {}

// drawStream is rows of series, most of them in the same order, in batches and
// entries, with points of every type.
func drawStream(t *rapid.T, keys []string, first uint64) []byte {
	word := rapid.Custom(func(t *rapid.T) uint64 {
		return rapid.SampledFrom([]uint64{point.FromInt(1), point.FromInt(-5), point.FromFloat(2.5),
			point.Unset, 3, 2 << 56, 3 << 56, 0x7f << 56}).Draw(t, "word")
	})
	var out []byte
	order := slices.Clone(keys)
	for range rapid.IntRange(1, 12).Draw(t, "rows") {
		if rapid.IntRange(0, 3).Draw(t, "other order") == 0 {
			order = rapid.Permutation(keys).Draw(t, "order")
		}
		row := order[:rapid.IntRange(1, len(order)).Draw(t, "series")]
		slot := first + rapid.Uint64Range(0, 200).Draw(t, "slot")
		typical := rapid.Bool().Draw(t, "integers")
		value := func() uint64 {
			if typical {
				return point.FromInt(rapid.Int64Range(0, 3).Draw(t, "value"))
			}
			return word.Draw(t, "word")
		}
		if rapid.Bool().Draw(t, "batch") {
			out = wire.AppendBatchStart(out, slot)
			for _, k := range row {
				out = wire.AppendBatchPoint(out, []byte(k), value())
			}
			out = wire.AppendBatchEnd(out)
		} else {
			for _, k := range row {
				out = wire.AppendEntry(out, []byte(k), slot, value())
				if rapid.IntRange(0, 9).Draw(t, "two") == 0 {
					out = wire.AppendEntry(out, []byte(k), slot+1, value(), value())
				}
			}
		}
		if rapid.Bool().Draw(t, "flush") {
			out = wire.AppendFlush(out)
		}
	}
	return out
}

// What a session takes by itself is stored and counted as what comes point by
// point.
func TestSessionTakesWhatPointByPointGives(t *testing.T) {
	var keys []string
	for i := range 300 { // more than a group
		keys = append(keys, fmt.Sprintf("\x04name%0*d", 1+i%40, i))
	}
	rapid.Check(t, func(t *rapid.T) {
		some := keys[:rapid.SampledFrom([]int{3, 40, 300}).Draw(t, "keys")]
		size := rapid.SampledFrom([]int{1, 7, 100, 5000}).Draw(t, "piece")
		var stream []byte
		var first uint64
		var counts [2]account.Counts
		var words [2]map[string][]uint64
		for i := range 2 {
			st, err := store.Open(storetest.Options())
			if err != nil {
				t.Fatal(err)
			}
			if stream == nil {
				first = uint64(st.Now().Unix() - 86400)
				stream = drawStream(t, some, first)
			}
			counts[i], words[i] = feed(t, st, stream, some, int64(first), size, i == 0)
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if counts[0] != counts[1] {
			t.Fatalf("counts %+v, point by point %+v", counts[0], counts[1])
		}
		if !maps.EqualFunc(words[0], words[1], slices.Equal) {
			t.Fatal("other points than point by point")
		}
	})
}

// Known series in the order of last time take no allocation.
func TestTakingPointsDoesNotAllocate(t *testing.T) {
	st := storetest.Open(t, storetest.Options())
	info, err := st.EnsureBucket("b")
	if err != nil {
		t.Fatal(err)
	}
	x, err := st.NewSession(info)
	if err != nil {
		t.Fatal(err)
	}
	slot := uint64(st.Now().Unix() - 60)
	batch := wire.AppendBatchStart(nil, slot)
	var entries []byte
	for i := range 600 {
		key := fmt.Appendf(nil, "\x08name%04d", i)
		batch = wire.AppendBatchPoint(batch, key, point.FromInt(int64(i)))
		entries = wire.AppendEntry(entries, key, slot, point.FromInt(int64(i)))
	}
	row := wire.AppendFlush(append(wire.AppendBatchEnd(batch), entries...))
	p := wire.NewStreamParser(&wire.Request{Op: wire.OpStream}, wire.MinStreamLimit)
	if n := testing.AllocsPerRun(200, func() {
		if n, err := p.Parse(row, x, flushes{x}); n != len(row) || err != nil {
			t.Fatal(n, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for 1,200 points", n)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

// feed gives a stream to a new session in pieces of size bytes, and returns what
// became of its points, and the slots of every series from one on.
func feed(t *rapid.T, st *store.Store, stream []byte, keys []string, from int64, size int,
	takes bool) (account.Counts, map[string][]uint64) {
	info, err := st.EnsureBucket("b")
	if err != nil {
		t.Fatal(err)
	}
	x, err := st.NewSession(info)
	if err != nil {
		t.Fatal(err)
	}
	var to wire.Points = x
	if !takes {
		to = pointByPoint{x}
	}
	p := wire.NewStreamParser(&wire.Request{Op: wire.OpStream}, wire.MinStreamLimit)
	for done, end := 0, 0; end < len(stream); {
		end = min(len(stream), end+size)
		n, err := p.Parse(stream[done:end], to, flushes{x})
		if err != nil {
			t.Fatal(err)
		}
		done += n
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	words := map[string][]uint64{}
	for _, k := range keys {
		words[k] = make([]uint64, 256)
		if err := st.Read(context.Background(), info, []byte(k), from, words[k]); err != nil {
			t.Fatal(err)
		}
	}
	return st.Account().Total(info.ID), words
}

package chunk

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dalmatiner/internal/codec/point"
	"pgregory.net/rapid"
)

// I4: what a reader makes of words is what the header says of them.
func TestSummarizeEqualsTheHeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := genChunk(t)
		genMarkers(t, words)
		from := rapid.IntRange(0, Slots).Draw(t, "from")
		past := rapid.IntRange(from, Slots).Draw(t, "past")
		got := Summarize(words[from:past], from)
		if !slices.ContainsFunc(words[from:past], func(w uint64) bool { return w > point.Stale }) {
			if got != (Header{}) {
				t.Fatalf("nothing is set, %+v", got)
			}
			return
		}
		equalsNaive(t, got, from, words[from:past])
	})
}

// naiveRollup adds up all slots of the words one by one, integers exactly and
// floats within rounding.
type naiveRollup struct {
	h     Header
	sum   float64 // of the floats
	scale float64 // sum of their magnitudes
}

func (n *naiveRollup) add(slot int, w uint64) {
	if w == point.Unset {
		return
	}
	naiveSlot(&n.h, slot, w)
	if point.KindOf(w) == point.KindInt {
		n.h.Sum.AddInt(point.Int(w))
		return
	}
	n.scale += math.Abs(point.Float(w))
	n.sum += point.Float(w)
}

func naiveOf(words []uint64) naiveRollup {
	n := naiveRollup{h: Header{FirstOff: -1}}
	for i, w := range words {
		n.add(i, w)
	}
	return n
}

func genFinite(t *rapid.T, r *rand.Rand, words []uint64) {
	rate := rapid.SampledFrom([]int{0, 1, 20, 100}).Draw(t, "floats of 100")
	gaps := rapid.SampledFrom([]int{0, 0, 10, 90, 100}).Draw(t, "gaps of 100")
	rising := rapid.Bool().Draw(t, "rising")
	for i := range words {
		switch v := r.Int64N(1<<54) - 1<<53; {
		case r.IntN(100) < gaps:
		case rising && r.IntN(500) > 0:
			words[i] = point.FromInt(v/(1<<30) + int64(i)<<30)
		case r.IntN(100) < rate:
			words[i] = point.FromFloat(float64(v) / 1024)
		default:
			words[i] = point.FromInt(v)
		}
	}
}

// I4: rollups made from headers equal those made slot by slot, and come back
// from their bytes as they went in.
func TestRollupEqualsTheSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunks := rapid.IntRange(1, 12).Draw(t, "chunks")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		words := make([]uint64, chunks*Slots)
		var enc Encoder
		var node Node
		for i := range chunks {
			part := words[i*Slots:][:Slots]
			genFinite(t, r, part)
			src := enc.Append(nil, 0, part)
			if len(src) == 0 {
				continue
			}
			h, err := ParseHeader(src)
			if err != nil {
				t.Fatal(err)
			}
			node.Append(&h, i*Slots)
		}
		rollup := node.Header()
		if rollup.Count == 0 {
			return
		}
		got, rest, err := ParseRollup(append(AppendRollup(nil, &rollup), 7))
		if err != nil || len(rest) != 1 || got != rollup {
			t.Fatalf("%+v came back as %+v, %d bytes left, %v", rollup, got, len(rest), err)
		}
		want := naiveOf(words)
		compareRollup(t, got, &want, len(words))
	})
}

func compareRollup(t failer, got Header, want *naiveRollup, slots int) {
	t.Helper()
	allowed := float64(slots) * 0x1p-52 * want.scale
	if math.Abs(got.Sum.Float-want.sum) > allowed {
		t.Fatalf("I4: float sum %v, want %v ± %v", got.Sum.Float, want.sum, allowed)
	}
	got.Sum.Float = 0
	if got != want.h {
		t.Fatalf("I4: rollup\n%+v, want\n%+v", got, want.h)
	}
}

// Every word and sum that a rollup may hold survives its bytes.
func TestRollupBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := func(name string) uint64 {
			return rapid.SampledFrom(append([]uint64{
				point.FromInt(rapid.Int64Range(point.MinInt, point.MaxInt).Draw(t, name)),
				point.FromFloat(rapid.Float64().Draw(t, name+" float")),
			}, special...)).Draw(t, name+" word")
		}
		sum := func(name string) Sum {
			return Sum{Hi: rapid.Int64().Draw(t, name+" hi") >> rapid.IntRange(0, 63).Draw(t, "shift"),
				Lo: rapid.Uint64().Draw(t, name+" lo"),
				Float: canonical(rapid.SampledFrom([]float64{0, 1.5, math.Inf(-1), math.NaN(),
					math.MaxFloat64}).Draw(t, name+" float"))}
		}
		h := Header{First: word("first"), Last: word("last"), Min: word("min"), Max: word("max"),
			Sum: sum("sum"), Rises: rapid.Bool().Draw(t, "rises")}
		h.FirstOff = rapid.IntRange(0, MaxRollup-1).Draw(t, "first slot")
		h.LastOff = rapid.IntRange(h.FirstOff, MaxRollup-1).Draw(t, "last slot")
		h.Count = rapid.IntRange(1, h.LastOff-h.FirstOff+1).Draw(t, "count")
		if rapid.Bool().Draw(t, "only NaN") {
			h.Min, h.Max = point.Unset, point.Unset
		}
		src := AppendRollup(nil, &h)
		got, rest, err := ParseRollup(src)
		if err != nil || len(rest) != 0 {
			t.Fatalf("%d bytes left, %v", len(rest), err)
		}
		if !sameHeader(got, h) {
			t.Fatalf("%+v, want %+v", got, h)
		}
		for n := range src {
			if _, _, err := ParseRollup(src[:n]); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%d of %d bytes: %v", n, len(src), err)
			}
		}
	})
}

// FuzzParseRollup reads what nobody wrote: it never panics, and what it takes
// comes back from its own bytes. A rollup without a value is nothing but that.
func FuzzParseRollup(f *testing.F) {
	var enc Encoder
	f.Add(AppendRollup(nil, &Header{}))
	for _, k := range kinds() {
		h, err := ParseHeader(enc.Append(nil, 0, k.make(Slots)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(AppendRollup(nil, &h))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		h, rest, err := ParseRollup(src)
		if err != nil {
			return
		}
		empty := sameHeader(h, Header{})
		if len(rest) >= len(src) || h.Count < 1 && !empty || h.FirstOff+h.Count > MaxRollup ||
			h.LastOff >= MaxRollup {
			t.Fatalf("%+v from %d bytes, %d left", h, len(src), len(rest))
		}
		again, rest, err := ParseRollup(AppendRollup(nil, &h))
		if err != nil || len(rest) != 0 || !sameHeader(again, h) {
			t.Fatalf("%+v came back as %+v, %v", h, again, err)
		}
	})
}

func BenchmarkSummarize(b *testing.B) {
	forKinds(b, func(b *testing.B, words []uint64, src []byte) {
		for b.Loop() {
			if Summarize(words, 0).Count == 0 {
				b.Fatal("nothing is set")
			}
		}
		perPoint(b, Slots, len(src))
	})
}

func BenchmarkParseRollup(b *testing.B) {
	forKinds(b, func(b *testing.B, _ []uint64, src []byte) {
		h, err := ParseHeader(src)
		if err != nil {
			b.Fatal(err)
		}
		rollup := AppendRollup(nil, &h)
		for b.Loop() {
			if _, _, err := ParseRollup(rollup); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(rollup)), "B/rollup")
	})
}

package replication

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
)

func drawValue(rt *rapid.T) Value {
	v := Value{rapid.Uint64Range(0, 4).Draw(rt, "word"), rapid.Uint64Range(0, 2).Draw(rt, "time")}
	if v.Word == point.Stale {
		v.Time = 0
	}
	return v
}

// Rule 1: the order in which copies are merged, and how often, does not matter; the pair stays
// together.
func TestRule1TheLargestPairStays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(rapid.Custom(drawValue), 1, 6).Draw(rt, "values")
		merged := func(of []Value) (v Value) {
			for _, o := range of {
				v = Larger(v, o)
			}
			return v
		}
		want := merged(values)
		again := append(slices.Clone(values), values...)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "order"), 0)).Shuffle(len(again), func(i, j int) {
			again[i], again[j] = again[j], again[i]
		})
		if got := merged(again); got != want {
			rt.Fatalf("%v in another order and twice: %v, want %v", values, got, want)
		}
		if want != (Value{}) && !slices.Contains(values, want) {
			rt.Fatalf("%v was never sent: %v", want, values)
		}
		for _, v := range values {
			if v.Word > want.Word || v.Word == want.Word && v.Time > want.Time {
				rt.Fatalf("%v stays, %v is larger", want, v)
			}
		}
	})
}

// Rule 1: sources below a change of n resolve by the old rule, then the result by the new one. The
// model cuts the list of sources and resolves each part by itself.
func TestRule1ACutDividesTheRules(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var sources []Source
		for i := range rapid.IntRange(0, 8).Draw(rt, "sources") {
			sources = append(sources, Source{uint64(i), drawValue(rt)})
		}
		cuts := []Cut{{0, rapid.IntRange(1, 3).Draw(rt, "n")}}
		for _, from := range []uint64{3, 6} {
			cuts = append(cuts, Cut{from, rapid.IntRange(1, 3).Draw(rt, "n")})
		}
		var want Value
		for i, cut := range cuts {
			var part []Value
			for _, s := range sources {
				if s.Number >= cut.From && (i+1 == len(cuts) || s.Number < cuts[i+1].From) &&
					s.Value.Word != 0 {
					part = append(part, s.Value)
				}
			}
			switch {
			case len(part) == 0:
			case cut.Copies == 1:
				values := slices.DeleteFunc(part, func(v Value) bool { return v.Word == point.Stale })
				switch {
				case len(values) > 0:
					want = values[len(values)-1]
				case want == Value{}:
					want.Word = point.Stale
				}
			default:
				want = slices.MaxFunc(append(part, want), Value.Compare)
			}
		}
		if got := Resolve(cuts, sources); got != want {
			rt.Fatalf("%v with %v: %v, want %v", sources, cuts, got, want)
		}
	})
}

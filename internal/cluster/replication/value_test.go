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

package recompute

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
)

// The aggregates that the check recomputes are those of the encoder, for any
// words (I4).
func TestRecomputedAggregates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var words [chunk.Slots]uint64
		gaps, floats, spread := r.IntN(100), r.IntN(3)*50, int64(1)<<r.IntN(40)
		for i := range words {
			switch {
			case r.IntN(100) < gaps:
			case r.IntN(100) < floats:
				words[i] = point.FromFloat(float64(r.Int64N(spread)) / 8)
			default:
				words[i] = point.FromInt(r.Int64N(spread) - spread/2)
			}
		}
		words[r.IntN(chunk.Slots)] = point.FromInt(1)
		if r.IntN(8) == 0 {
			words[r.IntN(chunk.Slots)] = point.FromFloat(nan())
		}
		if r.IntN(4) == 0 {
			for range 1 + r.IntN(20) {
				words[r.IntN(chunk.Slots)] = point.Stale
			}
		}
		var e chunk.Encoder
		data := e.Append(nil, 0, words[:])
		got, err := chunk.ParseHeader(data)
		if err != nil {
			t.Fatal(err)
		}
		if want := Header(&words); !Equal(&want, &got) {
			t.Fatalf("recomputed %+v\nencoded    %+v", want, got)
		}
		if n := Points(&words); n != e.Count() {
			t.Fatalf("%d words are set, the encoder has %d", n, e.Count())
		}
		got.Sum.Lo++
		if want := Header(&words); Equal(&want, &got) {
			t.Fatal("a wrong sum passes")
		}
	})
}

func nan() float64 { var zero float64; return zero / zero }

package histogram

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The counts of the classic form are those of a histogram that was filled value by value: each
// bound has the values at or below it.
func TestClassicForm(t *testing.T) {
	size := rapid.Custom(func(t *rapid.T) float64 {
		v := rapid.Float64Range(1e-6, 1e6).Draw(t, "size")
		return rapid.SampledFrom([]float64{0, v, v, -v}).Draw(t, "value")
	})
	rapid.Check(t, func(t *rapid.T) {
		schema := rapid.IntRange(MinSchema, MaxSchema).Draw(t, "schema")
		threshold := rapid.SampledFrom([]float64{0, 0x1p-32, 0x1p-16}).Draw(t, "threshold")
		// which is a bound of every schema
		values := rapid.SliceOfN(size, 0, 50).Draw(t, "values")
		base := math.Pow(2, math.Pow(2, -float64(schema)))
		h := Native{Schema: int32(schema), ZeroThreshold: threshold, Count: float64(len(values))}
		positive, negative := map[int]int{}, map[int]int{}
		for _, v := range values {
			index := int(math.Ceil(math.Log(math.Abs(v)) / math.Log(base)))
			switch {
			case math.Abs(v) <= threshold:
				h.ZeroCount++
			case v > 0:
				positive[index]++
			default:
				negative[index]++
			}
		}
		h.Positive, h.Negative = sideOf(positive), sideOf(negative)
		list, err := h.Classic()
		if err != nil {
			t.Skip(err) // more buckets than are taken
		}
		for i, b := range list {
			want := 0
			near := false
			for _, v := range values {
				if v <= b.LE {
					want++
				}
				near = near || math.Abs(v-b.LE) <= 1e-9*math.Abs(v)+1e-300
			}
			if float64(want) != b.Count && !near {
				t.Fatalf("%d values are at most %g, not %g: %v", want, b.LE, b.Count, list)
			}
			if i > 0 && b.LE <= list[i-1].LE {
				t.Fatalf("%g comes behind %g", b.LE, list[i-1].LE)
			}
		}
	})
}

// sideOf returns the buckets of counts by index.
func sideOf(counts map[int]int) (s Side) {
	last := math.MinInt
	for i := -20000; i <= 20000; i++ {
		n, ok := counts[i]
		if !ok {
			continue
		}
		switch {
		case last == math.MinInt:
			s.Spans = append(s.Spans, Span{int32(i), 1})
		case i == last+1:
			s.Spans[len(s.Spans)-1].Length++
		default:
			s.Spans = append(s.Spans, Span{int32(i - last - 1), 1})
		}
		s.Counts, last = append(s.Counts, float64(n)), i
	}
	return s
}

package exec

import (
	"dalmatiner/internal/chunk"
	"dalmatiner/internal/point"
)

func (r *total) span(h *chunk.Header, carry uint64, slots int64) {
	r.sum, r.last = sumOf(h, carry, slots), lastOf(h, carry)
}

func (r *extreme) span(h *chunk.Header, carry uint64, _ int64) {
	if r.least {
		r.v = extremeOf(h, carry, h.Min, true)
	} else {
		r.v = extremeOf(h, carry, h.Max, false)
	}
}

func (r *counted) span(h *chunk.Header, _ uint64, _ int64) { r.set = int64(h.Count) }

func (r *ends) span(h *chunk.Header, carry uint64, slots int64) {
	set := h.Count > 0
	if r.last {
		r.v, set = lastOf(h, carry), set && int64(h.LastOff) == slots-1
	} else if set = set && h.FirstOff == 0; set {
		r.v = point.Float(h.First)
	} else {
		r.v = point.Float(carry)
	}
	if r.c = 0; set {
		r.c = 1
	}
}

// sumOf returns the sum of a span's slots with gaps filled.
func sumOf(h *chunk.Header, carry uint64, slots int64) float64 {
	switch int64(h.Count) {
	case slots:
		return h.Sum.Float64()
	case 0:
		return chunk.Repeat(carry, int(slots)).Float64()
	}
	return chunk.Repeat(carry, h.FirstOff).Plus(h.FilledTo(int(slots))).Float64()
}

// lastOf returns the last value of a span with gaps filled.
func lastOf(h *chunk.Header, carry uint64) float64 {
	if h.Count == 0 {
		return point.Float(carry)
	}
	return point.Float(h.Last)
}

// extremeOf returns the least or greatest value of a span with gaps filled;
// word is that of the set slots, 0 where all are NaN.
func extremeOf(h *chunk.Header, carry, word uint64, least bool) float64 {
	if h.Count == 0 {
		return point.Float(carry)
	}
	if word == point.Unset {
		word = h.First
	}
	set := [1]float64{point.Float(word)}
	switch {
	case h.FirstOff == 0:
		return set[0]
	case least:
		return minOf(point.Float(carry), set[:])
	}
	return maxOf(point.Float(carry), set[:])
}

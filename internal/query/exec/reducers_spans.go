package exec

import (
	"dalmatiner/internal/chunk"
	"dalmatiner/internal/point"
)

func (r *total) spans(dst []float64, list []chunk.Header, carry uint64, slots, size int64) []float64 {
	for i := range list {
		h := &list[i]
		var v float64
		if int64(h.Count) == slots { // sumOf is not inlined
			v, carry = h.Sum.Float64(), h.Last
		} else if v = sumOf(h, carry, slots); h.Count > 0 {
			carry = h.Last
		}
		if slots < size {
			v += float64(point.Float(carry) * float64(size-slots)) // as close does
		}
		if r.mean {
			v /= float64(size)
		}
		dst = append(dst, v)
	}
	return dst
}

func (r *extreme) spans(dst []float64, list []chunk.Header, carry uint64, _, _ int64) []float64 {
	for i := range list {
		h := &list[i]
		if r.least {
			dst = append(dst, extremeOf(h, carry, h.Min, true))
		} else {
			dst = append(dst, extremeOf(h, carry, h.Max, false))
		}
		if h.Count > 0 {
			carry = h.Last
		}
	}
	return dst
}

func (r *counted) spans(dst []float64, list []chunk.Header, _ uint64, _, size int64) []float64 {
	for i := range list {
		n := int64(list[i].Count)
		if r.others {
			n = size - n
		}
		dst = append(dst, float64(n))
	}
	return dst
}

func (r *ends) spans(dst []float64, list []chunk.Header, carry uint64, _, _ int64) []float64 {
	for i := range list {
		h := &list[i]
		v := carry
		if h.Count > 0 {
			carry = h.Last
		}
		switch {
		case r.last:
			v = carry
		case h.Count > 0 && h.FirstOff == 0:
			v = h.First
		}
		dst = append(dst, point.Float(v))
	}
	return dst
}

func (r *total) sure(h *chunk.Header, _, size int64) float64   { return shareOf(h, size) }
func (r *extreme) sure(h *chunk.Header, _, size int64) float64 { return shareOf(h, size) }
func (r *counted) sure(h *chunk.Header, _, size int64) float64 { return shareOf(h, size) }

func (r *ends) sure(h *chunk.Header, slots, _ int64) float64 {
	if h.Count > 0 && (r.last && int64(h.LastOff) == slots-1 || !r.last && h.FirstOff == 0) {
		return 1
	}
	return 0
}

// shareOf returns the confidence of most aggregates.
func shareOf(h *chunk.Header, size int64) float64 { return float64(h.Count) / float64(size) }

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

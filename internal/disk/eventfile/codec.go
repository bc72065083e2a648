package eventfile

import (
	"encoding/binary"
	"math"
	"math/bits"

	"dalmatiner/internal/codec/fields"
)

// AppendKeys appends the times and ids of events, in their order.
//
//	n │ time svarint │ unit │ (n - 1) × difference to the time before ÷ unit, svarint │ runs
//	run     length │ first half of the ids 8 │ second half 8 │ (length - 1) × difference svarint
//
// A run is as long as the first half of the ids is the same. Ids that a store gives differ by one
// in the second half.
func AppendKeys(dst []byte, list []Event) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	if len(list) == 0 {
		return dst
	}
	unit := uint64(0)
	for i := 1; i < len(list); i++ {
		unit = gcd(magnitude(list[i].Time-list[i-1].Time), unit)
	}
	unit = max(unit, 1)
	dst = binary.AppendVarint(dst, list[0].Time)
	dst = binary.AppendUvarint(dst, unit)
	for i := 1; i < len(list); i++ {
		d := list[i].Time - list[i-1].Time
		steps := int64(magnitude(d) / unit)
		if d < 0 {
			steps = -steps
		}
		dst = binary.AppendVarint(dst, steps)
	}
	for i := 0; i < len(list); {
		high := [8]byte(list[i].ID[:8])
		end := i + 1
		for end < len(list) && [8]byte(list[end].ID[:8]) == high {
			end++
		}
		dst = binary.AppendUvarint(dst, uint64(end-i))
		dst = append(append(dst, high[:]...), list[i].ID[8:]...)
		before := binary.BigEndian.Uint64(list[i].ID[8:])
		for i++; i < end; i++ {
			low := binary.BigEndian.Uint64(list[i].ID[8:])
			dst = binary.AppendVarint(dst, int64(low-before))
			before = low
		}
	}
	return dst
}

// magnitude is the absolute value of a difference; times are positive, so none is the least int64.
func magnitude(d int64) uint64 {
	if d < 0 {
		return uint64(-d)
	}
	return uint64(d)
}

func gcd(a, b uint64) uint64 {
	if a == 0 || b == 0 {
		return a | b
	}
	shift := bits.TrailingZeros64(a | b)
	a >>= bits.TrailingZeros64(a)
	for b != 0 {
		b >>= bits.TrailingZeros64(b)
		if a > b {
			a, b = b, a
		}
		b -= a
	}
	return a << shift
}

// ParseKeys reads what AppendKeys wrote from the start of src, of at most limit events, into list,
// which it grows as needed. Bodies are nil. rest is what stands behind. Times below 1 are an
// error.
func ParseKeys(list []Event, src []byte, limit int) (out []Event, rest []byte, err error) {
	r := fields.Reader{Src: src}
	n := r.UpTo(uint64(min(limit, len(src)))) // a key takes a byte at least
	list = list[:0]
	if n == 0 {
		return list, r.Src, malformed(&r)
	}
	if uint64(cap(list)) < n {
		list = make([]Event, 0, n)
	}
	list = list[:n]
	t := r.Varint()
	unit := r.UpTo(math.MaxInt64)
	for i := range list {
		if i > 0 {
			steps := r.Varint()
			high, low := bits.Mul64(magnitude(steps), unit)
			if high != 0 || low > math.MaxInt64 || steps == math.MinInt64 {
				r.Check(false)
			}
			if steps < 0 {
				t -= int64(low)
			} else {
				t += int64(low)
			}
		}
		if t < 1 {
			r.Check(false)
		}
		if r.Bad {
			return list[:0], nil, errMalformed
		}
		list[i] = Event{Time: t}
	}
	for i := 0; i < len(list); {
		end := uint64(i) + r.UpTo(n-uint64(i))
		id := r.Take(16)
		if r.Bad || end == uint64(i) {
			return list[:0], nil, errMalformed
		}
		high, low := [8]byte(id), binary.BigEndian.Uint64(id[8:])
		for first := i; i < int(end); i++ {
			if i > first {
				low += uint64(r.Varint())
			}
			copy(list[i].ID[:], high[:])
			binary.BigEndian.PutUint64(list[i].ID[8:], low)
		}
	}
	if r.Bad {
		return list[:0], nil, errMalformed
	}
	return list, r.Src, nil
}

// AppendBodies appends the bodies of events, in their order: the lengths, then the bytes.
func AppendBodies(dst []byte, list []Event) []byte {
	for i := range list {
		dst = binary.AppendUvarint(dst, uint64(len(list[i].Body)))
	}
	for i := range list {
		dst = append(dst, list[i].Body...)
	}
	return dst
}

// ParseBodies sets the bodies of events to parts of src, which is what AppendBodies wrote and
// nothing behind it.
func ParseBodies(list []Event, src []byte) error {
	r := fields.Reader{Src: src}
	total := uint64(0)
	lengths := r.Src
	for range list {
		total += r.UpTo(MaxBody)
	}
	if r.Bad || total != uint64(len(r.Src)) {
		return errMalformed
	}
	again := fields.Reader{Src: lengths}
	for i := range list {
		n := int(again.UpTo(MaxBody))
		list[i].Body = r.Src[:n:n]
		r.Src = r.Src[n:]
	}
	return nil
}

func malformed(r *fields.Reader) error {
	if r.Bad {
		return errMalformed
	}
	return nil
}

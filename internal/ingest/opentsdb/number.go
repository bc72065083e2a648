package opentsdb

import (
	"math"
	"strconv"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/ingest/acked"
)

const (
	maxDigits  = 18             // that fit 64 bits
	maxSeconds = math.MaxUint32 // a larger time is in milliseconds, as in OpenTSDB
	maxMs      = math.MaxInt64 / int64(time.Millisecond)
)

// digits reads a number without a sign. ok is false for what is none, or has too many digits.
func digits(text []byte) (n int64, ok bool) {
	if len(text) == 0 || len(text) > maxDigits {
		return 0, false
	}
	for _, c := range text {
		if c-'0' > 9 {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// number reads a value. An integer of 64 bits is one, or the nearest double beyond 56 bits; any
// other is a double. What only Go takes for a number is none.
func number(text []byte) (word uint64, ok bool) {
	if n, ok := digits(text); ok {
		return point.FromInt(n), true
	}
	whole := true
	for _, c := range text {
		if c-'0' > 9 && c != '-' && c != '+' {
			whole = false
			if c != '.' && c != 'e' && c != 'E' {
				return 0, false
			}
		}
	}
	if whole {
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return point.FromInt(n), true
		}
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return acked.Word(v), err == nil
}

// nanoseconds reads a time since 1970, which is in seconds up to 32 bits, and in milliseconds
// above. Seconds may have a fraction.
func nanoseconds(text []byte) (ns int64, ok bool) {
	whole, fraction := text, []byte(nil)
	for i, c := range text {
		if c == '.' {
			whole, fraction = text[:i], text[i+1:]
			break
		}
	}
	n, ok := digits(whole)
	switch {
	case !ok || n == 0 || n > maxMs:
		return 0, false
	case n > maxSeconds:
		return n * int64(time.Millisecond), len(fraction) == 0
	}
	ns = n * int64(time.Second)
	if len(whole) == len(text) {
		return ns, true
	}
	f, ok := digits(fraction)
	if !ok || len(fraction) > 9 {
		return 0, false
	}
	for range 9 - len(fraction) {
		f *= 10
	}
	return ns + f, true
}

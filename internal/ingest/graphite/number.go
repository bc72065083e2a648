package graphite

import (
	"bytes"
	"math"
	"strconv"

	"dalmatiner/internal/codec/point"
)

const (
	// fastDigits is how long a number may be for the arithmetic by hand: 18
	// digits and a sign or a point never overflow 64 bits.
	fastDigits = 19

	// exactInt is the largest integer below which every one is a double.
	exactInt = 1 << 53

	// maxSeconds bounds timestamps so that milliseconds fit an int64.
	maxSeconds = math.MaxInt64 / 1000
)

// powers are the powers of ten that are doubles without rounding. A decimal of
// digits k and e places is k ÷ 10^e: both are exact, so that the division
// rounds once, as strconv does.
var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13,
	1e14, 1e15, 1e16, 1e17, 1e18, 1e19}

// parseValue reads a value: an integer where the text is one, else a float. Of
// texts with places that are all 0, such as 5.0, wholeValue says which. NaN is
// unset. A text that is no number and a number beyond all doubles are not ok.
func parseValue(text []byte) (word uint64, ok bool) {
	if len(text) > fastDigits {
		return parseValueSlow(text)
	}
	digits, neg := text, false
	if len(text) > 0 && text[0] == '-' {
		digits, neg = text[1:], true
	}
	var k uint64
	i := 0
	for ; i < len(digits) && digits[i]-'0' <= 9; i++ {
		k = k*10 + uint64(digits[i]-'0')
	}
	if i == len(digits) && i > 0 && k <= math.MaxInt64 {
		if neg {
			return point.FromInt(-int64(k)), true
		}
		return point.FromInt(int64(k)), true
	}
	if i == len(digits) || digits[i] != '.' || len(digits) == 1 {
		return parseValueSlow(text)
	}
	whole, wholeDigits, places := k, i, digits[i+1:]
	var fraction byte
	for i = 0; i < len(places) && places[i]-'0' <= 9; i++ {
		k = k*10 + uint64(places[i]-'0')
		fraction |= places[i] - '0'
	}
	if i == len(places) && fraction == 0 && wholeDigits > 0 {
		return wholeValue(whole, neg), true
	}
	if i < len(places) || k > exactInt {
		return parseValueSlow(text)
	}
	f := float64(k) / powers[len(places)]
	if neg {
		f = -f
	}
	return point.FromFloat(f), true
}

// wholeValue is the word of an integer that was written with a point: a float up to 2^53,
// which floats hold exactly, and an integer above. Most series of such values have others
// between them that are no integers, and a chunk of both kinds takes up to a quarter more bytes.
func wholeValue(k uint64, neg bool) uint64 {
	f := float64(k)
	switch {
	case k > exactInt && neg:
		return point.FromInt(-int64(k))
	case k > exactInt:
		return point.FromInt(int64(k))
	case neg:
		f = math.Copysign(f, -1)
	}
	return point.FromFloat(f)
}

func parseValueSlow(text []byte) (word uint64, ok bool) {
	whole, places, pointed := bytes.Cut(text, []byte("."))
	if n, err := strconv.ParseInt(string(whole), 10, 64); err == nil &&
		len(bytes.Trim(places, "0")) == 0 {
		if pointed {
			return wholeValue(uint64(max(n, -n)), whole[0] == '-'), true
		}
		return point.FromInt(n), true
	}
	if bytes.EqualFold(text, []byte("-nan")) {
		return point.Unset, true // as C prints it
	}
	f, ok := parseFloat(text)
	return floatWord(f), ok
}

// floatWord returns the word of a float. NaN is unset: collectd sends it while a rate has one
// value only.
func floatWord(f float64) uint64 {
	if math.IsNaN(f) {
		return point.Unset
	}
	return point.FromFloat(f)
}

// parseFloat reads what other programs print for a float. Go's own notations,
// hexadecimal and digits with underscores, are none of theirs.
func parseFloat(text []byte) (float64, bool) {
	if bytes.ContainsAny(text, "xXpP_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil
}

// parseSeconds reads a time in seconds since 1970 and returns milliseconds,
// cut, not rounded. now is true for −1, which stands for the time of arrival.
func parseSeconds(text []byte) (ms int64, now, ok bool) {
	if len(text) > fastDigits {
		return parseSecondsSlow(text)
	}
	i := 0
	for ; i < len(text) && text[i]-'0' <= 9; i++ {
		ms = ms*10 + int64(text[i]-'0')
	}
	if i == 0 || i == fastDigits || ms > maxSeconds/10 {
		return parseSecondsSlow(text)
	}
	ms *= 1000
	if i == len(text) {
		return ms, false, true
	}
	if text[i] != '.' {
		return parseSecondsSlow(text)
	}
	for scale := int64(100); i+1 < len(text) && text[i+1]-'0' <= 9; i++ {
		ms += scale * int64(text[i+1]-'0')
		scale /= 10
	}
	if i+1 < len(text) {
		return parseSecondsSlow(text)
	}
	return ms, false, true
}

func parseSecondsSlow(text []byte) (ms int64, now, ok bool) {
	f, ok := parseFloat(text)
	if !ok {
		return 0, false, false
	}
	return floatSeconds(f)
}

// floatSeconds is parseSeconds for a double. The double that is nearest to a
// number of milliseconds means that one. Others were computed: near today's time
// they are exact to a quarter of a microsecond, so what lies beyond microseconds
// is noise that must not move a point into the slot before.
func floatSeconds(f float64) (ms int64, now, ok bool) {
	if f == -1 {
		return 0, true, true
	}
	if !(f >= 0 && f < maxSeconds) {
		return 0, false, false
	}
	if nearest := math.Round(f * 1e3); nearest/1e3 == f {
		return int64(nearest), false, true
	}
	return int64(math.Floor(math.Round(f*1e6) / 1e3)), false, true
}

// intSeconds is parseSeconds for an integer.
func intSeconds(n int64) (ms int64, now, ok bool) {
	if n == -1 {
		return 0, true, true
	}
	if n < 0 || n >= maxSeconds {
		return 0, false, false
	}
	return n * 1000, false, true
}

package corpus

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// How the values of a series stand in a file: a byte, then the values. Up to
// maxPlaces it is the number of digits behind the point, which all values have,
// and each value is the difference of its digits to those before, as a number.
// With trimmed it is the largest number of such digits, and zeros at the end are
// not written. Values that neither form brings back as they were are texts.
const (
	maxPlaces = 17
	trimmed   = 32
	texts     = 255
)

func appendValues(dst []byte, values []string) []byte {
	for _, form := range forms(values) {
		if digits, ok := inForm(values, form); ok {
			dst = append(dst, form)
			last := int64(0)
			for _, v := range digits {
				dst = binary.AppendVarint(dst, v-last)
				last = v
			}
			return dst
		}
	}
	dst = append(dst, texts)
	for _, v := range values {
		dst = appendString(dst, v)
	}
	return dst
}

// forms returns the forms that may hold the values.
func forms(values []string) []byte {
	most, least := 0, maxPlaces
	for _, v := range values {
		_, behind, _ := strings.Cut(v, ".")
		most, least = max(most, len(behind)), min(least, len(behind))
	}
	switch {
	case most > maxPlaces:
		return nil
	case most == least:
		return []byte{byte(most), byte(trimmed + most)}
	}
	return []byte{byte(trimmed + most)}
}

// inForm returns the digits of the values in a form, if it brings back all of
// them.
func inForm(values []string, form byte) (digits []int64, ok bool) {
	digits = make([]int64, len(values))
	var buf []byte
	for i, v := range values {
		front, behind, _ := strings.Cut(v, ".")
		n, err := strconv.ParseInt(front+behind+strings.Repeat("0", max(0, places(form)-len(behind))), 10,
			64)
		if err != nil {
			return nil, false
		}
		if buf = appendValue(buf[:0], n, form); string(buf) != v {
			return nil, false
		}
		digits[i] = n
	}
	return digits, true
}

func places(form byte) int { return int(form) % trimmed }

// appendValue appends the text of digits in a form.
func appendValue(dst []byte, digits int64, form byte) []byte {
	p := places(form)
	if p == 0 {
		return strconv.AppendInt(dst, digits, 10)
	}
	n := uint64(digits)
	if digits < 0 {
		dst, n = append(dst, '-'), -n
	}
	var buf [24]byte
	text := strconv.AppendUint(buf[:0], n, 10)
	front := max(0, len(text)-p)
	if front == 0 {
		dst = append(dst, '0')
	}
	dst = append(append(dst, text[:front]...), '.')
	dst = append(append(dst, "00000000000000000"[:p-(len(text)-front)]...), text[front:]...)
	if form < trimmed {
		return dst
	}
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	if dst[len(dst)-1] == '.' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

func (d *decoder) values(n int) []string {
	form := d.byte()
	if n > len(d.rest) {
		d.fail(errCut)
		return nil
	}
	out := make([]string, n)
	switch {
	case form == texts:
		for i := range out {
			out[i] = d.text()
		}
		return out
	case form > maxPlaces && (form < trimmed || form > trimmed+maxPlaces):
		d.fail(fmt.Errorf("values have the unknown form %d", form))
		return nil
	}
	// One string for all: a value is a part of it.
	all, ends := make([]byte, 0, 8*n), make([]int, n)
	last := int64(0)
	for i := range out {
		last += d.number()
		all = appendValue(all, last, form)
		ends[i] = len(all)
	}
	whole, begin := string(all), 0
	for i, end := range ends {
		out[i] = whole[begin:end]
		begin = end
	}
	return out
}

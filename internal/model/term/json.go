package term

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"
)

// base64Key is the only key of the object that stands for bytes that are no text.
const base64Key = "$base64"

// AppendJSON appends the value as JSON (DESIGN.md).
func (v Value) AppendJSON(dst []byte) []byte {
	dst, _ = v.appendJSON(dst)
	return dst
}

// appendJSON also returns what follows the value.
func (v Value) appendJSON(dst []byte) (out, rest []byte) {
	own, rest := v.content()
	switch v.Kind() {
	case Number:
		return v.appendNumber(dst), rest
	case Atom:
		text, _ := v.Text()
		switch string(text) {
		case "true", "false", "null":
			return append(dst, text...), rest
		case "undefined":
			return append(dst, "null"...), rest
		}
		return appendString(dst, text), rest
	case Binary:
		if utf8.Valid(own) {
			return appendString(dst, own), rest
		}
		dst = append(dst, `{"`+base64Key+`":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, own)
		return append(dst, `"}`...), rest
	case Map:
		return appendObject(dst, binary.BigEndian.Uint32(own), rest)
	}
	if v.src[0] == tagByteList {
		return appendBytes(dst, own), rest
	}
	n, _ := members(v.src[0], own)
	return appendArray(dst, n, rest, v.src[0] == tagList)
}

// appendArray appends n values. The last one of a list is its tail, which is left out where it
// is the empty list, as in every proper list.
func appendArray(dst []byte, n uint64, rest []byte, list bool) (out, left []byte) {
	dst = append(dst, '[')
	for i := range n {
		if list && i == n-1 && rest[0] == tagNil {
			rest = rest[1:]
			break
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, rest = Value{rest}.appendJSON(dst)
	}
	return append(dst, ']'), rest
}

func appendBytes(dst, list []byte) []byte {
	dst = append(dst, '[')
	for i, b := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(b), 10)
	}
	return append(dst, ']')
}

func appendObject(dst []byte, n uint32, rest []byte) (out, left []byte) {
	dst = append(dst, '{')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		key := Value{rest}
		if text, ok := key.Text(); ok && utf8.Valid(text) {
			dst = appendString(dst, text)
			rest = key.skip()
		} else {
			var text []byte
			text, rest = key.appendJSON(nil)
			dst = appendString(dst, text)
		}
		dst = append(dst, ':')
		dst, rest = Value{rest}.appendJSON(dst)
	}
	return append(dst, '}'), rest
}

func (v Value) appendNumber(dst []byte) []byte {
	if f, ok := v.float(); ok {
		return appendFloat(dst, f)
	}
	if n, ok := v.int64(); ok {
		return strconv.AppendInt(dst, n, 10)
	}
	return v.big().Append(dst, 10)
}

// appendFloat keeps a point or an exponent in every float, so that it is read as one again.
func appendFloat(dst []byte, f float64) []byte {
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	for _, c := range dst[start:] {
		if c == '.' || c == 'e' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

// appendString appends valid UTF-8 as a JSON string.
func appendString(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < ' ' || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

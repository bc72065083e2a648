// Package metric converts between the two forms of a metric's name: the key, which is on
// the wire and in files, and the text, which people read and write.
//
// A key is the concatenation of the parts, each as one length byte and its bytes. The
// store treats it as opaque: clients of the original sent keys that are no list of parts,
// and those must survive.
//
// The text of a key is the DQL form: every part quoted, joined by dots. Inside
// quotes a backslash stands before ' and \, and \xHH is one byte; every byte
// that is not part of a printable UTF-8 character is printed that way. A key
// that is no part list is printed as one element that starts with \= and
// holds the whole key.
package metric

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of the wire format.
const (
	MaxKey    = 65535 // bytes of a key: its length travels as 16 bits
	MaxPart   = 255   // bytes of a part: its length travels as 8 bits
	MaxBucket = 255   // bytes of a bucket's name
)

// rawMark starts the text of a key that is no part list.
const rawMark = `\=`

// AppendPart appends one part of a key to dst. It panics when the part is
// longer than MaxPart: callers check input at their border.
func AppendPart(dst []byte, part string) []byte {
	if len(part) > MaxPart {
		panic(fmt.Sprintf("metric part of %d bytes, the limit is %d", len(part), MaxPart))
	}
	dst = append(dst, byte(len(part)))
	return append(dst, part...)
}

// Key returns the key of parts, or an error that names the part or the key
// that is too long.
func Key(parts ...string) ([]byte, error) {
	n := 0
	for i, p := range parts {
		if len(p) > MaxPart {
			return nil, fmt.Errorf("part %d of the metric has %d bytes, the limit is %d", i+1, len(p),
				MaxPart)
		}
		n += 1 + len(p)
	}
	if n > MaxKey {
		return nil, fmt.Errorf("the metric has %d bytes, the limit is %d", n, MaxKey)
	}
	key := make([]byte, 0, n)
	for _, p := range parts {
		key = AppendPart(key, p)
	}
	return key, nil
}

// Parts splits a key. The parts share key's memory. ok is false when the key
// is no part list.
func Parts(key []byte) (parts [][]byte, ok bool) {
	for len(key) > 0 {
		n := int(key[0])
		if len(key) < 1+n {
			return nil, false
		}
		parts = append(parts, key[1:1+n:1+n])
		key = key[1+n:]
	}
	return parts, true
}

// Prefix returns the first parts of a key. A key that is no list of parts counts as one. It
// shares the key's memory.
func Prefix(key []byte, parts int) []byte {
	n := 0
	for ; parts > 0 && n < len(key); parts-- {
		n += 1 + int(key[n])
	}
	return key[:min(n, len(key))]
}

// AppendText appends the text of key to dst.
func AppendText(dst []byte, key []byte) []byte {
	text := dst
	for rest := key; len(rest) > 0; {
		n := 1 + int(rest[0])
		if len(rest) < n {
			dst = append(append(dst, '\''), rawMark...)
			return append(appendEscaped(dst, key), '\'')
		}
		if len(rest) < len(key) {
			text = append(text, '.')
		}
		text = AppendQuoted(text, rest[1:n])
		rest = rest[n:]
	}
	return text
}

// Text returns the text of key.
func Text(key []byte) string { return string(AppendText(nil, key)) }

// AppendQuoted appends one part, or a bucket's name, in quotes.
func AppendQuoted(dst []byte, part []byte) []byte {
	dst = append(dst, '\'')
	dst = appendEscaped(dst, part)
	return append(dst, '\'')
}

// Quote returns one part, or a bucket's name, in quotes.
func Quote(part string) string { return string(AppendQuoted(nil, []byte(part))) }

// Escape returns s with the escape of this package but without quotes: what
// JSON and tables print for a name that may hold any bytes. A name of
// printable UTF-8 without quotes and backslashes is returned as it is.
func Escape(s string) string { return string(appendEscaped(nil, []byte(s))) }

func appendEscaped(dst, s []byte) []byte {
	for len(s) > 0 {
		plain := 0 // most names are nothing else
		for plain < len(s) && s[plain] >= ' ' && s[plain] < 0x7f && s[plain] != '\'' && s[plain] != '\\' {
			plain++
		}
		if dst, s = append(dst, s[:plain]...), s[plain:]; len(s) == 0 {
			break
		}
		r, n := utf8.DecodeRune(s)
		switch {
		case r == '\'' || r == '\\':
			dst = append(dst, '\\', s[0])
		case r == utf8.RuneError && n <= 1, !unicode.IsPrint(r):
			for _, b := range s[:n] {
				dst = fmt.Appendf(dst, `\x%02x`, b)
			}
		default:
			dst = append(dst, s[:n]...)
		}
		s = s[n:]
	}
	return dst
}

// errTrailingEscape is returned for a text that ends in a lone backslash.
var errTrailingEscape = errors.New(
	`a backslash at the end escapes nothing: write \\ for a backslash`)

// Unescape undoes Escape: \xHH is a byte, a backslash before any other
// character stands for that character.
func Unescape(text string) (string, error) {
	if strings.IndexByte(text, '\\') < 0 {
		return text, nil
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		i++
		if i == len(text) {
			return "", errTrailingEscape
		}
		if text[i] == 'x' && i+2 < len(text) {
			hi, ok1 := hexDigit(text[i+1])
			lo, ok2 := hexDigit(text[i+2])
			if ok1 && ok2 {
				out = append(out, hi<<4|lo)
				i += 2
				continue
			}
		}
		out = append(out, text[i])
	}
	return string(out), nil
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// KeyFromQuoted returns the key written as a list of quoted elements, given as
// the texts between the quotes: the parts, or one element that starts with \=
// for a key that is no part list.
func KeyFromQuoted(elems ...string) ([]byte, error) {
	if len(elems) == 1 && strings.HasPrefix(elems[0], rawMark) {
		raw, err := Unescape(elems[0][len(rawMark):])
		if err == nil && len(raw) > MaxKey {
			err = fmt.Errorf("the metric has %d bytes, the limit is %d", len(raw), MaxKey)
		}
		return []byte(raw), err
	}
	parts := make([]string, len(elems))
	for i, e := range elems {
		p, err := Unescape(e)
		if err != nil {
			return nil, err
		}
		parts[i] = p
	}
	return Key(parts...)
}

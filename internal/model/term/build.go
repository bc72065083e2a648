package term

import (
	"encoding/binary"
	"math"
	"math/big"
)

// The functions of this file append values of a term. The caller has appended Begin before
// the first.

// Begin appends what every term begins with.
func Begin(dst []byte) []byte { return append(dst, version) }

// AppendText appends a binary.
func AppendText[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, tagBinary)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(text)))
	return append(dst, text...)
}

// AppendAtom appends an atom of at most MaxAtom characters of UTF-8 in at most 255 bytes.
func AppendAtom(dst []byte, name string) []byte {
	dst = append(dst, tagSmallUTF8, byte(len(name)))
	return append(dst, name...)
}

// AppendFloat appends a float, which is neither NaN nor infinite.
func AppendFloat(dst []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, tagFloat), math.Float64bits(f))
}

// AppendInt appends an integer in its shortest form.
func AppendInt(dst []byte, n int64) []byte {
	switch {
	case n >= 0 && n < 256:
		return append(dst, tagSmallInt, byte(n))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return binary.BigEndian.AppendUint32(append(dst, tagInt), uint32(n))
	}
	return appendBig(dst, big.NewInt(n))
}

// appendBig appends an integer of at most MaxInteger bytes.
func appendBig(dst []byte, n *big.Int) []byte {
	digits := n.Bytes()
	sign := byte(0)
	if n.Sign() < 0 {
		sign = 1
	}
	dst = append(dst, tagBig, byte(len(digits)), sign)
	for i := len(digits) - 1; i >= 0; i-- {
		dst = append(dst, digits[i])
	}
	return dst
}

// BeginMap appends the start of a map. Its keys and values follow in turn; then the caller
// calls EndMap with mark and the number of keys.
func BeginMap(dst []byte) (out []byte, mark int) {
	return append(dst, tagMap, 0, 0, 0, 0), len(dst)
}

// EndMap writes the number of keys of the map that was begun at mark into dst.
func EndMap(dst []byte, mark, keys int) {
	binary.BigEndian.PutUint32(dst[mark+1:], uint32(keys))
}

// BeginList appends the start of a list. Its elements follow; then the caller calls EndList with
// mark and their number.
func BeginList(dst []byte) (out []byte, mark int) {
	return append(dst, tagList, 0, 0, 0, 0), len(dst)
}

// EndList ends the list that was begun at mark, and returns dst with its end.
func EndList(dst []byte, mark, n int) []byte {
	if n == 0 {
		return append(dst[:mark], tagNil)
	}
	binary.BigEndian.PutUint32(dst[mark+1:], uint32(n))
	return append(dst, tagNil)
}

// WithField returns a copy of a plain term, a map, with a text as one more field; the map itself
// where it has a field of that name. Another term becomes the field `event` of a map of two.
// What is no term is returned as it is.
func WithField[T string | []byte](plain []byte, name string, text T) []byte {
	if _, err := Normalize(plain); err != nil {
		return plain
	}
	out := make([]byte, 0, len(plain)+len(name)+len(text)+32)
	if Root(plain).Kind() != Map {
		out, mark := BeginMap(Begin(out))
		out = append(AppendText(out, "event"), plain[1:]...)
		out = AppendText(AppendText(out, name), text)
		EndMap(out, mark, 2)
		return out
	}
	if _, ok := Root(plain).Field(name); ok {
		return plain
	}
	out = AppendText(AppendText(append(out, plain...), name), text)
	EndMap(out, 1, int(binary.BigEndian.Uint32(plain[2:]))+1)
	return out
}

package term

import (
	"encoding/binary"
	"math"
	"math/big"
)

// Kind is what a value is. Their order is that of Erlang's terms of different kinds.
type Kind uint8

// The kinds of values.
const (
	Number Kind = iota + 1 // integer or float
	Atom
	Tuple
	Map
	List   // also a list of bytes
	Binary // text
)

// Value is a view of a value in a plain term. It is valid as long as the term is.
type Value struct {
	src []byte // from its tag on, with what follows it in the term
}

// Root returns the value of a plain term, one that Normalize returned.
func Root(plain []byte) Value { return Value{plain[1:]} }

// Kind returns what the value is.
func (v Value) Kind() Kind {
	switch v.src[0] {
	case tagSmallInt, tagInt, tagBig, tagLargeBig, tagFloat, tagOldFloat:
		return Number
	case tagAtom, tagSmallAtom, tagAtomUTF8, tagSmallUTF8:
		return Atom
	case tagTuple, tagLargeTuple:
		return Tuple
	case tagMap:
		return Map
	case tagBinary:
		return Binary
	}
	return List
}

// content returns the value's own bytes, and what follows them.
func (v Value) content() (own, rest []byte) {
	head, body, err := extent(v.src)
	if err != nil {
		panic("term: a value of a term that was not checked: " + err.Error())
	}
	return v.src[head : head+body], v.src[head+body:]
}

// skip returns what follows the value.
func (v Value) skip() []byte {
	left := uint64(1)
	for ; left > 0; left-- {
		own, rest := v.content()
		if n, ok := members(v.src[0], own); ok {
			left += n
		}
		v.src = rest
	}
	return v.src
}

// Text returns the bytes of a binary or an atom. Those of a binary, and of an atom in UTF-8,
// are part of the term.
func (v Value) Text() (text []byte, ok bool) {
	switch v.src[0] {
	case tagBinary, tagAtomUTF8, tagSmallUTF8:
		text, _ = v.content()
		return text, true
	case tagAtom, tagSmallAtom:
		latin, _ := v.content()
		for _, c := range latin {
			if c >= 0x80 {
				runes := make([]rune, len(latin))
				for i, c := range latin {
					runes[i] = rune(c)
				}
				return []byte(string(runes)), true
			}
		}
		return latin, true
	}
	return nil, false
}

// Field returns the value of a map under a key of that text, a binary or an atom.
func (v Value) Field(name string) (Value, bool) {
	if v.src[0] != tagMap {
		return Value{}, false
	}
	own, rest := v.content()
	for range binary.BigEndian.Uint32(own) {
		key := Value{rest}
		val := Value{key.skip()}
		if text, ok := key.Text(); ok && string(text) == name {
			return val, true
		}
		rest = val.skip()
	}
	return Value{}, false
}

// smallInts holds the terms of all bytes, for the elements of lists of bytes.
var smallInts = func() (b [512]byte) {
	for i := range 256 {
		b[2*i], b[2*i+1] = tagSmallInt, byte(i)
	}
	return b
}()

// Index returns element i of a list, from 0.
func (v Value) Index(i int64) (Value, bool) {
	if i < 0 || v.Kind() != List || v.src[0] == tagNil {
		return Value{}, false
	}
	own, rest := v.content()
	if v.src[0] == tagByteList {
		if i >= int64(len(own)) {
			return Value{}, false
		}
		at := 2 * int(own[i])
		return Value{smallInts[at : at+2]}, true
	}
	if i >= int64(binary.BigEndian.Uint32(own)) {
		return Value{}, false
	}
	for ; i > 0; i-- {
		rest = Value{rest}.skip()
	}
	return Value{rest}, true
}

// int64 returns an integer that has at most 64 bits with its sign.
func (v Value) int64() (int64, bool) {
	own, _ := v.content()
	switch v.src[0] {
	case tagSmallInt:
		return int64(own[0]), true
	case tagInt:
		return int64(int32(binary.BigEndian.Uint32(own))), true
	case tagBig, tagLargeBig:
		if b := v.big(); b.IsInt64() {
			return b.Int64(), true
		}
	}
	return 0, false
}

// float returns the value of a float.
func (v Value) float() (float64, bool) {
	own, _ := v.content()
	switch v.src[0] {
	case tagFloat:
		return math.Float64frombits(binary.BigEndian.Uint64(own)), true
	case tagOldFloat:
		return oldFloat(own)
	}
	return 0, false
}

// big returns any integer.
func (v Value) big() *big.Int {
	if v.src[0] != tagBig && v.src[0] != tagLargeBig {
		n, _ := v.int64()
		return big.NewInt(n)
	}
	own, _ := v.content()
	digits := make([]byte, len(own)-1)
	for i, d := range own[1:] {
		digits[len(digits)-1-i] = d
	}
	b := new(big.Int).SetBytes(digits)
	if own[0] == 1 {
		b.Neg(b)
	}
	return b
}

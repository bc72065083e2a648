// Package protobuf reads messages of protocol buffers where they lie
// (protobuf.dev/programming-guides/encoding): field by field, without a copy, and without knowing
// what a message is.
package protobuf

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrMalformed says that bytes are no message of protocol buffers.
var ErrMalformed = errors.New("the message is cut off or malformed")

// The wire types.
const (
	Varint  = 0
	Fixed64 = 1
	Bytes   = 2
	Fixed32 = 5
)

// Field is one field of a message. Of Data and Value only the one of its wire type is set.
type Field struct {
	Number int
	Wire   int
	Data   []byte // of Bytes, a part of the message
	Value  uint64 // of the others
}

// Key tells fields apart by number and wire type: one of another type is unknown, as in all readers
// of protocol buffers.
func (f *Field) Key() int { return f.Number<<3 | f.Wire }

// VarintKey returns the key of a field of integers, enums and booleans.
func VarintKey(n int) int { return n<<3 | Varint }

// Fixed64Key returns the key of a field of doubles and integers of fixed size.
func Fixed64Key(n int) int { return n<<3 | Fixed64 }

// BytesKey returns the key of a field of texts, bytes and messages.
func BytesKey(n int) int { return n<<3 | Bytes }

// Float returns the value of a double.
func (f *Field) Float() float64 { return math.Float64frombits(f.Value) }

// Zigzag returns the value of a sint32 or sint64.
func (f *Field) Zigzag() int64 { return Unzigzag(f.Value) }

// Unzigzag returns the sint64 that a varint stands for.
func Unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// Next takes the first field off a message. The slices of the field are part of it.
func Next(msg []byte) (f Field, rest []byte, err error) {
	tag, n := binary.Uvarint(msg)
	if n <= 0 || tag>>3 == 0 || tag>>3 > math.MaxInt32 {
		return f, nil, ErrMalformed
	}
	f.Number, f.Wire, msg = int(tag>>3), int(tag&7), msg[n:]
	switch f.Wire {
	case Varint:
		if f.Value, n = binary.Uvarint(msg); n <= 0 {
			return f, nil, ErrMalformed
		}
		return f, msg[n:], nil
	case Fixed64:
		if len(msg) < 8 {
			return f, nil, ErrMalformed
		}
		f.Value = binary.LittleEndian.Uint64(msg)
		return f, msg[8:], nil
	case Fixed32:
		if len(msg) < 4 {
			return f, nil, ErrMalformed
		}
		f.Value = uint64(binary.LittleEndian.Uint32(msg))
		return f, msg[4:], nil
	case Bytes:
		size, n := binary.Uvarint(msg)
		if n <= 0 || size > uint64(len(msg)-n) {
			return f, nil, ErrMalformed
		}
		f.Data = msg[n : n+int(size)]
		return f, msg[n+int(size):], nil
	}
	return f, nil, ErrMalformed
}

// Each calls fn with every field of a message, until it returns an error.
func Each(msg []byte, fn func(f *Field) error) error {
	for len(msg) > 0 {
		f, rest, err := Next(msg)
		if err != nil {
			return err
		}
		if err := fn(&f); err != nil {
			return err
		}
		msg = rest
	}
	return nil
}

// Packed calls fn with every number of a repeated field of varints, packed or not.
func Packed(f *Field, fn func(v uint64)) error {
	if f.Wire == Varint {
		fn(f.Value)
		return nil
	}
	if f.Wire != Bytes {
		return ErrMalformed
	}
	for data := f.Data; len(data) > 0; {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			return ErrMalformed
		}
		fn(v)
		data = data[n:]
	}
	return nil
}

// PackedFixed calls fn with every number of a repeated field of fixed size, packed or not.
func PackedFixed(f *Field, fn func(v uint64)) error {
	if f.Wire == Fixed64 {
		fn(f.Value)
		return nil
	}
	if f.Wire != Bytes || len(f.Data)%8 != 0 {
		return ErrMalformed
	}
	for data := f.Data; len(data) > 0; data = data[8:] {
		fn(binary.LittleEndian.Uint64(data))
	}
	return nil
}

// PackedFloats is PackedFixed for doubles.
func PackedFloats(f *Field, fn func(v float64)) error {
	return PackedFixed(f, func(v uint64) { fn(math.Float64frombits(v)) })
}

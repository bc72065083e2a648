package remotewrite

import (
	"encoding/binary"
	"errors"
	"math"
)

// errProto says that bytes are no message of protocol buffers.
var errProto = errors.New("the message is cut off or malformed")

// The wire types of protocol buffers (protobuf.dev/programming-guides/encoding).
const (
	typeVarint  = 0
	typeFixed64 = 1
	typeBytes   = 2
	typeFixed32 = 5
)

// field is one field of a message. Of data and number only that of its wire type is set.
type field struct {
	number int
	wire   int
	data   []byte // of typeBytes
	value  uint64 // of the others
}

// key tells fields apart by number and wire type: one of another type is unknown, as in all readers
// of protocol buffers.
func (f *field) key() int { return f.number<<3 | f.wire }

// The keys of fields.
func varintField(n int) int { return n<<3 | typeVarint }
func floatField(n int) int  { return n<<3 | typeFixed64 }
func bytesField(n int) int  { return n<<3 | typeBytes }

func (f *field) float() float64 { return math.Float64frombits(f.value) }

// zigzag returns the value of a sint32 or sint64.
func (f *field) zigzag() int64 { return unzigzag(f.value) }

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// next takes the first field off a message. The slices of the field are part of it.
func next(msg []byte) (f field, rest []byte, err error) {
	tag, n := binary.Uvarint(msg)
	if n <= 0 || tag>>3 == 0 || tag>>3 > math.MaxInt32 {
		return f, nil, errProto
	}
	f.number, f.wire, msg = int(tag>>3), int(tag&7), msg[n:]
	switch f.wire {
	case typeVarint:
		if f.value, n = binary.Uvarint(msg); n <= 0 {
			return f, nil, errProto
		}
		return f, msg[n:], nil
	case typeFixed64:
		if len(msg) < 8 {
			return f, nil, errProto
		}
		f.value = binary.LittleEndian.Uint64(msg)
		return f, msg[8:], nil
	case typeFixed32:
		if len(msg) < 4 {
			return f, nil, errProto
		}
		f.value = uint64(binary.LittleEndian.Uint32(msg))
		return f, msg[4:], nil
	case typeBytes:
		size, n := binary.Uvarint(msg)
		if n <= 0 || size > uint64(len(msg)-n) {
			return f, nil, errProto
		}
		f.data = msg[n : n+int(size)]
		return f, msg[n+int(size):], nil
	}
	return f, nil, errProto
}

// fields calls fn with every field of a message, until it returns an error.
func fields(msg []byte, fn func(f *field) error) error {
	for len(msg) > 0 {
		f, rest, err := next(msg)
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

// packed calls fn with every number of a repeated field of varints, packed or not.
func packed(f *field, fn func(v uint64)) error {
	if f.wire == typeVarint {
		fn(f.value)
		return nil
	}
	if f.wire != typeBytes {
		return errProto
	}
	for data := f.data; len(data) > 0; {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			return errProto
		}
		fn(v)
		data = data[n:]
	}
	return nil
}

// packedFloats calls fn with every number of a repeated field of doubles, packed or not.
func packedFloats(f *field, fn func(v float64)) error {
	if f.wire == typeFixed64 {
		fn(f.float())
		return nil
	}
	if f.wire != typeBytes || len(f.data)%8 != 0 {
		return errProto
	}
	for data := f.data; len(data) > 0; data = data[8:] {
		fn(math.Float64frombits(binary.LittleEndian.Uint64(data)))
	}
	return nil
}

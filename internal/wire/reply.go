package wire

import (
	"encoding/binary"
	"fmt"
)

// Lists of names: metrics of a bucket, and buckets.

// BeginNames begins the payload that answers OpList, OpListPrefix and OpBuckets. The caller
// appends names to out with AppendName and then calls EndNames with mark.
func BeginNames(dst []byte) (out []byte, mark int) {
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0), len(dst)
}

// AppendName appends one name, of at most 65,535 bytes (metric.MaxKey), to a list.
func AppendName(dst, name []byte) []byte { return appendB16(dst, name) }

// EndNames writes the size of the list that BeginNames began at mark, and that ends with
// dst, into dst.
func EndNames(dst []byte, mark int) {
	binary.BigEndian.PutUint64(dst[mark:], uint64(len(dst)-mark-8))
}

// ParseNames decodes a list of names, in the order of the payload. The names are part of
// payload. The list of them is new, and is allocated after the payload was checked. The
// error wraps ErrMalformed.
func ParseNames(payload []byte) ([][]byte, error) {
	r := reader{src: payload}
	total := r.u64()
	if r.short || total != uint64(len(r.src)) {
		return nil, fmt.Errorf("%w: a name list of %d bytes says it has %d", ErrMalformed, len(payload),
			total)
	}
	count := 0
	for s := r; len(s.src) > 0; count++ {
		s.b16()
		if s.short {
			return nil, fmt.Errorf("%w: name %d of a list does not fit its %d bytes", ErrMalformed, count+1,
				len(payload))
		}
	}
	names := make([][]byte, count)
	for i := range names {
		names[i] = r.b16()
	}
	return names, nil
}

// Info has the properties of a bucket, as the reply to OpInfo gives them.
type Info struct {
	Resolution    uint64 // milliseconds per slot
	PointsPerFile uint64 // of the original's files; GET replies are cut at its multiples
	Grace         uint64 // nanoseconds
	HPTS          bool   // points have timestamps
	TTL           uint64 // lifetime in points, 0 is infinite
}

// AppendInfo appends the payload that answers OpInfo: 25 bytes for an infinite TTL, else 33.
func AppendInfo(dst []byte, in Info) []byte {
	dst = binary.BigEndian.AppendUint64(dst, in.Resolution)
	dst = binary.BigEndian.AppendUint64(dst, in.PointsPerFile)
	dst = binary.BigEndian.AppendUint64(dst, in.Grace)
	dst = append(dst, flagByte(in.HPTS))
	if in.TTL != 0 {
		dst = binary.BigEndian.AppendUint64(dst, in.TTL)
	}
	return dst
}

// ParseInfo decodes the payload that answers OpInfo. The error wraps ErrMalformed.
func ParseInfo(payload []byte) (Info, error) {
	if len(payload) != 25 && len(payload) != 33 {
		return Info{}, fmt.Errorf("%w: a bucket info of %d bytes, it has 25 or 33", ErrMalformed,
			len(payload))
	}
	r := reader{src: payload}
	in := Info{Resolution: r.u64(), PointsPerFile: r.u64(), Grace: r.u64()}
	flag := r.u8()
	if flag > 1 {
		return Info{}, fmt.Errorf("%w: hpts flag %d in a bucket info, it is 0 or 1", ErrMalformed, flag)
	}
	in.HPTS = flag == 1
	if len(r.src) > 0 {
		in.TTL = r.u64()
	}
	return in, nil
}

// AppendError appends the payload of an ERROR. A message longer than 255 bytes is cut there,
// because its length travels in 8 bits.
func AppendError(dst []byte, message string) []byte {
	if len(message) > 255 {
		message = message[:255]
	}
	dst = append(dst, byte(OpError), byte(len(message)))
	return append(dst, message...)
}

// ParseError reports whether payload is an ERROR, and returns a copy of its message. It
// never takes another reply for one: the size of a list and a resolution do not start with
// ff, and the header of a GET reply has another length.
func ParseError(payload []byte) (message string, ok bool) {
	if len(payload) < 2 || Op(payload[0]) != OpError || len(payload) != 2+int(payload[1]) {
		return "", false
	}
	return string(payload[2:]), true
}

// Ack is the answer to an acknowledged flush. It says that every point of the connection
// before the flush is durable, except the refused ones.
type Ack struct {
	Seq      uint64 // the number that the flush carried
	Received uint64 // points since the last acknowledged flush, with the refused ones
	Refused  uint64 // how many of these were not stored
}

// AppendAck appends the payload that answers an acknowledged flush.
func AppendAck(dst []byte, a Ack) []byte {
	dst = append(dst, byte(OpFlushAck))
	dst = binary.BigEndian.AppendUint64(dst, a.Seq)
	dst = binary.BigEndian.AppendUint64(dst, a.Received)
	return binary.BigEndian.AppendUint64(dst, a.Refused)
}

// ParseAck decodes the payload that answers an acknowledged flush. The error wraps
// ErrMalformed.
func ParseAck(payload []byte) (Ack, error) {
	if len(payload) != 25 || Op(payload[0]) != OpFlushAck {
		return Ack{}, fmt.Errorf("%w: %d bytes are no answer to an acknowledged flush, which has 25 "+
			"and starts with 21",
			ErrMalformed, len(payload))
	}
	r := reader{src: payload[1:]}
	return Ack{Seq: r.u64(), Received: r.u64(), Refused: r.u64()}, nil
}

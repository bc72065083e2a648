package call

import (
	"encoding/binary"
	"errors"
	"time"

	"dalmatiner/internal/codec/fields"
)

// The kinds of frames. The first three go from the asker to the node that serves.
const (
	kindAsk    = 1 // the request, and for how long it is of use
	kindAllow  = 2 // how many parts may have been sent
	kindCancel = 3 // nobody waits any more
	kindPart   = 4 // a part of the reply
	kindEnd    = 5 // there are no more parts
	kindError  = 6 // there will be no more parts
)

// errFrame is the error of bytes that are no frame.
var errFrame = errors.New("not a frame of a call")

// frame is one of any kind.
type frame struct {
	kind   byte
	id     uint64        // of the request
	number uint64        // of the part; how many parts there were, or may be
	left   time.Duration // until the deadline
	code   Code
	body   []byte // the request, the part, or the text of the error
}

func (f *frame) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, f.kind), f.id)
	switch f.kind {
	case kindAsk:
		dst = binary.AppendUvarint(dst, uint64(max(f.left.Milliseconds(), 1)))
	case kindAllow, kindPart, kindEnd:
		dst = binary.AppendUvarint(dst, f.number)
	case kindError:
		dst = append(dst, byte(f.code))
	}
	return append(dst, f.body...)
}

// parse reads a frame, whose body is a part of b.
func parse(b []byte) (f frame, err error) {
	r := fields.Reader{Src: b}
	f.kind, f.id = r.U8(), r.U64()
	switch f.kind {
	case kindAsk:
		f.left = time.Duration(min(r.Uvarint(), uint64(maxTime/time.Millisecond))) * time.Millisecond
		f.body = r.Rest()
		r.Check(f.left > 0 && len(f.body) <= MaxRequest)
	case kindAllow, kindEnd:
		f.number = r.Uvarint()
	case kindPart:
		f.number, f.body = r.Uvarint(), r.Rest()
		r.Check(len(f.body) <= MaxPart)
	case kindCancel:
	case kindError:
		f.code, f.body = Code(r.U8()), r.Rest()
		r.Check(f.code > 0 && f.code < codes && len(f.body) <= maxText)
	default:
		r.Check(false)
	}
	if !r.IsDone() {
		return frame{}, errFrame
	}
	return f, nil
}

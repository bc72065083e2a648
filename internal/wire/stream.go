package wire

import (
	"encoding/binary"
	"fmt"

	"dalmatiner/internal/codec/point"
)

// Points takes the points of a stream in the order in which they were sent. The slices are
// part of the parser's input, and are valid during the call only. The key of an entry may be
// empty; the key of a point of a batch never is.
//
// In a stream without the hpts flag the parser first calls Batch or Entries, which may take
// many points at once. It calls Point or Points for what they do not take.
type Points interface {
	// Point takes one point of an entry or a batch. raw is its 8 bytes as a big-endian
	// integer, not normalised (package point).
	Point(key []byte, slot uint64, raw uint64)
	// Points takes points in consecutive slots, from slot on. data has 8 bytes for each,
	// or 16 in a stream with the hpts flag: the value, then its timestamp. There even
	// single points come this way. data is never empty.
	Points(key []byte, slot uint64, data []byte)
	// Batch may take points of a batch from the start of buf, which is what has arrived
	// behind the batch's slot, or behind the last point taken. It returns how many bytes
	// the points have that it took. After 0 the next point comes as Point.
	Batch(slot uint64, buf []byte) int
	// Entries may take entries from the start of buf, which begins with one for slot: such
	// as have one point, and the same slot. It returns how many bytes they have. After 0
	// the next entry comes as Point or Points, if it has points.
	Entries(slot uint64, buf []byte) int
}

// Flushes takes the messages of a stream that are no points, in their place among these.
type Flushes interface {
	// Flush is called for a flush: what came before is to be written.
	Flush()
	// FlushAck is called for a flush of an acknowledged stream: what came before is to be
	// made durable, and then answered with an Ack of seq.
	FlushAck(seq uint64)
}

// PointByPoint has the methods of Points that take many points at once. A type that
// takes none in this way embeds it.
type PointByPoint struct{}

// Batch takes nothing.
func (PointByPoint) Batch(uint64, []byte) int { return 0 }

// Entries takes nothing.
func (PointByPoint) Entries(uint64, []byte) int { return 0 }

// Bytes of the stream's messages before their variable part.
const (
	entryHead  = 1 + 8 + 2 // opcode, slot, key length
	batchHead  = 1 + 8     // opcode, slot
	flushAckSz = 1 + 8     // opcode, sequence number
)

// MinStreamLimit is the least limit of a stream parser, in bytes: an entry with the longest
// key and one point with a timestamp fits it.
const MinStreamLimit = entryHead + 65535 + 4 + 2*point.Size

// StreamParser decodes a stream that arrives in pieces. Between two pieces it keeps whether
// a batch is open, and its slot, and no bytes. It is not for concurrent use.
type StreamParser struct {
	limit   int
	width   int // bytes of a point
	ack     bool
	inBatch bool
	slot    uint64 // of the open batch
	offset  uint64 // bytes consumed since the stream was opened
}

// NewStreamParser returns the parser of the stream that the request open asked for, which it
// does not keep. limit is the most bytes of one message: of an entry with its points, or of
// one point of a batch. The caller's buffer must hold that many, or Parse might never find a
// whole message. It panics if limit is below MinStreamLimit.
func NewStreamParser(open *Request, limit int) *StreamParser {
	if limit < MinStreamLimit {
		panic(fmt.Sprintf("stream limit of %d bytes, the least is %d", limit, MinStreamLimit))
	}
	p := &StreamParser{limit: limit, width: point.Size, ack: open.Op == OpAckStream}
	if open.HPTS {
		p.width = 2 * point.Size
	}
	return p
}

// Parse hands every whole message at the start of buf to points and flushes, and returns how
// many bytes these messages have. The next buf begins with the bytes behind them, and has
// more. The points of a batch are handed on before its end has arrived.
//
// An error is final: the stream cannot be parsed any further. It names the opcode and its
// offset in the stream, and wraps ErrUnknownOpcode, ErrMalformed or ErrTooLarge. consumed
// then has the messages before it.
func (p *StreamParser) Parse(buf []byte, points Points, flushes Flushes) (consumed int, err error) {
	for consumed < len(buf) && err == nil {
		var n int
		if p.inBatch {
			n, err = p.batch(buf[consumed:], points)
		} else {
			n, err = p.message(buf[consumed:], points, flushes)
		}
		if n == 0 {
			break
		}
		consumed += n
		p.offset += uint64(n)
	}
	return consumed, err
}

// message handles one message outside a batch. It returns 0 when buf ends
// inside it.
func (p *StreamParser) message(buf []byte, points Points, flushes Flushes) (int, error) {
	switch op := Op(buf[0]); {
	case op == OpEntry:
		if p.width == point.Size && len(buf) >= entryHead {
			if n := points.Entries(binary.BigEndian.Uint64(buf[1:]), buf); n > 0 {
				return n, nil
			}
		}
		return p.entry(buf, points)
	case op == OpBatch:
		if len(buf) < batchHead {
			return 0, nil
		}
		p.slot, p.inBatch = binary.BigEndian.Uint64(buf[1:]), true
		return batchHead, nil
	case op == OpFlush:
		flushes.Flush()
		return 1, nil
	case op == OpFlushAck && p.ack:
		if len(buf) < flushAckSz {
			return 0, nil
		}
		flushes.FlushAck(binary.BigEndian.Uint64(buf[1:]))
		return flushAckSz, nil
	default:
		return 0, p.fail(op, ErrUnknownOpcode, "it is no message of a stream")
	}
}

func (p *StreamParser) entry(buf []byte, points Points) (int, error) {
	if len(buf) < entryHead {
		return 0, nil
	}
	key := int(binary.BigEndian.Uint16(buf[9:]))
	data := entryHead + key + 4
	if len(buf) < data {
		return 0, nil
	}
	size := int(binary.BigEndian.Uint32(buf[data-4:]))
	if size%p.width != 0 {
		return 0, p.fail(OpEntry, ErrMalformed, fmt.Sprintf("%d bytes of points, no multiple of %d", size,
			p.width))
	}
	if size > p.limit-data {
		return 0, p.fail(OpEntry, ErrTooLarge,
			fmt.Sprintf("an entry of %d bytes, the limit is %d: send fewer points at once", data+size,
				p.limit))
	}
	end := data + size
	if len(buf) < end {
		return 0, nil
	}
	slot := binary.BigEndian.Uint64(buf[1:])
	name := buf[entryHead : data-4 : data-4]
	switch size {
	case 0:
	case point.Size:
		points.Point(name, slot, binary.BigEndian.Uint64(buf[data:]))
	default:
		points.Points(name, slot, buf[data:end:end])
	}
	return end, nil
}

// batch handles the points of the open batch, and its end. Those that points
// does not take by itself cost one length check each, and no state is written but
// at the end.
func (p *StreamParser) batch(buf []byte, points Points) (int, error) {
	if p.width != point.Size {
		return p.timestampedBatch(buf, points)
	}
	slot := p.slot
	rest := buf
	for len(rest) >= 2 {
		if n := points.Batch(slot, rest); n > 0 {
			rest = rest[n:]
			continue
		}
		key := int(rest[0])<<8 | int(rest[1])
		if key == 0 {
			p.inBatch = false
			return len(buf) - len(rest) + 2, nil
		}
		body := rest[2:]
		if len(body) < key+point.Size {
			break
		}
		points.Point(body[:key:key], slot, binary.BigEndian.Uint64(body[key:]))
		rest = body[key+point.Size:]
	}
	return len(buf) - len(rest), nil
}

func (p *StreamParser) timestampedBatch(buf []byte, points Points) (int, error) {
	rest := buf
	for len(rest) >= 2 {
		key := int(rest[0])<<8 | int(rest[1])
		if key == 0 {
			p.inBatch = false
			return len(buf) - len(rest) + 2, nil
		}
		end := 2 + key + p.width
		if len(rest) < end {
			break
		}
		points.Points(rest[2:2+key:2+key], p.slot, rest[2+key:end:end])
		rest = rest[end:]
	}
	return len(buf) - len(rest), nil
}

func (p *StreamParser) fail(op Op, kind error, detail string) error {
	return fmt.Errorf("%w: opcode %d (0x%02x) at byte %d of the stream: %s", kind, op, uint8(op),
		p.offset, detail)
}

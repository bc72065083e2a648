package wire

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"

	"dalmatiner/internal/codec/point"
)

// The first bytes of the frames of a GET reply (docs/protocol.md, "Answers").
const (
	getEnd       = 0x00
	getData      = 0x01
	getPaddedOld = 0x02 // u64 padding: read only
	getPadded    = 0x03
	getHeader    = byte(OpError)
)

// MaxGetSlots is the most slots that a data frame of this server holds, whatever the points
// per file of the bucket. So neither side holds more than half a megabyte of points for a
// frame, or a whole one with timestamps.
const MaxGetSlots = 65536

// AppendGetHeader appends the payload of the first frame of a GET reply. It says that no
// aggregation was applied.
func AppendGetHeader(dst []byte) []byte { return append(dst, getHeader) }

// AppendGetEnd appends the payload of the last frame of a GET reply.
func AppendGetEnd(dst []byte) []byte { return append(dst, getEnd) }

// GetEncoder encodes data frames of a GET reply. It keeps a buffer between calls. The zero
// value is ready; it must not be used by two goroutines at once.
type GetEncoder struct {
	// Exact keeps the lowest bit of floats, which only clients that ask for it understand.
	// They understand stale markers as well.
	Exact bool

	raw []byte
}

// word returns the bytes of a point as an integer.
func (e *GetEncoder) word(w uint64) uint64 {
	if e.Exact {
		return w
	}
	return point.EvenWord(w)
}

// AppendData appends the payload of one data frame with all of words, which are normalised
// (package point), without stale markers unless the client has asked for exact words. Unset words
// at the end travel as a count.
func (e *GetEncoder) AppendData(dst []byte, words []uint64) []byte {
	set := len(words)
	for set > 0 && words[set-1] == point.Unset {
		set--
	}
	if pad := len(words) - set; pad > 0 {
		dst = append(dst, getPadded)
		dst = binary.BigEndian.AppendUint32(dst, uint32(pad))
	} else {
		dst = append(dst, getData)
	}
	if set == 0 {
		// Snappy of nothing is nothing here: the length byte is left out.
		return dst
	}
	e.raw = slices.Grow(e.raw[:0], set*point.Size)
	for _, w := range words[:set] {
		e.raw = point.Append(e.raw, e.word(w))
	}
	return e.appendCoded(dst)
}

// AppendTimestampedData appends the payload of one data frame for a GET with the hpts
// option. timestamps has one element for each word, in nanoseconds since 1970. A word is
// followed by its timestamp, and an unset word by zeros. Unset words at the end do not travel
// as a count, because clients disagree how many bytes it stands for.
func (e *GetEncoder) AppendTimestampedData(dst []byte, words, timestamps []uint64) []byte {
	dst = append(dst, getData)
	if len(words) == 0 {
		return dst
	}
	e.raw = slices.Grow(e.raw[:0], len(words)*2*point.Size)
	for i, w := range words {
		timestamp := timestamps[i]
		if w == point.Unset {
			timestamp = 0
		}
		e.raw = point.Append(point.Append(e.raw, e.word(w)), timestamp)
	}
	return e.appendCoded(dst)
}

// appendCoded appends e.raw, compressed.
func (e *GetEncoder) appendCoded(dst []byte) []byte {
	dst = slices.Grow(dst, s2.MaxEncodedLen(len(e.raw)))
	coded := s2.EncodeSnappy(dst[len(dst):cap(dst)], e.raw)
	return dst[:len(dst)+len(coded)]
}

// GetFrameKind tells the frames of a GET reply apart.
type GetFrameKind uint8

// The frames of a GET reply.
const (
	GetHeader GetFrameKind = iota + 1
	GetData
	GetEnd
)

// GetFrame is one frame of a GET reply. Its slices are part of the payload it was parsed
// from.
type GetFrame struct {
	Kind GetFrameKind

	Aggr      []byte // GetHeader: the aggregation that was applied, or nil
	AggrCount uint32 // GetHeader: slots per point of the aggregation

	Coded   []byte // GetData: the points, compressed by snappy; Decoder reads them
	Padding uint64 // GetData: the number of unset slots behind them
}

// ParseGetFrame decodes the payload of one frame of a GET reply. The caller calls ParseError
// first. The error wraps ErrMalformed.
func ParseGetFrame(payload []byte) (GetFrame, error) {
	r := reader{src: payload}
	switch op := r.u8(); {
	case r.short:
		return GetFrame{}, fmt.Errorf("%w: an empty frame in a get reply", ErrMalformed)
	case op == getHeader && len(r.src) == 0:
		return GetFrame{Kind: GetHeader}, nil
	case op == getHeader:
		f := GetFrame{Kind: GetHeader, Aggr: r.b8(), AggrCount: r.u32()}
		if r.short || len(r.src) > 0 {
			return GetFrame{}, fmt.Errorf("%w: a get header of %d bytes", ErrMalformed, len(payload))
		}
		return f, nil
	case op == getData:
		return GetFrame{Kind: GetData, Coded: r.src}, nil
	case op == getPadded || op == getPaddedOld:
		f := GetFrame{Kind: GetData}
		if op == getPadded {
			f.Padding = uint64(r.u32())
		} else {
			f.Padding = r.u64()
		}
		if r.short {
			return GetFrame{}, fmt.Errorf("%w: a padded get frame of %d bytes", ErrMalformed, len(payload))
		}
		f.Coded = r.src
		return f, nil
	case op == getEnd && len(r.src) == 0:
		return GetFrame{Kind: GetEnd}, nil
	default:
		return GetFrame{}, fmt.Errorf("%w: a get reply frame starts with %02x and has %d bytes",
			ErrMalformed, op, len(payload))
	}
}

// Decoder decodes the points of data frames of a GET reply. It keeps a buffer between calls.
// The zero value is ready; it must not be used by two goroutines at once.
type Decoder struct {
	raw []byte
}

// AppendWords appends a word for every slot of the data frame f, normalised, and point.Unset
// for its padding. limit is how many slots the caller still expects. A frame of more is
// refused with an error that wraps ErrTooLarge, before anything is allocated. Other errors
// wrap ErrMalformed. After an error some words may have been appended.
func (d *Decoder) AppendWords(dst []uint64, f GetFrame, limit int) ([]uint64, error) {
	raw, err := d.decode(f, point.Size, limit)
	if err != nil {
		return dst, err
	}
	dst = slices.Grow(dst, len(raw)/point.Size+int(f.Padding))
	for ; len(raw) > 0; raw = raw[point.Size:] {
		w, ok := point.NormalizeMarked(point.Get(raw))
		if !ok {
			return dst, fmt.Errorf("%w: a point of type %02x, which stands for nothing", ErrMalformed,
				raw[0])
		}
		dst = append(dst, w)
	}
	for range f.Padding {
		dst = append(dst, point.Unset)
	}
	return dst, nil
}

// decode returns the uncompressed points of f, width bytes each.
func (d *Decoder) decode(f GetFrame, width, limit int) ([]byte, error) {
	if f.Padding > uint64(limit) {
		return nil, fmt.Errorf("%w: a get frame pads %d slots, expected are at most %d", ErrTooLarge,
			f.Padding, limit)
	}
	if len(f.Coded) == 0 {
		return nil, nil
	}
	n, err := s2.DecodedLen(f.Coded)
	if err != nil {
		return nil, fmt.Errorf("%w: get frame: %v", ErrMalformed, err)
	}
	if n%width != 0 {
		return nil, fmt.Errorf("%w: a get frame holds %d bytes, no multiple of %d", ErrMalformed, n,
			width)
	}
	if most := limit - int(f.Padding); n/width > most {
		return nil, fmt.Errorf("%w: a get frame of %d slots, expected are at most %d", ErrTooLarge,
			n/width, most)
	}
	// A snappy element makes at most 64 bytes from 3, so that a frame's size
	// bounds what it may claim.
	if n > 32*len(f.Coded) {
		return nil, fmt.Errorf("%w: %d compressed bytes claim to hold %d", ErrMalformed, len(f.Coded), n)
	}
	d.raw, err = s2.Decode(slices.Grow(d.raw[:0], n)[:n], f.Coded)
	if err != nil {
		return nil, fmt.Errorf("%w: get frame: %v", ErrMalformed, err)
	}
	return d.raw, nil
}

// Timestamped is a point with a timestamp.
type Timestamped struct {
	Word uint64 // normalised (package point)
	// nanoseconds since 1970, 0 for an unset word; the begin of the slot for a stale marker
	Time uint64
}

// AppendTimestamped is AppendWords for the reply to a GET with the hpts option, whose points
// have 16 bytes: the value, then its timestamp.
func (d *Decoder) AppendTimestamped(dst []Timestamped, f GetFrame,
	limit int) ([]Timestamped, error) {
	raw, err := d.decode(f, 2*point.Size, limit)
	if err != nil {
		return dst, err
	}
	dst = slices.Grow(dst, len(raw)/(2*point.Size)+int(f.Padding))
	for ; len(raw) > 0; raw = raw[2*point.Size:] {
		w, ok := point.NormalizeMarked(point.Get(raw))
		if !ok {
			return dst, fmt.Errorf("%w: a point of type %02x, which stands for nothing", ErrMalformed,
				raw[0])
		}
		dst = append(dst, Timestamped{Word: w, Time: point.Get(raw[point.Size:])})
	}
	for range f.Padding {
		dst = append(dst, Timestamped{})
	}
	return dst, nil
}

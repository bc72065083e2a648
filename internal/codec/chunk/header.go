package chunk

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"dalmatiner/internal/codec/intlist"
	"dalmatiner/internal/codec/point"
)

// The classes of a chunk: what its values are.
const (
	classInts     = iota // integers
	classDecimals        // floats, all of them decimals
	classBits            // floats as they are
	classSplit           // two lists: integers and floats, or decimals and others
)

// The shapes of a chunk: which slots are set.
const (
	shapeFull   = iota // all of them
	shapeRun           // those from the first to the last set one
	shapeMask          // a mask tells, behind the header
	shapeBits   = 2    // shift of the shape in the form byte
	changesFlag = 1 << 4
	// Of classInts and classDecimals: the first value is the least and the last one the
	// greatest; all are equal; with both, none is below the one before it.
	risingFlag = 1 << 6
	evenFlag   = 1 << 7
	// Of classBits: the least, the greatest and the first integer of the list are those of the
	// words in the header.
	impliedFlag = 1 << 6
)

// Flags of the header of classBits and classSplit.
const (
	flagMin      = 0      // shift of where the smallest value is found
	flagMax      = 2      // shift of where the largest value is found
	flagSame     = 1 << 4 // the last word is the first
	flagRises    = 1 << 5
	flagConstant = 1 << 6
	flagInts     = 1 << 7 // the sums have an integer part
	fromStored   = 0
	fromFirst    = 1
	fromLast     = 2
	fromUnset    = 3
)

// frame is a parsed header and what the payload needs of it.
type frame struct {
	Header
	class    int
	shape    int
	changes  bool
	constant bool
	implied  bool // of classBits
	// Of classInts and classDecimals.
	kind      transform
	min, span int64
	first     int64
	last      int64
	rising    bool
}

// slots is the number of slots from the first to the last set one.
func (f *frame) slots() int { return f.LastOff - f.FirstOff + 1 }

// appendForm appends the form byte and which slots are set, but for the mask.
func (f *frame) appendForm(dst []byte) []byte {
	form := byte(f.class) | byte(f.shape)<<shapeBits
	if f.changes {
		form |= changesFlag
	}
	if f.class < classBits {
		f.rising = f.span > 0 && f.first == f.min && f.last == f.min+f.span
		if f.rising {
			form |= risingFlag
		}
		if f.span == 0 || f.Rises {
			form |= evenFlag
		}
	}
	if f.implied {
		form |= impliedFlag
	}
	dst = append(dst, form)
	first, last, count := uint32(f.FirstOff), uint32(f.LastOff), uint32(f.Count)
	switch f.shape {
	case shapeRun:
		v := first | last<<10
		dst = append(dst, byte(v), byte(v>>8), byte(v>>16))
	case shapeMask:
		dst = binary.LittleEndian.AppendUint32(dst, first|last<<10|count<<20)
	}
	return dst
}

func (f *frame) parseForm(r *reader) error {
	form := r.U8()
	f.class = int(form & 3)
	f.shape = int(form >> shapeBits & 3)
	f.changes, f.rising, f.constant = form&changesFlag != 0, form&risingFlag != 0, form&evenFlag != 0
	switch f.shape {
	case shapeFull:
		f.LastOff = Slots - 1
	case shapeRun:
		v := int(r.U8()) | int(r.U8())<<8 | int(r.U8())<<16
		f.FirstOff, f.LastOff = v&1023, v>>10
	case shapeMask:
		if b := r.Take(4); b != nil {
			v := int(binary.LittleEndian.Uint32(b))
			f.FirstOff, f.LastOff, f.Count = v&1023, v>>10&1023, v>>20
		}
	}
	if f.class == classBits {
		f.implied, f.rising = f.rising, false
	}
	if f.class < classBits {
		f.Rises = f.constant
		f.constant = f.constant && !f.rising
	}
	if r.Bad || form&multiPartForm != 0 || f.shape > shapeMask || f.class >= classBits &&
		(f.rising || f.constant) {
		return fmt.Errorf("%w: form byte %#02x is not defined or what follows is cut off", ErrCorrupt,
			form)
	}
	if f.FirstOff > f.LastOff || f.LastOff >= Slots {
		return fmt.Errorf("%w: set slots %d to %d of %d", ErrCorrupt, f.FirstOff, f.LastOff, Slots)
	}
	if f.shape != shapeMask {
		f.Count = f.slots()
	} else if f.Count < 2 || f.Count >= f.slots() {
		return fmt.Errorf("%w: %d of slots %d to %d set", ErrCorrupt, f.Count, f.FirstOff, f.LastOff)
	}
	return nil
}

// appendScaled appends the aggregates of classInts and classDecimals. sum is that of the
// integers.
func (f *frame) appendScaled(dst []byte, sum Sum) []byte {
	if f.class == classDecimals {
		dst = append(dst, byte(f.kind))
	}
	dst = binary.AppendUvarint(dst, intlist.Zigzag(f.min))
	if f.span != 0 {
		dst = binary.AppendUvarint(dst, uint64(f.span))
		width := uint(bits.Len64(uint64(f.span)))
		w := bitWriter{intlist.BitWriter{Dst: dst}}
		if !f.rising {
			w.Put(uint64(f.first-f.min), width)
			w.Put(uint64(f.last-f.min), width)
		}
		w.putSum(sum, f.min, f.Count, width)
		dst = w.Finish()
	}
	if f.class == classDecimals {
		guess := sum.Float64() / f.kind.quotient().Scale
		off := int64(math.Float64bits(f.Sum.Float) - math.Float64bits(guess))
		dst = binary.AppendUvarint(dst, intlist.Zigzag(off))
	}
	return dst
}

// sumBits is the number of bits that a sum over 720 values takes more than a
// value.
const sumBits = 10

// putSum appends the sum of n values less n times the smallest.
func (b *bitWriter) putSum(s Sum, least int64, n int, width uint) {
	hi, lo := s.difference(product(least, n))
	if width += sumBits; width <= 64 {
		b.Put(lo, width)
		return
	}
	b.Put(lo, 64)
	b.Put(hi, width-64)
}

func (r *bitReader) getSum(least int64, n int, width uint) Sum {
	var s Sum
	if width += sumBits; width <= 64 {
		s.Lo = r.Get(width)
	} else {
		s.Lo = r.Get(64)
		s.Hi = int64(r.Get(width - 64))
	}
	s.AddInts(product(least, n))
	return s
}

func (f *frame) parseScaled(r *reader) error {
	f.kind = asInt
	lowest, highest := point.MinInt, point.MaxInt
	if f.class == classDecimals {
		f.kind = transform(r.U8())
		lowest, highest = -1<<52, 1<<52
	}
	f.min = r.Varint()
	span := uint64(0)
	if !f.constant {
		span = r.Uvarint()
	}
	if r.Bad || span == 0 != f.constant || f.class == classDecimals && !f.kind.decimal() ||
		f.min < lowest || f.min > highest || span > uint64(highest-f.min) {
		return fmt.Errorf("%w: kind %d, values from %d over %d", ErrCorrupt, f.kind, f.min, span)
	}
	f.span = int64(span)
	f.first, f.last = f.min, f.min
	sum := product(f.min, f.Count)
	if span != 0 {
		width := uint(bits.Len64(span))
		b := bitReader{intlist.BitReader{Src: r.Src}}
		first, last := uint64(0), span
		if !f.rising {
			first, last = b.Get(width), b.Get(width)
		}
		sum = b.getSum(f.min, f.Count, width)
		if b.HasOverrun() || first > span || last > span {
			return fmt.Errorf("%w: first value %d and last %d above the smallest, span %d", ErrCorrupt,
				first, last, span)
		}
		r.Src = b.Rest()
		f.first, f.last = f.min+int64(first), f.min+int64(last)
	}
	f.First, f.Last = f.kind.word(f.first), f.kind.word(f.last)
	f.Min, f.Max = f.kind.word(f.min), f.kind.word(f.min+f.span)
	f.Sum = sum
	if f.class == classDecimals {
		f.parseFloatSum(r, sum)
	}
	if r.Bad {
		return fmt.Errorf("%w: header is cut off", ErrCorrupt)
	}
	return nil
}

// parseFloatSum reads the sum of classDecimals; sum is that of the integers.
func (f *frame) parseFloatSum(r *reader, sum Sum) {
	guess := sum.Float64() / f.kind.quotient().Scale
	f.Sum = Sum{Float: canonical(math.Float64frombits(math.Float64bits(guess) + uint64(r.Varint())))}
}

func (r *reader) float() float64 {
	b := r.Take(8)
	if b == nil {
		return 0
	}
	return canonical(math.Float64frombits(binary.LittleEndian.Uint64(b)))
}

// ParseHeader returns the aggregates of the chunk src. It does not look at the payload
// behind them. Those of a multi-part chunk are combined from its pieces. The error wraps
// ErrCorrupt, and the Header has no meaning then.
func ParseHeader(src []byte) (Header, error) {
	switch {
	case IsMultiPart(src):
		return parseMultiPart(src)
	case HasStale(src):
		return parseStale(src)
	}
	var f frame
	r := newReader(src)
	err := f.parse(&r)
	return f.Header, err
}

// Count returns how many slots of the chunk src are set, with a value or a stale marker. It
// reads at most the first five bytes, beside the mask of stale markers, and of a multi-part
// chunk the headers of all pieces. The error wraps ErrCorrupt,
// and the count has no meaning then.
func Count(src []byte) (int, error) {
	switch {
	case IsMultiPart(src):
		h, err := parseMultiPart(src)
		return h.Count, err
	case HasStale(src):
		return countStale(src)
	}
	var f frame
	r := newReader(src)
	err := f.parseForm(&r)
	return f.Count, err
}

func (f *frame) parse(r *reader) error {
	if err := f.parseForm(r); err != nil {
		return err
	}
	var err error
	if f.class == classInts || f.class == classDecimals {
		err = f.parseScaled(r)
	} else {
		err = f.parseWords(r)
	}
	if err == nil && f.constant && f.changes {
		err = fmt.Errorf("%w: changes of a constant", ErrCorrupt)
	} else if err == nil && f.constant && f.implied {
		err = fmt.Errorf("%w: a constant with a list", ErrCorrupt)
	}
	return err
}

package chunk

import (
	"encoding/binary"
	"fmt"

	"dalmatiner/internal/codec/floatsum"
	"dalmatiner/internal/codec/intlist"
	"dalmatiner/internal/codec/point"
)

const (
	// multiPartForm is the form byte of a chunk that is a list of pieces.
	multiPartForm = 1 << 5
	// minListed and maxListed bound a multi-part chunk: one piece needs no list, and
	// in one of pieces shorter than a lane the headers would outweigh the rest.
	minListed = 2
	maxListed = intlist.MaxLanes
)

// IsMultiPart reports whether the chunk src is a list of pieces, as AppendMultiPart makes
// it. To encode its words anew gives other bytes, and fewer.
func IsMultiPart(src []byte) bool { return len(src) > 0 && src[0] == multiPartForm }

// AppendMultiPart appends a chunk made of pieces to dst, and returns how many points they
// have. The pieces are copied as they are, and not decoded. There are 2 to 12 of them, each
// as Encoder.Append made it. They ascend, and have no slot in common.
//
// It refuses pieces with stale markers, and those of which the headers alone do not give the float
// sums in the order of Sum: a piece with floats has to lie within one lane, and has to be the only
// one with floats there. The caller encodes the words of other pieces as a whole. After an error
// out is dst as it was.
func AppendMultiPart(dst []byte, pieces [][]byte) (out []byte, points int, err error) {
	if len(pieces) < minListed || len(pieces) > maxListed {
		return dst, 0, fmt.Errorf("multi-part chunk of %d pieces, want %d to %d", len(pieces), minListed,
			maxListed)
	}
	var g combiner
	for _, p := range pieces {
		if err := g.join(p); err != nil {
			return dst, 0, err
		}
	}
	dst = append(dst, multiPartForm, byte(len(pieces)))
	for _, p := range pieces {
		dst = binary.AppendUvarint(dst, uint64(len(p)))
	}
	for _, p := range pieces {
		dst = append(dst, p...)
	}
	return dst, g.h.Count, nil
}

// parts reads the pieces of a multi-part chunk one after the other.
type parts struct {
	n       int
	lengths reader
	pieces  reader
}

func parseParts(src []byte) (parts, error) {
	r := newReader(src[1:])
	p := parts{n: int(r.U8())}
	if p.n < minListed || p.n > maxListed {
		return p, fmt.Errorf("%w: multi-part chunk of %d pieces, want %d to %d", ErrCorrupt, p.n,
			minListed, maxListed)
	}
	p.lengths = r
	rest := uint64(0)
	for range p.n {
		n := r.Uvarint()
		r.Bad = r.Bad || n > uint64(len(src)) // so that the sum cannot overflow
		rest += n
	}
	if r.Bad || rest != uint64(len(r.Src)) {
		return p, fmt.Errorf("%w: multi-part chunk of %d pieces of %d bytes, %d are there", ErrCorrupt,
			p.n, rest, len(r.Src))
	}
	p.pieces = r
	return p, nil
}

// next returns the next piece; parseParts has checked that it is there.
func (p *parts) next() []byte { return p.pieces.Take(int(p.lengths.Uvarint())) }

// parseMultiPart combines the headers of the pieces.
func parseMultiPart(src []byte) (Header, error) {
	p, err := parseParts(src)
	if err != nil {
		return Header{}, err
	}
	var g combiner
	for range p.n {
		if err := g.add(p.next()); err != nil {
			return Header{}, err
		}
	}
	return g.header(), nil
}

// decodeMultiPart decodes the pieces that the range touches, or nothing where
// one of them does not decode: of a damaged chunk no part is returned.
func decodeMultiPart(dst []uint64, src []byte, from int) error {
	var before [Slots]uint64
	copy(before[:], dst)
	err := decodeParts(dst, src, from)
	if err != nil {
		copy(dst, before[:])
	}
	return err
}

func decodeParts(dst []uint64, src []byte, from int) error {
	p, err := parseParts(src)
	if err != nil {
		return err
	}
	m := memories.Get().(*memory)
	defer m.release()
	past := -1
	for range p.n {
		piece := p.next()
		var f frame
		r := newReader(piece)
		if err := f.parse(&r); err != nil {
			return err
		}
		if f.FirstOff <= past {
			return fmt.Errorf("%w: piece from slot %d on behind one to slot %d", ErrCorrupt, f.FirstOff,
				past)
		}
		past = f.LastOff
		if f.LastOff < from || f.FirstOff >= from+len(dst) {
			continue
		}
		if err := m.decodeFrame(dst, &r, &f, from); err != nil {
			return err
		}
	}
	return nil
}

// combiner combines the headers of pieces.
type combiner struct {
	h   Header
	sum laneSum // the float part
}

// add takes the next piece.
func (g *combiner) add(piece []byte) error {
	var f frame
	r := newReader(piece)
	if err := f.parse(&r); err != nil {
		return err
	}
	return g.take(&f)
}

// join is add for a piece of which only place and class count: whether it goes
// with the others depends on nothing else. It spares a flush most of the way
// through the headers.
func (g *combiner) join(piece []byte) error {
	var f frame
	r := newReader(piece)
	if err := f.parseForm(&r); err != nil {
		return err
	}
	switch f.class {
	case classInts:
		f.First, f.Last, f.Min, f.Max = intTag, intTag, intTag, intTag
	case classDecimals:
		f.First, f.Last, f.Min, f.Max = firstFloat, firstFloat, firstFloat, firstFloat
	default:
		return g.add(piece)
	}
	return g.take(&f)
}

// take takes the header of the next piece.
func (g *combiner) take(f *frame) error {
	h := &g.h
	if h.Count == 0 {
		h.FirstOff, h.First = f.FirstOff, f.First
		h.Min, h.Max, h.Rises = f.Min, f.Max, f.Rises
	} else {
		if f.FirstOff <= h.LastOff {
			return fmt.Errorf("%w: piece from slot %d on behind one to slot %d", ErrCorrupt, f.FirstOff,
				h.LastOff)
		}
		h.Rises = h.Rises && f.Rises && !Less(f.First, h.Last)
		if h.Min == point.Unset || f.Min != point.Unset && Less(f.Min, h.Min) {
			h.Min = f.Min
		}
		if h.Max == point.Unset || f.Max != point.Unset && Less(h.Max, f.Max) {
			h.Max = f.Max
		}
	}
	h.Count += f.Count
	h.LastOff, h.Last = f.LastOff, f.Last
	h.Sum.AddInts(f.Sum)
	if f.class == classInts {
		return nil
	}
	lane := f.FirstOff / Lane
	if f.LastOff/Lane != lane || !g.sum.put(lane, f.Sum.Float) {
		return fmt.Errorf("%w: the headers of the pieces do not give the float sum, slots %d to %d",
			ErrCorrupt, f.FirstOff, f.LastOff)
	}
	return nil
}

func (g *combiner) header() Header {
	g.h.Sum.Float = g.sum.sum()
	return g.h
}

// laneSum adds floats in the order of Sum.
type laneSum struct {
	total, partial floatsum.Sum
	lane           int
	open           bool // the lane has floats
}

// enter makes lane the one that is added to. Lanes without floats would add
// +0, which changes no sum that started at +0.
func (s *laneSum) enter(lane int) {
	if s.open && lane == s.lane {
		return
	}
	s.total.Add(s.partial.Value())
	s.partial, s.lane, s.open = floatsum.Sum{}, lane, false
}

func (s *laneSum) add(lane int, v float64) {
	s.enter(lane)
	s.partial.Add(v)
	s.open = true
}

// put takes the sum of a part of a lane, and reports false when the lane has
// floats already: adding the values one by one could give another sum.
func (s *laneSum) put(lane int, sum float64) bool {
	s.enter(lane)
	if s.open {
		return false
	}
	s.partial, s.open = floatsum.Sum{Float: sum}, true
	return true
}

func (s *laneSum) sum() float64 {
	total := s.total
	total.Add(s.partial.Value())
	return canonical(total.Value())
}

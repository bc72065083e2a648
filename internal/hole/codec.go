package hole

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errMalformed = errors.New("malformed marks or holes")

// AppendMarks appends the encoding of marks; DESIGN.md has it.
func AppendMarks(dst []byte, m *Marks) []byte {
	if m.All {
		return append(dst, 1)
	}
	dst = binary.AppendUvarint(append(dst, 0), uint64(len(m.List)))
	for i := range m.List {
		k := &m.List[i]
		dst = binary.AppendUvarint(dst, k.Bucket)
		dst = binary.AppendVarint(dst, k.First)
		dst = binary.AppendUvarint(dst, uint64(k.Past)-uint64(k.First))
		dst = appendPrefixes(dst, k.Low, k.High)
	}
	return dst
}

// ParseMarks undoes AppendMarks and returns what follows.
func ParseMarks(src []byte) (m Marks, rest []byte, err error) {
	p := parser{src: src}
	switch p.byte() {
	case 1:
		m.All = true
	case 0:
		n := p.uvarint()
		if n > uint64(len(p.src)) {
			p.bad = true
		}
		for range n {
			if p.bad {
				break
			}
			k := Mark{Bucket: p.uvarint(), First: p.varint()}
			k.Past = p.behind(k.First)
			k.Low, k.High = p.prefixes()
			m.List = append(m.List, k)
		}
	default:
		p.bad = true
	}
	if p.bad {
		return Marks{}, src, fmt.Errorf("%w: marks of %d bytes", errMalformed, len(src))
	}
	return m, p.src, nil
}

// AppendHole appends the encoding of a hole.
func AppendHole(dst []byte, h *Hole) []byte {
	dst = binary.AppendUvarint(dst, h.Bucket)
	dst = appendPrefixes(dst, h.Low, h.High)
	dst = binary.AppendVarint(dst, h.From)
	dst = binary.AppendUvarint(dst, uint64(h.Past)-uint64(h.From))
	dst = binary.AppendUvarint(dst, h.At.Generation)
	flags := byte(h.Cause) << 1
	if h.At.Window {
		flags |= 1
	}
	return binary.AppendUvarint(append(dst, flags), h.Source)
}

// ParseHole undoes AppendHole and returns what follows.
func ParseHole(src []byte) (h Hole, rest []byte, err error) {
	p := parser{src: src}
	h.Bucket = p.uvarint()
	h.Low, h.High = p.prefixes()
	h.From = p.varint()
	h.Past = p.behind(h.From)
	h.At.Generation = p.uvarint()
	flags := p.byte()
	h.At.Window, h.Cause = flags&1 != 0, Cause(flags>>1)
	h.Source = p.uvarint()
	if p.bad || h.Cause >= causes {
		return Hole{}, src, fmt.Errorf("%w: a hole in %d bytes", errMalformed, len(src))
	}
	return h, p.src, nil
}

func appendPrefixes(dst []byte, low, high Prefix) []byte {
	return binary.AppendUvarint(binary.BigEndian.AppendUint64(dst, low), high-low)
}

// parser reads fields until one is malformed, and zeros from then on.
type parser struct {
	src []byte
	bad bool
}

func (p *parser) byte() byte {
	if len(p.src) == 0 {
		p.bad = true
		return 0
	}
	b := p.src[0]
	p.src = p.src[1:]
	return b
}

func (p *parser) uvarint() uint64 {
	v, n := binary.Uvarint(p.src)
	if n <= 0 {
		p.bad = true
		return 0
	}
	p.src = p.src[n:]
	return v
}

func (p *parser) varint() int64 {
	u := p.uvarint()
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v
}

// behind reads a distance and returns the number that lies so far behind another.
func (p *parser) behind(from int64) int64 {
	past := int64(uint64(from) + p.uvarint())
	p.bad = p.bad || past <= from
	return past
}

func (p *parser) prefixes() (low, high Prefix) {
	if len(p.src) < 8 {
		p.bad = true
		return 0, 0
	}
	low = binary.BigEndian.Uint64(p.src)
	p.src = p.src[8:]
	high = low + p.uvarint()
	p.bad = p.bad || high < low
	return low, high
}

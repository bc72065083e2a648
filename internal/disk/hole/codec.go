package hole

import (
	"encoding/binary"

	"dalmatiner/internal/codec/fields"
)

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

// ReadMarks reads what AppendMarks wrote.
func ReadMarks(r *fields.Reader) (m Marks) {
	switch r.U8() {
	case 1:
		m.All = true
	case 0:
		for n := r.UpTo(uint64(len(r.Src))); n > 0 && !r.Bad; n-- {
			k := Mark{Bucket: r.Uvarint(), First: r.Varint()}
			k.Past = readPast(r, k.First)
			k.Low, k.High = readPrefixes(r)
			m.List = append(m.List, k)
		}
	default:
		r.Check(false)
	}
	if r.Bad {
		return Marks{}
	}
	return m
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

// ReadHole reads what AppendHole wrote.
func ReadHole(r *fields.Reader) (h Hole) {
	h.Bucket = r.Uvarint()
	h.Low, h.High = readPrefixes(r)
	h.From = r.Varint()
	h.Past = readPast(r, h.From)
	h.At.Generation = r.Uvarint()
	flags := r.U8()
	h.At.Window, h.Cause = flags&1 != 0, Cause(flags>>1)
	h.Source = r.Uvarint()
	if r.Check(h.Cause < causes); r.Bad {
		return Hole{}
	}
	return h
}

func appendPrefixes(dst []byte, low, high Prefix) []byte {
	return binary.AppendUvarint(binary.BigEndian.AppendUint64(dst, low), high-low)
}

// readPast reads a distance and returns the number that lies so far behind another.
func readPast(r *fields.Reader, from int64) int64 {
	past := int64(uint64(from) + r.Uvarint())
	r.Check(past > from)
	return past
}

func readPrefixes(r *fields.Reader) (low, high Prefix) {
	if b := r.Take(8); b != nil {
		low = binary.BigEndian.Uint64(b)
	}
	high = low + r.Uvarint()
	r.Check(high >= low)
	return low, high
}

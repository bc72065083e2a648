package tags

import (
	"encoding/binary"
	"errors"

	"dalmatiner/internal/model/metric"
)

// The flags of an encoded change.
const (
	flagReplace = 1 << iota
	flagLeave
	flagsKnown = 1<<iota - 1
)

// fixed is the length of what has always the same: flags, bucket, clock, node.
const fixed = 1 + 3*8

// ErrMalformed is returned for bytes that no AppendChange wrote.
var ErrMalformed = errors.New("malformed change of tags")

// AppendChange appends the encoded form of a change, which must be valid (Check), to dst. The
// form says where it ends. DESIGN.md has its bytes.
func AppendChange(dst []byte, c *Change) []byte {
	var flags byte
	if c.Replace {
		flags |= flagReplace
	}
	if c.Leave {
		flags |= flagLeave
	}
	dst = append(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, c.Bucket)
	dst = binary.LittleEndian.AppendUint64(dst, c.Clock)
	dst = binary.LittleEndian.AppendUint64(dst, c.Node)
	dst = appendText(dst, c.Collection)
	dst = appendText(dst, c.Key)
	dst = appendText(dst, c.Name)
	dst = binary.AppendUvarint(dst, uint64(len(c.Set)))
	for i := range c.Set {
		t := &c.Set[i]
		dst = appendText(appendText(appendText(dst, t.Namespace), t.Name), t.Value)
	}
	dst = binary.AppendUvarint(dst, uint64(len(c.Removed)))
	for i := range c.Removed {
		dst = appendText(appendText(dst, c.Removed[i].Namespace), c.Removed[i].Name)
	}
	return dst
}

func appendText(dst, s []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// ParseChange sets c to the change that src begins with and returns what follows it, or
// ErrMalformed. What is parsed is valid, and AppendChange makes the same bytes of it. Its texts
// share src's memory; the lists of c are used again.
func ParseChange(c *Change, src []byte) (rest []byte, err error) {
	if len(src) < fixed || src[0] > flagsKnown {
		return nil, ErrMalformed
	}
	*c = Change{
		Replace: src[0]&flagReplace != 0,
		Leave:   src[0]&flagLeave != 0,
		Bucket:  binary.LittleEndian.Uint64(src[1:]),
		Clock:   binary.LittleEndian.Uint64(src[9:]),
		Node:    binary.LittleEndian.Uint64(src[17:]),
		Set:     c.Set[:0],
		Removed: c.Removed[:0],
	}
	f := fields{rest: src[fixed:]}
	c.Collection = f.text(MaxCollection)
	c.Key = f.text(metric.MaxKey)
	c.Name = f.text(metric.MaxKey)
	for n := f.number(MaxTags); n > 0 && !f.bad; n-- {
		name := TagName{Namespace: f.text(MaxNamespace), Name: f.text(MaxTagName)}
		c.Set = append(c.Set, Tag{TagName: name, Value: f.text(MaxValue)})
	}
	for n := f.number(MaxTags); n > 0 && !f.bad; n-- {
		c.Removed = append(c.Removed, TagName{Namespace: f.text(MaxNamespace), Name: f.text(MaxTagName)})
	}
	if f.bad || c.Check() != nil {
		return nil, ErrMalformed
	}
	return f.rest, nil
}

// fields reads what AppendChange wrote, from the front.
type fields struct {
	rest []byte
	bad  bool
}

// number reads a number in its shortest form.
func (f *fields) number(most uint64) uint64 {
	v, n := binary.Uvarint(f.rest)
	if n <= 0 || v > most || n > 1 && f.rest[n-1] == 0 {
		f.bad, f.rest = true, nil
		return 0
	}
	f.rest = f.rest[n:]
	return v
}

func (f *fields) text(most uint64) []byte {
	n := f.number(most)
	if n > uint64(len(f.rest)) {
		f.bad, f.rest = true, nil
		return nil
	}
	if n == 0 {
		return nil
	}
	s := f.rest[:n:n]
	f.rest = f.rest[n:]
	return s
}

package tags

import (
	"encoding/binary"
	"slices"
)

// timestamp orders what changes say: by clock, then by node. The zero Stamp is below that of every
// change.
type timestamp struct {
	clock, node uint64
	some        bool // there is one: a change may have 0 and 0
}

func (s timestamp) compare(o timestamp) int {
	switch {
	case s == o:
		return 0
	case !s.some || o.some && (s.clock < o.clock || s.clock == o.clock && s.node < o.node):
		return -1
	}
	return 1
}

func (s *timestamp) raise(to timestamp) {
	if s.compare(to) < 0 {
		*s = to
	}
}

// row is a series in a collection, decoded. DESIGN.md says what its registers mean.
type row struct {
	bucket, collection uint32 // numbers
	key                []byte

	seen, left, cleared timestamp

	name  uint32 // number of the metric's name, if named
	named timestamp

	tags []register // ascending by name
}

// register is what is known of a tag of a row.
type register struct {
	name    uint32 // number
	pair    uint32 // number, unless it was removed
	removed bool
	fresh   bool // of the change that is being applied, not yet in the row
	timestamp
}

func (r *row) isVisible() bool { return r.seen.compare(r.left) > 0 }

func (r *row) find(name uint32) (at int, ok bool) {
	return slices.BinarySearchFunc(r.tags, name, func(g register, name uint32) int {
		return int(int64(g.name) - int64(name))
	})
}

// The flags of an encoded row.
const (
	rowSeen = 1 << iota
	rowLeft
	rowCleared
	rowNamed
	rowOneTimestamp // all have the same
)

// rowCodec reads and writes encoded rows. Their form lies in memory only:
//
//	uvarint bucket, collection; uvarint and key
//	flags; with rowOneTimestamp the timestamp, else uvarint and that many, ascending
//	for each of seen, left, cleared, named that there is: number of its timestamp; behind named the name
//	uvarint, and that many tags: uvarint name less that before; uvarint pair+1, 0 = removed; number of its timestamp
//
// A timestamp is 8 bytes and the number of its node. Numbers of timestamps are uvarints, left out
// with rowOneTimestamp.
type rowCodec struct {
	timestamps []timestamp // of the row being written
	buf        []byte
}

// keyOf returns bucket, collection and key of an encoded row, and what follows them.
func keyOf(b []byte) (bucket, collection uint32, key, rest []byte) {
	bucket, b = uvarint32(b)
	collection, b = uvarint32(b)
	n, b := uvarint32(b)
	return bucket, collection, b[:n:n], b[n:]
}

func uvarint32(b []byte) (uint32, []byte) {
	v := uint32(b[0])
	if v < 0x80 {
		return v, b[1:]
	}
	return moreUvarint32(v&0x7f, b)
}

// moreUvarint32 is the rest of uvarint32, which would not be inlined with it.
func moreUvarint32(v uint32, b []byte) (uint32, []byte) {
	for i := 1; ; i++ {
		c := uint32(b[i])
		if v |= c & 0x7f << (7 * i); c < 0x80 {
			return v, b[i+1:]
		}
	}
}

// decode sets r to the row that b begins with, and returns its length. The key shares the
// memory of b.
func (c *rowCodec) decode(r *row, b []byte, nodes []uint64) int {
	*r = row{tags: r.tags[:0]}
	var rest []byte
	r.bucket, r.collection, r.key, rest = keyOf(b)
	flags := rest[0]
	rest = rest[1:]
	n := uint32(1)
	if flags&rowOneTimestamp == 0 {
		n, rest = uvarint32(rest)
	}
	c.timestamps = c.timestamps[:0]
	for range n {
		clock := binary.LittleEndian.Uint64(rest)
		var node uint32
		node, rest = uvarint32(rest[8:])
		c.timestamps = append(c.timestamps, timestamp{clock, nodes[node], true})
	}
	at := func() timestamp {
		i := uint32(0)
		if flags&rowOneTimestamp == 0 {
			i, rest = uvarint32(rest)
		}
		return c.timestamps[i]
	}
	if flags&rowSeen != 0 {
		r.seen = at()
	}
	if flags&rowLeft != 0 {
		r.left = at()
	}
	if flags&rowCleared != 0 {
		r.cleared = at()
	}
	if flags&rowNamed != 0 {
		r.named = at()
		r.name, rest = uvarint32(rest)
	}
	n, rest = uvarint32(rest)
	name := uint32(0)
	for range n {
		var d, pair uint32
		d, rest = uvarint32(rest)
		pair, rest = uvarint32(rest)
		name += d
		r.tags = append(r.tags, register{name: name, pair: pair - 1, removed: pair == 0, timestamp: at()})
		if pair == 0 {
			r.tags[len(r.tags)-1].pair = 0
		}
	}
	return len(b) - len(rest)
}

// encode returns the bytes of a row, valid until the next call.
func (c *rowCodec) encode(r *row, nodeOf func(uint64) uint32) []byte {
	c.timestamps = c.timestamps[:0]
	regs := [...]struct {
		flag byte
		timestamp
	}{{rowSeen, r.seen}, {rowLeft, r.left}, {rowCleared, r.cleared}, {rowNamed, r.named}}
	var flags byte
	for _, g := range regs {
		if g.some {
			flags |= g.flag
			c.note(g.timestamp)
		}
	}
	for i := range r.tags {
		c.note(r.tags[i].timestamp)
	}
	b := binary.AppendUvarint(c.buf[:0], uint64(r.bucket))
	b = binary.AppendUvarint(b, uint64(r.collection))
	b = append(binary.AppendUvarint(b, uint64(len(r.key))), r.key...)
	one := len(c.timestamps) == 1
	if one {
		b = append(b, flags|rowOneTimestamp)
	} else {
		slices.SortFunc(c.timestamps, timestamp.compare)
		b = binary.AppendUvarint(append(b, flags), uint64(len(c.timestamps)))
	}
	for _, s := range c.timestamps {
		b = binary.LittleEndian.AppendUint64(b, s.clock)
		b = binary.AppendUvarint(b, uint64(nodeOf(s.node)))
	}
	number := func(b []byte, s timestamp) []byte {
		if one {
			return b
		}
		i, _ := slices.BinarySearchFunc(c.timestamps, s, timestamp.compare)
		return binary.AppendUvarint(b, uint64(i))
	}
	for _, g := range regs {
		if g.some {
			b = number(b, g.timestamp)
		}
	}
	if r.named.some {
		b = binary.AppendUvarint(b, uint64(r.name))
	}
	b = binary.AppendUvarint(b, uint64(len(r.tags)))
	last := uint32(0)
	for i := range r.tags {
		g := &r.tags[i]
		b = binary.AppendUvarint(b, uint64(g.name-last))
		last = g.name
		if g.removed {
			b = append(b, 0)
		} else {
			b = binary.AppendUvarint(b, uint64(g.pair)+1)
		}
		b = number(b, g.timestamp)
	}
	c.buf = b
	return b
}

// note lists a timestamp once. A row has few different ones.
func (c *rowCodec) note(s timestamp) {
	if !slices.Contains(c.timestamps, s) {
		c.timestamps = append(c.timestamps, s)
	}
}

// rowTags goes through the tags of an encoded row without its timestamps, from where keyOf ends.
type rowTags struct {
	rest        []byte
	left        uint32
	name        uint32
	timestamped bool
}

// openTags returns the tags of a row, and the number of its name if it is named.
func openTags(rest []byte) (t rowTags, name uint32, named bool) {
	flags := rest[0]
	rest = rest[1:]
	n := uint32(1)
	t.timestamped = flags&rowOneTimestamp == 0
	if t.timestamped {
		n, rest = uvarint32(rest)
	}
	for range n {
		_, rest = uvarint32(rest[8:])
	}
	if t.timestamped {
		for f := byte(rowSeen); f <= rowNamed; f <<= 1 {
			if flags&f != 0 {
				_, rest = uvarint32(rest)
			}
		}
	}
	if named = flags&rowNamed != 0; named {
		name, rest = uvarint32(rest)
	}
	t.left, t.rest = uvarint32(rest)
	return t, name, named
}

// next returns the next tag that the row has.
func (t *rowTags) next() (name, pair uint32, ok bool) {
	for t.left > 0 {
		t.left--
		var d uint32
		d, t.rest = uvarint32(t.rest)
		pair, t.rest = uvarint32(t.rest)
		if t.name += d; t.timestamped {
			_, t.rest = uvarint32(t.rest)
		}
		if pair > 0 {
			return t.name, pair - 1, true
		}
	}
	return 0, 0, false
}

// pair finds the tag of a name.
func (t rowTags) pair(name uint32) (pair uint32, ok bool) {
	for {
		n, p, ok := t.next()
		if !ok || n >= name {
			return p, ok && n == name
		}
	}
}

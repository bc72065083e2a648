package segment

import (
	"encoding/binary"

	"dalmatiner/internal/metric"
)

// The flags of a stored identity.
const (
	nameHash        = 1 << iota // its hash is not that of its bucket and key
	nameTimestamp               // its hash is that of a bucket with timestamps
	nameBucket                  // another bucket than that of the identity before
	nameColumn                  // not the column that is expected
	nameSince                   // not the Since that is expected
	nameDeleted                 // DeleteSequence is not 0
	nameIncarnation             // Incarnation is not 0
	nameFlags
)

// nameKinds are the columns of a stored block of identities, in order.
const (
	namePlain  = iota // hashes
	nameFlag          // flags, one byte each
	nameNumber        // what the flags ask for, of one identity after the other
	nameShared        // bytes that the key has in common with the one before, uvarint
	nameLength        // length of the rest, uvarint
	nameText          // the rest
	nameColumns
)

// definition is what the log takes, as a rule, for the record that defines a series, beside
// its key: series that come together are defined one behind the other.
const definition = 20

// nameBefore is an identity, as the next one is expected to follow it.
type nameBefore struct {
	Series      // its Key keeps the memory
	flags  byte // nameTimestamp or 0: one that either form of a hash fits has that of the one before
}

// column is the expected one: a series with timestamps has two.
func (b *nameBefore) column() uint16 {
	if b.flags != 0 {
		return b.Column + 2
	}
	return b.Column + 1
}

func (b *nameBefore) since() uint64 {
	if b.Since == 0 {
		return 0
	}
	return b.Since + definition + uint64(len(b.Key))
}

// note takes s as the one before. Its key is copied.
func (b *nameBefore) note(s *Series, flags byte) {
	key := append(b.Key[:0], s.Key...)
	b.Series, b.flags = *s, flags&nameTimestamp
	b.Key = key
}

// NamePacker stores identities as columns, each as far as it differs from what is expected
// behind the one before. It is how segments store theirs, and the catalogue.
type NamePacker struct {
	columns [nameColumns][]byte
	before  nameBefore
}

// Begin forgets what was added. The first identity is expected in the bucket and group that are
// given, in column 0.
func (p *NamePacker) Begin(bucket uint64, group uint32) {
	for i := range p.columns {
		p.columns[i] = p.columns[i][:0]
	}
	p.before.begin(bucket, group)
}

func (b *nameBefore) begin(bucket uint64, group uint32) {
	*b = nameBefore{Series: Series{Bucket: bucket, Group: group, Column: 1<<16 - 1, Key: b.Key[:0]}}
}

// Add adds an identity, of which it keeps nothing.
func (p *NamePacker) Add(s *Series) {
	c, b, flags := &p.columns, &p.before, byte(0)
	id := metric.Series(s.Bucket, s.Key)
	plain, timestamped := metric.SeriesID(s.Hash) == id, metric.SeriesID(s.Hash) == id.Value()
	switch {
	case plain && timestamped && s.Bucket == b.Bucket:
		flags = b.flags
	case plain:
	case timestamped:
		flags = nameTimestamp
	default:
		flags = nameHash
		c[namePlain] = append(c[namePlain], s.Hash[:]...)
	}
	number := func(flag byte, v uint64) {
		flags |= flag
		c[nameNumber] = binary.AppendUvarint(c[nameNumber], v)
	}
	if s.Bucket != b.Bucket {
		number(nameBucket, s.Bucket)
	}
	if s.Group != b.Group || s.Column != b.column() {
		number(nameColumn, uint64(s.Group))
		c[nameNumber] = binary.AppendUvarint(c[nameNumber], uint64(s.Column))
	}
	if want := b.since(); s.Since != want {
		flags |= nameSince
		c[nameNumber] = binary.AppendVarint(c[nameNumber], int64(s.Since-want))
	}
	if s.DeleteSequence != 0 {
		number(nameDeleted, s.DeleteSequence)
	}
	if s.Incarnation != 0 {
		number(nameIncarnation, s.Incarnation)
	}
	c[nameFlag] = append(c[nameFlag], flags)
	shared := 0
	for shared < min(len(s.Key), len(b.Key)) && s.Key[shared] == b.Key[shared] {
		shared++
	}
	c[nameShared] = binary.AppendUvarint(c[nameShared], uint64(shared))
	c[nameLength] = binary.AppendUvarint(c[nameLength], uint64(len(s.Key)-shared))
	c[nameText] = append(c[nameText], s.Key[shared:]...)
	b.note(s, flags)
}

// Append appends what was added, at least one identity, and returns how many of the bytes in
// front of it do not compress.
func (p *NamePacker) Append(dst []byte) (packed []byte, plain int) {
	start := len(dst)
	dst = binary.AppendUvarint(dst, uint64(len(p.columns[namePlain])/len(Hash{})))
	dst = append(dst, p.columns[namePlain]...)
	plain = len(dst) - start
	for _, c := range p.columns[nameFlag:nameText] {
		dst = binary.AppendUvarint(dst, uint64(len(c)))
		dst = append(dst, c...)
	}
	return append(dst, p.columns[nameText]...), plain
}

// pack appends the records in src, which appendSeries wrote, as they are stored.
func (p *NamePacker) pack(dst, src []byte) (packed []byte, plain int) {
	p.Begin(0, 0)
	for len(src) > 0 {
		s, rest, err := parseSeries(src)
		if err != nil {
			panic("segment: an identity that was added is none")
		}
		p.Add(&s)
		src = rest
	}
	return p.Append(dst)
}

// UnpackNames calls fn for the identities that a NamePacker stored as src, until it returns an
// error, which is returned. Begin was given the same bucket and group. The identity is valid
// during the call, and not to be changed. A key may take all of MaxName in memory, whatever the length of src.
func UnpackNames(src []byte, bucket uint64, group uint32, fn func(*Series) error) error {
	u := unpacker{src: src}
	hashes := u.uvarint(uint64(len(src))) * uint64(len(Hash{}))
	if u.bad || uint64(len(u.src)) < hashes {
		return errPacked
	}
	var c [nameColumns]unpacker
	c[namePlain].src, u.src = u.src[:hashes], u.src[hashes:]
	for i := nameFlag; i < nameText; i++ {
		n := u.uvarint(uint64(len(u.src)))
		c[i].src, u.src = u.src[:min(n, uint64(len(u.src)))], u.src[min(n, uint64(len(u.src))):]
	}
	c[nameText].src = u.src
	if u.bad || len(c[nameFlag].src) == 0 {
		return errPacked
	}
	var b nameBefore
	b.begin(bucket, group)
	for len(c[nameFlag].src) > 0 {
		if !b.unpack(&c) {
			return errPacked
		}
		if err := fn(&b.Series); err != nil {
			return err
		}
	}
	for i := range c {
		if c[i].bad || len(c[i].src) > 0 {
			return errPacked
		}
	}
	return nil
}

// unpackNames appends to dst the records that pack stored as src: at most limit bytes.
func unpackNames(dst, src []byte, limit int) ([]byte, error) {
	limit += len(dst)
	err := UnpackNames(src, 0, 0, func(s *Series) error {
		if dst = appendSeries(dst, s); len(dst) > limit {
			return errPacked
		}
		return nil
	})
	return dst, err
}

// unpack makes b the identity behind it.
func (b *nameBefore) unpack(c *[nameColumns]unpacker) bool {
	flags := c[nameFlag].src[0]
	c[nameFlag].src = c[nameFlag].src[1:]
	number := func(flag byte, limit uint64) uint64 {
		if flags&flag == 0 {
			return 0
		}
		return c[nameNumber].uvarint(limit)
	}
	if flags&nameBucket != 0 {
		b.Bucket = number(nameBucket, 1<<64-1)
	}
	if flags&nameColumn != 0 {
		b.Group = uint32(number(nameColumn, 1<<32-1))
		b.Column = uint16(number(nameColumn, withIncarnation-1))
	} else {
		b.Column = b.column()
	}
	b.Since = b.since()
	if flags&nameSince != 0 {
		v, n := binary.Varint(c[nameNumber].src)
		if n <= 0 {
			return false
		}
		c[nameNumber].src = c[nameNumber].src[n:]
		b.Since += uint64(v)
	}
	b.DeleteSequence = number(nameDeleted, 1<<64-1)
	b.Incarnation = number(nameIncarnation, 1<<64-1)
	shared, rest := c[nameShared].uvarint(uint64(len(b.Key))), c[nameLength].uvarint(uint64(len(c[nameText].src)))
	if c[nameNumber].bad || c[nameShared].bad || c[nameLength].bad || shared+rest > MaxName || b.Column >= withIncarnation {
		return false
	}
	b.Key = append(b.Key[:shared], c[nameText].src[:rest]...)
	c[nameText].src = c[nameText].src[rest:]
	b.flags = flags & nameTimestamp
	switch {
	case flags >= nameFlags || flags&nameHash != 0 && flags&nameTimestamp != 0:
		return false
	case flags&nameHash == 0 && flags&nameTimestamp == 0:
		b.Hash = Hash(metric.Series(b.Bucket, b.Key))
	case flags&nameTimestamp != 0:
		b.Hash = Hash(metric.Timestamped(b.Bucket, b.Key))
	case len(c[namePlain].src) < len(Hash{}):
		return false
	default:
		b.Hash = Hash(c[namePlain].src)
		c[namePlain].src = c[namePlain].src[len(Hash{}):]
	}
	return true
}

// names reads block i, of identities, and returns their records as appendSeries wrote them,
// which are valid until s is used again.
func (d *directory) names(s *scratch, i int) ([]byte, error) {
	packed, err := d.readBlock(s, i, kindSeries)
	if err != nil {
		return nil, err
	}
	records, err := unpackNames(s.block[:0], packed, maxBlock)
	if err != nil {
		return nil, d.malformed(i, kindSeries, err.Error())
	}
	s.block = records
	return records, nil
}

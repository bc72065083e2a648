// Package identity has the identities of series, and stores many of them as few bytes. Segments
// and the catalogue hold what it stores: other bytes are another format of both.
package identity

import (
	"encoding/binary"
	"encoding/hex"
	"errors"

	"dalmatiner/internal/codec/fields"
	"dalmatiner/internal/model/metric"
)

const (
	// MaxName is the longest name of a series in bytes. The wire carries a name behind a
	// 16-bit length.
	MaxName = 1 << 16

	// MaxColumn is the highest column that can be stored.
	MaxColumn = 1<<13 - 1
)

// ErrPacked is the error of bytes that are no stored identities.
var ErrPacked = errors.New("stored identities are cut short, too long, or none")

// Hash identifies a series: XXH3-128 of (bucket id, key) as big-endian bytes, see
// metric.SeriesID. Its first bits are the partition of the series, so the series of a
// partition and a bucket lie together in a segment.
type Hash [16]byte

// String returns the hash as 32 hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Series is the identity of one series: it turns a hash back into a name, and says which
// column of which column group (package head) the series has. Several identities may name
// one column, or give one series several columns. Of these the one with the highest Since
// counts.
type Series struct {
	Bucket uint64 // id
	Hash   Hash
	Group  uint32 // column group
	Column uint16 // of the group
	Since  uint64 // LSN of the record that defines it, 0 if that is not known
	Key    []byte // at most MaxName bytes; none if DeleteSequence is set

	// DeleteSequence is not 0 for a series that was deleted: its points in segments that
	// are not clean of it are hidden (manifest.Tombstones). Group and Column are those
	// that it had, and Since is the LSN of the deletion.
	DeleteSequence uint64

	// Incarnation is the clock of the last deletion of the series. If DeleteSequence is
	// set, that is the deletion itself. It is 0 if no deletion is remembered.
	Incarnation uint64
}

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

// The kinds are the columns of a stored block of identities, in order.
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

// previous is an identity, as the next one is expected to follow it.
type previous struct {
	Series      // its Key keeps the memory
	flags  byte // nameTimestamp or 0: one that either form of a hash fits has that of the one before
}

// column is the expected one: a series with timestamps has two.
func (b *previous) column() uint16 {
	if b.flags != 0 {
		return b.Column + 2
	}
	return b.Column + 1
}

func (b *previous) nextSince() uint64 {
	if b.Since == 0 {
		return 0
	}
	return b.Since + definition + uint64(len(b.Key))
}

// note takes s as the one before. Its key is copied.
func (b *previous) note(s *Series, flags byte) {
	key := append(b.Key[:0], s.Key...)
	b.Series, b.flags = *s, flags&nameTimestamp
	b.Key = key
}

// Packer stores identities as columns, each as far as it differs from what is expected
// behind the one before. It is not for concurrent use.
type Packer struct {
	columns [nameColumns][]byte
	before  previous
}

// Begin forgets what was added. The first identity is expected in the bucket, group and column
// that are given.
func (p *Packer) Begin(bucket uint64, group uint32, column uint16) {
	for i := range p.columns {
		p.columns[i] = p.columns[i][:0]
	}
	p.before.begin(bucket, group, column)
}

func (b *previous) begin(bucket uint64, group uint32, column uint16) {
	*b = previous{Series: Series{Bucket: bucket, Group: group, Column: column - 1, Key: b.Key[:0]}}
}

// Add adds an identity, of which it keeps nothing.
func (p *Packer) Add(s *Series) {
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
	if want := b.nextSince(); s.Since != want {
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
func (p *Packer) Append(dst []byte) (packed []byte, plain int) {
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

// Unpack calls fn for the identities that a Packer stored as src, until it returns an
// error, which is returned. Begin was given the same bucket, group and column. The identity is
// valid during the call, and not to be changed. A key may take all of MaxName in memory,
// whatever the length of src.
func Unpack(src []byte, bucket uint64, group uint32, column uint16, fn func(*Series) error) error {
	u := fields.Reader{Src: src}
	hashes := u.UpTo(uint64(len(src))) * uint64(len(Hash{}))
	if u.Bad || uint64(len(u.Src)) < hashes {
		return ErrPacked
	}
	var c [nameColumns]fields.Reader
	c[namePlain].Src, u.Src = u.Src[:hashes], u.Src[hashes:]
	for i := nameFlag; i < nameText; i++ {
		n := u.UpTo(uint64(len(u.Src)))
		c[i].Src, u.Src = u.Src[:min(n, uint64(len(u.Src)))], u.Src[min(n, uint64(len(u.Src))):]
	}
	c[nameText].Src = u.Src
	if u.Bad || len(c[nameFlag].Src) == 0 {
		return ErrPacked
	}
	var b previous
	b.begin(bucket, group, column)
	for len(c[nameFlag].Src) > 0 {
		if !b.unpack(&c) {
			return ErrPacked
		}
		if err := fn(&b.Series); err != nil {
			return err
		}
	}
	for i := range c {
		if c[i].Bad || len(c[i].Src) > 0 {
			return ErrPacked
		}
	}
	return nil
}

// unpack makes b the identity behind it.
func (b *previous) unpack(c *[nameColumns]fields.Reader) bool {
	flags := c[nameFlag].Src[0]
	c[nameFlag].Src = c[nameFlag].Src[1:]
	number := func(flag byte, limit uint64) uint64 {
		if flags&flag == 0 {
			return 0
		}
		return c[nameNumber].UpTo(limit)
	}
	if flags&nameBucket != 0 {
		b.Bucket = number(nameBucket, 1<<64-1)
	}
	if flags&nameColumn != 0 {
		b.Group = uint32(number(nameColumn, 1<<32-1))
		b.Column = uint16(number(nameColumn, MaxColumn))
	} else {
		b.Column = b.column()
	}
	b.Since = b.nextSince()
	if flags&nameSince != 0 {
		b.Since += uint64(c[nameNumber].Varint())
	}
	b.DeleteSequence = number(nameDeleted, 1<<64-1)
	b.Incarnation = number(nameIncarnation, 1<<64-1)
	shared, rest := c[nameShared].UpTo(uint64(len(b.Key))),
		c[nameLength].UpTo(uint64(len(c[nameText].Src)))
	if c[nameNumber].Bad || c[nameShared].Bad || c[nameLength].Bad || shared+rest > MaxName ||
		b.Column > MaxColumn {
		return false
	}
	b.Key = append(b.Key[:shared], c[nameText].Src[:rest]...)
	c[nameText].Src = c[nameText].Src[rest:]
	b.flags = flags & nameTimestamp
	switch {
	case flags >= nameFlags || flags&nameHash != 0 && flags&nameTimestamp != 0:
		return false
	case flags&nameHash == 0 && flags&nameTimestamp == 0:
		b.Hash = Hash(metric.Series(b.Bucket, b.Key))
	case flags&nameTimestamp != 0:
		b.Hash = Hash(metric.TimestampedID(b.Bucket, b.Key))
	case len(c[namePlain].Src) < len(Hash{}):
		return false
	default:
		b.Hash = Hash(c[namePlain].Src)
		c[namePlain].Src = c[namePlain].Src[len(Hash{}):]
	}
	return true
}

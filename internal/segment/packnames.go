package segment

import (
	"encoding/binary"

	"dalmatiner/internal/metric"
)

// The flags of a stored identity.
const (
	nameHash      = 1 << iota // its hash is not that of its bucket and key
	nameTimestamp             // its hash is that of a bucket with timestamps
	nameBucket                // another bucket than that of the identity before
	nameColumn                // not the column behind that of the identity before
	nameSince                 // Since is not 0
	nameDeleted               // DeleteSequence is not 0
	nameIncarnation
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

// namePacker stores identities as columns, and is what an identity differs from.
type namePacker struct {
	columns [nameColumns][]byte
	last    Series
	key     []byte
	content []byte
}

// pack returns the records in src, which appendSeries wrote, as they are stored, and how many
// of the bytes in front do not compress. It is valid until the next call.
func (p *namePacker) pack(src []byte) (content []byte, plain int) {
	for i := range p.columns {
		p.columns[i] = p.columns[i][:0]
	}
	p.last, p.key = Series{}, p.key[:0]
	count := uint64(0)
	for ; len(src) > 0; count++ {
		s, rest, err := parseSeries(src)
		if err != nil {
			panic("segment: an identity that was added is none")
		}
		p.add(&s)
		src = rest
	}
	p.content = binary.AppendUvarint(p.content[:0], count)
	p.content = binary.AppendUvarint(p.content, uint64(len(p.columns[namePlain])/len(Hash{})))
	p.content = append(p.content, p.columns[namePlain]...)
	plain = len(p.content)
	for _, c := range p.columns[nameFlag:nameText] {
		p.content = binary.AppendUvarint(p.content, uint64(len(c)))
		p.content = append(p.content, c...)
	}
	return append(p.content, p.columns[nameText]...), plain
}

func (p *namePacker) add(s *Series) {
	c, flags := &p.columns, byte(0)
	switch metric.SeriesID(s.Hash) {
	case metric.Series(s.Bucket, s.Key):
	case metric.Timestamped(s.Bucket, s.Key):
		flags = nameTimestamp
	default:
		flags = nameHash
		c[namePlain] = append(c[namePlain], s.Hash[:]...)
	}
	number := func(flag byte, v uint64) {
		flags |= flag
		c[nameNumber] = binary.AppendUvarint(c[nameNumber], v)
	}
	if s.Bucket != p.last.Bucket {
		number(nameBucket, s.Bucket)
	}
	if s.Group != p.last.Group || s.Column != p.last.Column+1 {
		number(nameColumn, uint64(s.Group))
		c[nameNumber] = binary.AppendUvarint(c[nameNumber], uint64(s.Column))
	}
	if s.Since != 0 {
		flags |= nameSince
		c[nameNumber] = binary.AppendVarint(c[nameNumber], int64(s.Since-p.last.Since))
	}
	if s.DeleteSequence != 0 {
		number(nameDeleted, s.DeleteSequence)
	}
	if s.Incarnation != 0 {
		number(nameIncarnation, s.Incarnation)
	}
	c[nameFlag] = append(c[nameFlag], flags)
	shared := 0
	for shared < min(len(s.Key), len(p.key)) && s.Key[shared] == p.key[shared] {
		shared++
	}
	c[nameShared] = binary.AppendUvarint(c[nameShared], uint64(shared))
	c[nameLength] = binary.AppendUvarint(c[nameLength], uint64(len(s.Key)-shared))
	c[nameText] = append(c[nameText], s.Key[shared:]...)
	p.key = append(p.key[:0], s.Key...)
	p.last = *s
	p.last.Key = nil
}

// unpackNames appends to dst the records that pack stored as src: at most limit bytes.
func unpackNames(dst, src []byte, limit int) ([]byte, error) {
	u := unpacker{src: src}
	count, hashes := u.uvarint(uint64(limit)), u.uvarint(uint64(limit/len(Hash{})))
	if u.bad || count == 0 || uint64(len(u.src)) < hashes*uint64(len(Hash{})) {
		return nil, errPacked
	}
	var c [nameColumns]unpacker
	c[namePlain].src, u.src = u.src[:hashes*uint64(len(Hash{}))], u.src[hashes*uint64(len(Hash{})):]
	for i := nameFlag; i < nameText; i++ {
		n := u.uvarint(uint64(len(u.src)))
		c[i].src, u.src = u.src[:min(n, uint64(len(u.src)))], u.src[min(n, uint64(len(u.src))):]
	}
	c[nameText].src = u.src
	if u.bad || uint64(len(c[nameFlag].src)) != count {
		return nil, errPacked
	}
	start := len(dst)
	var s Series
	for range count {
		if !s.unpack(&c) || len(dst)-start > limit {
			return nil, errPacked
		}
		dst = appendSeries(dst, &s)
	}
	for i := range c {
		if c[i].bad || len(c[i].src) > 0 && i != nameFlag {
			return nil, errPacked
		}
	}
	if len(dst)-start > limit {
		return nil, errPacked
	}
	return dst, nil
}

// unpack reads the identity behind s, whose key is overwritten.
func (s *Series) unpack(c *[nameColumns]unpacker) bool {
	flags := c[nameFlag].src[0]
	c[nameFlag].src = c[nameFlag].src[1:]
	number := func(flag byte, limit uint64) uint64 {
		if flags&flag == 0 {
			return 0
		}
		return c[nameNumber].uvarint(limit)
	}
	if flags&nameBucket != 0 {
		s.Bucket = number(nameBucket, 1<<64-1)
	}
	s.Column++
	if flags&nameColumn != 0 {
		s.Group = uint32(number(nameColumn, 1<<32-1))
		s.Column = uint16(number(nameColumn, withIncarnation-1))
	}
	if flags&nameSince != 0 {
		v, n := binary.Varint(c[nameNumber].src)
		if n <= 0 {
			return false
		}
		c[nameNumber].src = c[nameNumber].src[n:]
		s.Since += uint64(v)
	} else {
		s.Since = 0
	}
	s.DeleteSequence = number(nameDeleted, 1<<64-1)
	s.Incarnation = number(nameIncarnation, 1<<64-1)
	shared, rest := c[nameShared].uvarint(uint64(len(s.Key))), c[nameLength].uvarint(uint64(len(c[nameText].src)))
	if c[nameNumber].bad || c[nameShared].bad || c[nameLength].bad || shared+rest > MaxName || s.Column >= withIncarnation {
		return false
	}
	s.Key = append(s.Key[:shared], c[nameText].src[:rest]...)
	c[nameText].src = c[nameText].src[rest:]
	switch {
	case flags >= nameFlags || flags&nameHash != 0 && flags&nameTimestamp != 0:
		return false
	case flags&nameHash == 0 && flags&nameTimestamp == 0:
		s.Hash = Hash(metric.Series(s.Bucket, s.Key))
	case flags&nameTimestamp != 0:
		s.Hash = Hash(metric.Timestamped(s.Bucket, s.Key))
	case len(c[namePlain].src) < len(Hash{}):
		return false
	default:
		s.Hash = Hash(c[namePlain].src)
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

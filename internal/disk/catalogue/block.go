package catalogue

import (
	"cmp"
	"errors"
	"slices"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/identity"
)

const (
	// blockColumns is how many columns lie in one block: names next to each other
	// resemble each other, and a change writes the block again.
	blockColumns = 64

	// longKey is the longest name in a block, which so has at most 64 KiB of them.
	longKey = 1 << 10
)

// block is the identities of columns next to each other: one of each at most.
type block struct {
	bucket uint64
	group  uint32
	first  uint16           // column
	list   []segment.Series // by column
	text   []byte           // the names of those that were read
}

func blockOf(s *segment.Series) block {
	return block{bucket: s.Bucket, group: s.Group, first: s.Column / blockColumns * blockColumns}
}

// compareBlocks orders series by their blocks.
func compareBlocks(a, b *segment.Series) int {
	return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Column/blockColumns, b.Column/blockColumns))
}

func (b *block) appendKey(dst []byte) []byte {
	return appendPlace(dst, kindBlock, b.bucket, b.group, b.first)
}

// appendValue appends the value: the identities as segments store them.
func (b *block) appendValue(dst []byte, p *identity.Packer) []byte {
	p.Begin(b.bucket, b.group, b.first)
	for i := range b.list {
		p.Add(&b.list[i])
	}
	dst, _ = p.Append(dst)
	return dst
}

// eachOf calls fn for the identities of a block, in the order of their columns. The key of
// an identity is valid during the call. An error of fn ends it and is returned.
func eachOf(key, value []byte, fn func(*segment.Series) error) error {
	if len(key) != blockKeySize || key[0] != kindBlock {
		return errRecord
	}
	at := parsePlace(key)
	next, failed := int(at.Column), error(nil)
	err := identity.Unpack(value, at.Bucket, at.Group, at.Column, func(s *segment.Series) error {
		if s.Bucket != at.Bucket || s.Group != at.Group || int(s.Column) < next ||
			s.Column-at.Column >= blockColumns || s.DeleteSequence != 0 {
			return errRecord
		}
		next = int(s.Column) + 1
		failed = fn(s)
		return failed
	})
	if err != nil && failed == nil {
		return errors.Join(errRecord, err)
	}
	return failed
}

// read adds the identities of the block as it is stored.
func (b *block) read(key, value []byte) error {
	return eachOf(key, value, func(s *segment.Series) error {
		start := len(b.text)
		b.text = append(b.text, s.Key...)
		b.list = append(b.list, *s)
		b.list[len(b.list)-1].Key = b.text[start:]
		return nil
	})
}

// find returns where in the list a column is, or would be.
func (b *block) find(column uint16) (i int, found bool) {
	return slices.BinarySearchFunc(b.list, column, func(s segment.Series, c uint16) int {
		return cmp.Compare(s.Column, c)
	})
}

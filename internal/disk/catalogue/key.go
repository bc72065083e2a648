package catalogue

import (
	"encoding/binary"
	"errors"
	"fmt"

	"dalmatiner/internal/codec/fields"
	"dalmatiner/internal/disk/segment"
)

// The first byte of a key tells the kind of record.
const (
	kindMeta   = 'm'
	kindBlock  = 'c' // identities of columns next to each other, one of each
	kindSeries = 'i' // an identity that is in no block
)

// Sizes of keys: kind, bucket, group, column, all big-endian, so that byte order is their
// order; a block has its first column. The hash is part of the key of an identity because a
// column may pass to another series, and the identity of the first must stay.
const (
	blockKeySize = 1 + 8 + 4 + 2
	keySize      = blockKeySize + 16
)

// recordVersion is the version of keys and values. A catalogue of another one is
// rebuilt like a damaged one.
const recordVersion = 3

var errRecord = errors.New("malformed record")

func appendPlace(dst []byte, kind byte, bucket uint64, group uint32, column uint16) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, kind), bucket)
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(dst, group), column)
}

func parsePlace(src []byte) (s segment.Series) {
	s.Bucket = binary.BigEndian.Uint64(src[1:])
	s.Group = binary.BigEndian.Uint32(src[9:])
	s.Column = binary.BigEndian.Uint16(src[13:])
	return s
}

func appendKey(dst []byte, s *segment.Series) []byte {
	return append(appendPlace(dst, kindSeries, s.Bucket, s.Group, s.Column), s.Hash[:]...)
}

func parseKey(src []byte) (s segment.Series, err error) {
	if len(src) != keySize || src[0] != kindSeries {
		return s, errRecord
	}
	s = parsePlace(src)
	copy(s.Hash[:], src[blockKeySize:])
	return s, nil
}

// appendValue appends the value of an identity: since when the series has its
// column, its incarnation, and its name.
func appendValue(dst []byte, s *segment.Series) []byte {
	dst = binary.BigEndian.AppendUint64(dst, s.Since)
	return append(binary.AppendUvarint(dst, s.Incarnation), s.Key...)
}

// parseValue sets what appendValue wrote; the key is a part of src.
func parseValue(src []byte, s *segment.Series) error {
	r := fields.Reader{Src: src}
	since := r.Take(8)
	incarnation := r.Uvarint()
	if r.Bad {
		return errRecord
	}
	s.Since, s.Incarnation, s.Key = binary.BigEndian.Uint64(since), incarnation, r.Rest()
	return nil
}

// kindRange bounds the keys of a kind.
func kindRange(kind byte) (from, to []byte) { return []byte{kind}, []byte{kind + 1} }

// bucketRange bounds the keys of a kind in one bucket.
func bucketRange(kind byte, id uint64) (from, to []byte) {
	from = binary.BigEndian.AppendUint64([]byte{kind}, id)
	if id+1 == 0 {
		return from, []byte{kind + 1}
	}
	return from, binary.BigEndian.AppendUint64([]byte{kind}, id+1)
}

func generationKey() []byte { return []byte{kindMeta, 'g'} }

// appendGeneration appends the generation and the version of the records, which
// so is there as soon as a flush is.
func appendGeneration(dst []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, n), recordVersion)
}

func parseGeneration(src []byte) (uint64, error) {
	if len(src) != 8+4 {
		return 0, fmt.Errorf("%w: a generation of %d bytes, want %d", errRecord, len(src), 8+4)
	}
	if v := binary.BigEndian.Uint32(src[8:]); v != recordVersion {
		return 0, fmt.Errorf("%w: version %d, this program reads version %d", errRecord, v, recordVersion)
	}
	return binary.BigEndian.Uint64(src), nil
}

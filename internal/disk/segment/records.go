package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"dalmatiner/internal/model/buckets"
)

var (
	errRecord = errors.New("record is cut short or too long")
	errFlags  = errors.New("record has unknown flags")
)

// withSince marks the column of an identity that comes with a since LSN. withDeleteSequence marks
// the column of a deleted series, and withIncarnation one of a series whose incarnation is not 0.
// Columns have 8 bits.
const (
	withSince          = 1 << 15
	withDeleteSequence = 1 << 14
	withIncarnation    = 1 << 13
)

// appendSeries appends the record of one identity.
func appendSeries(dst []byte, s *Series) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, s.Bucket)
	dst = append(dst, s.Hash[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, s.Group)
	column := s.Column
	if s.Since != 0 {
		column |= withSince
	}
	if s.DeleteSequence != 0 {
		column |= withDeleteSequence
	}
	if s.Incarnation != 0 {
		column |= withIncarnation
	}
	dst = binary.LittleEndian.AppendUint16(dst, column)
	for _, n := range [...]uint64{s.Since, s.DeleteSequence, s.Incarnation} {
		if n != 0 {
			dst = binary.AppendUvarint(dst, n)
		}
	}
	return appendBytes(dst, s.Key)
}

// SeriesSize returns the bytes that an identity takes in a segment, for Writer.Reserve.
func SeriesSize(s *Series) int64 {
	n := 8 + len(s.Hash) + 4 + 2 + sizeUvarint(uint64(len(s.Key))) + len(s.Key)
	for _, v := range [...]uint64{s.Since, s.DeleteSequence, s.Incarnation} {
		if v != 0 {
			n += sizeUvarint(v)
		}
	}
	return int64(n)
}

func sizeUvarint(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// parseSeries reads one identity; its key is a part of src.
func parseSeries(src []byte) (s Series, rest []byte, err error) {
	const fixed = 8 + 16 + 4 + 2
	if len(src) < fixed {
		return s, nil, errRecord
	}
	s.Bucket = binary.LittleEndian.Uint64(src)
	copy(s.Hash[:], src[8:])
	s.Group = binary.LittleEndian.Uint32(src[24:])
	s.Column = binary.LittleEndian.Uint16(src[28:])
	src = src[fixed:]
	for _, f := range [...]struct {
		mark uint16
		to   *uint64
	}{{withSince, &s.Since}, {withDeleteSequence, &s.DeleteSequence},
		{withIncarnation, &s.Incarnation}} {
		if s.Column&f.mark == 0 {
			continue
		}
		v, n := binary.Uvarint(src)
		if n <= 0 {
			return s, nil, errRecord
		}
		*f.to, s.Column, src = v, s.Column&^f.mark, src[n:]
	}
	s.Key, rest, err = parseBytes(src)
	return s, rest, err
}

// appendBucket appends the record of one bucket.
func appendBucket(dst []byte, b *buckets.Info) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, b.ID)
	for _, v := range []int64{b.Resolution, b.PPF, b.TTL, b.Grace} {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	}
	hpts := byte(0)
	if b.HPTS {
		hpts = 1
	}
	return appendBytes(append(dst, hpts), b.Name)
}

// parseBucket reads one bucket.
func parseBucket(src []byte) (b buckets.Info, rest []byte, err error) {
	const fixed = 8 + 4*8 + 1
	if len(src) < fixed {
		return b, nil, errRecord
	}
	b.ID = binary.LittleEndian.Uint64(src)
	for i, v := range []*int64{&b.Resolution, &b.PPF, &b.TTL, &b.Grace} {
		*v = int64(binary.LittleEndian.Uint64(src[8+8*i:]))
	}
	flags := src[fixed-1]
	if flags > 1 {
		return b, nil, errFlags
	}
	b.HPTS = flags == 1
	name, rest, err := parseBytes(src[fixed:])
	b.Name = string(name)
	return b, rest, err
}

func appendBytes[T string | []byte](dst []byte, b T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func parseBytes(src []byte) (b, rest []byte, err error) {
	n, used := binary.Uvarint(src)
	if used <= 0 || n > MaxName || n > uint64(len(src)-used) {
		return nil, nil, errRecord
	}
	end := used + int(n)
	return src[used:end:end], src[end:], nil
}

// section gathers records in memory, cut into blocks.
type section struct {
	buf   []byte
	start int   // of the open block in buf
	ends  []int // of the finished blocks in buf
	count int64
}

// add ends the open block if it is full and returns the buffer to append the
// next record to.
func (s *section) add() []byte {
	if len(s.buf)-s.start >= recordBlockSize {
		s.finish()
	}
	s.count++
	return s.buf
}

func (s *section) finish() {
	if len(s.buf) > s.start {
		s.ends = append(s.ends, len(s.buf))
		s.start = len(s.buf)
	}
}

func checkName[T string | []byte](what string, b T) error {
	if len(b) > MaxName {
		return fmt.Errorf("segment: a %s of %d bytes, the limit is %d", what, len(b), MaxName)
	}
	return nil
}

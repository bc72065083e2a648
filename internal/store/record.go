package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"dalmatiner/internal/account"
	"dalmatiner/internal/metric"
)

// The kinds of log records. DESIGN.md has their layouts.
const (
	recBucket = 1 // a bucket was created
	recDelete = 2 // a bucket was deleted
	recTTL    = 3 // a bucket's TTL was set
	recDefine = 4 // a series got its group and column
	recRow    = 5 // points of consecutive columns in one slot
	recColumn = 6 // points of one column in consecutive slots
	recRefuse = 7 // points that were refused
)

// maxRun is the largest number of points in one record.
const maxRun = 4096

var errRecord = errors.New("malformed log record")

// record is any log record, parsed.
type record struct {
	kind   byte
	bucket uint32
	info   BucketInfo // recBucket
	ttl    int64      // recTTL
	group  uint32     // recDefine, recRow, recColumn
	column int
	key    []byte // recDefine; the record's memory
	minute int64  // recRow, recColumn, recRefuse
	counts account.Counts
	slot   int64
	cells  []byte // recRow, recColumn: words, little-endian; the record's memory
}

func appendBucketRecord(dst []byte, b *BucketInfo) []byte {
	dst = append(dst, recBucket)
	dst = binary.AppendUvarint(dst, uint64(b.ID))
	dst = binary.AppendUvarint(dst, uint64(b.Resolution))
	dst = binary.AppendUvarint(dst, uint64(b.PPF))
	dst = binary.AppendUvarint(dst, uint64(b.TTL))
	dst = binary.AppendUvarint(dst, uint64(b.Grace))
	hpts := byte(0)
	if b.HPTS {
		hpts = 1
	}
	dst = append(dst, hpts)
	return append(dst, b.Name...)
}

func appendDeleteRecord(dst []byte, bucket uint32) []byte {
	return binary.AppendUvarint(append(dst, recDelete), uint64(bucket))
}

func appendTTLRecord(dst []byte, bucket uint32, ttl int64) []byte {
	dst = binary.AppendUvarint(append(dst, recTTL), uint64(bucket))
	return binary.AppendUvarint(dst, uint64(ttl))
}

func appendDefineRecord(dst []byte, bucket, group uint32, column int, key []byte) []byte {
	dst = binary.AppendUvarint(append(dst, recDefine), uint64(bucket))
	dst = binary.AppendUvarint(dst, uint64(group))
	dst = append(dst, byte(column))
	return append(dst, key...)
}

func appendRefuseRecord(dst []byte, bucket uint32, minute int64, c *account.Counts) []byte {
	dst = binary.AppendUvarint(append(dst, recRefuse), uint64(bucket))
	dst = binary.AppendVarint(dst, minute)
	return account.AppendCounts(dst, c)
}

// appendDataHeader appends all of a row or column record but the cells, which
// follow as they lie in memory.
func appendDataHeader(dst []byte, kind byte, bucket, group uint32, column int, slot, minute int64, c *account.Counts) []byte {
	dst = binary.AppendUvarint(append(dst, kind), uint64(bucket))
	dst = binary.AppendUvarint(dst, uint64(group))
	dst = append(dst, byte(column))
	dst = binary.AppendUvarint(dst, uint64(slot))
	dst = binary.AppendVarint(dst, minute)
	return account.AppendCounts(dst, c)
}

// wordBytes returns the memory of words. The log is little-endian, as every
// machine is that the store is built for.
func wordBytes(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
}

// appendCells appends the words of a record's cells to dst.
func appendCells(dst []uint64, cells []byte) []uint64 {
	for ; len(cells) >= 8; cells = cells[8:] {
		dst = append(dst, binary.LittleEndian.Uint64(cells))
	}
	return dst
}

// fields reads the fixed-order fields of a record and remembers the first
// error.
type fields struct {
	src []byte
	bad bool
}

func (f *fields) uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(f.src)
	if n <= 0 || v > limit {
		f.bad = true
		return 0
	}
	f.src = f.src[n:]
	return v
}

func (f *fields) varint() int64 {
	v, n := binary.Varint(f.src)
	if n <= 0 {
		f.bad = true
		return 0
	}
	f.src = f.src[n:]
	return v
}

func (f *fields) byte() byte {
	if len(f.src) == 0 {
		f.bad = true
		return 0
	}
	b := f.src[0]
	f.src = f.src[1:]
	return b
}

func (f *fields) counts() (c account.Counts) {
	c, rest, err := account.ParseCounts(f.src)
	if err != nil {
		f.bad = true
		return c
	}
	f.src = rest
	return c
}

const maxUint32 = 1<<32 - 1

// parseRecord parses a log record. Slices of the result are src's memory.
func parseRecord(src []byte) (r record, err error) {
	f := fields{src: src}
	r.kind = f.byte()
	r.bucket = uint32(f.uvarint(maxUint32))
	switch r.kind {
	case recBucket:
		f.bucket(&r)
	case recDelete:
	case recTTL:
		r.ttl = int64(f.uvarint(maxPoints))
	case recDefine:
		r.group = uint32(f.uvarint(maxGroups))
		r.column = int(f.byte())
		r.key, f.src = f.src, nil
		f.bad = f.bad || len(r.key) == 0 || len(r.key) > metric.MaxKey
	case recRow, recColumn:
		r.group = uint32(f.uvarint(maxGroups))
		r.column = int(f.byte())
		r.slot = int64(f.uvarint(maxSlot))
		r.minute = f.varint()
		r.counts = f.counts()
		r.cells, f.src = f.src, nil
		f.bad = f.bad || len(r.cells)%8 != 0 || len(r.cells) > maxRun*8
	case recRefuse:
		r.minute = f.varint()
		r.counts = f.counts()
	default:
		f.bad = true
	}
	if f.bad || len(f.src) != 0 {
		return record{}, fmt.Errorf("%w of kind %d, %d bytes", errRecord, r.kind, len(src))
	}
	return r, nil
}

func (f *fields) bucket(r *record) {
	r.info.ID = r.bucket
	r.info.Resolution = int64(f.uvarint(maxResolution))
	r.info.PPF = int64(f.uvarint(maxPoints))
	r.info.TTL = int64(f.uvarint(maxPoints))
	r.info.Grace = int64(f.uvarint(1<<63 - 1))
	r.info.HPTS = f.byte() == 1
	r.info.Name = string(f.src)
	f.src = nil
	if r.info.validate() != nil {
		f.bad = true
	}
}

package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"dalmatiner/internal/account"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/head"
	"dalmatiner/internal/kernel"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/series"
	"dalmatiner/internal/version"
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
	recForget = 8 // series of one group were deleted or have expired
	recRuns   = 9 // several runs of points of one group, each of consecutive columns in one slot
)

// maxRun is the largest number of points in one record.
const maxRun = 4096

var errRecord = errors.New("malformed log record")

// record is any log record, parsed.
type record struct {
	kind        byte
	bucket      uint64
	info        buckets.Info     // recBucket
	deleted     buckets.Deletion // recDelete
	ttl         int64            // recTTL
	group       uint32           // recDefine, recRow, recColumn, recRuns
	column      int
	key         []byte // recDefine; the record's memory
	minute      int64  // recRow, recColumn, recRuns, recRefuse
	counts      account.Counts
	slot, last  int64 // of points: from the first to the last
	why         byte
	incarnation uint64 // recDefine: of the series; recForget: that it gives them
	series      []byte // recForget: column and id of each; the record's memory
	runs        []byte // recRuns: as appendRuns wrote them; the record's memory
	cells       []byte // recRow, recColumn, recRuns: words as appendCells wrote them; the record's memory
}

// points reports whether a record holds points.
func (r *record) points() bool { return holdsPoints(r.kind) }

func holdsPoints(kind byte) bool { return kind == recRow || kind == recColumn || kind == recRuns }

// appendHead begins a record: its kind and the id of its bucket.
func appendHead(dst []byte, kind byte, bucket uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, kind), bucket)
}

func appendBucketRecord(dst []byte, b *buckets.Info) []byte {
	dst = appendHead(dst, recBucket, b.ID)
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

func appendDeleteRecord(dst []byte, d *buckets.Deletion) []byte {
	dst = binary.AppendUvarint(appendHead(dst, recDelete, d.ID), d.Clock)
	return append(dst, d.Name...)
}

func appendTTLRecord(dst []byte, bucket uint64, ttl int64) []byte {
	dst = appendHead(dst, recTTL, bucket)
	return binary.AppendUvarint(dst, uint64(ttl))
}

func appendDefineRecord(dst []byte, bucket uint64, group uint32, column int, incarnation uint64, key []byte) []byte {
	dst = appendHead(dst, recDefine, bucket)
	dst = binary.AppendUvarint(dst, uint64(group))
	dst = append(dst, byte(column))
	dst = binary.AppendUvarint(dst, incarnation)
	return append(dst, key...)
}

// forgetSize is what a series takes in a recForget: column, id.
const forgetSize = 1 + len(metric.SeriesID{})

func appendForgetRecord(dst []byte, bucket uint64, group uint32, why byte, incarnation uint64, series []version.Tombstone) []byte {
	dst = appendHead(dst, recForget, bucket)
	dst = binary.AppendUvarint(dst, uint64(group))
	dst = append(dst, why)
	dst = binary.AppendUvarint(dst, incarnation)
	for i := range series {
		dst = append(append(dst, series[i].Column), series[i].ID[:]...)
	}
	return dst
}

func appendRefuseRecord(dst []byte, bucket uint64, minute int64, c *account.Counts) []byte {
	dst = appendHead(dst, recRefuse, bucket)
	dst = binary.AppendVarint(dst, minute)
	return account.AppendCounts(dst, c)
}

// appendRuns appends where the runs of a write lie: most of them close to the one
// before in time, and many of them single points.
func appendRuns(dst []byte, runs []head.Run) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(runs)))
	slot := int64(0)
	for i := range runs {
		r := &runs[i]
		d := r.Slot - slot
		slot = r.Slot
		step := uint64(d<<1^d>>63) << 1
		dst = append(dst, byte(r.Column))
		if r.Points == 1 {
			dst = binary.AppendUvarint(dst, step)
		} else {
			dst = append(binary.AppendUvarint(dst, step|1), byte(r.Points-1))
		}
	}
	return dst
}

// run reads a run behind one in the given slot.
func (f *fields) run(slot int64) (r head.Run) {
	r.Column, r.Points = int(f.byte()), 1
	step := f.uvarint(math.MaxUint64)
	if step&1 != 0 {
		r.Points += int(f.byte())
	}
	step >>= 1
	r.Slot = slot + int64(step>>1^-(step&1))
	return r
}

// runs reads the runs of a record, and returns how many points they have and the
// column behind the last one.
func (f *fields) runs() (points, past int) {
	n, slot := f.uvarint(maxRun), int64(0)
	f.bad = f.bad || n == 0
	for ; n > 0 && !f.bad; n-- {
		r := f.run(slot)
		slot = r.Slot
		points += r.Points
		past = max(past, r.Column+r.Points)
		f.bad = f.bad || slot < 0 || slot > buckets.MaxSlot
	}
	f.bad = f.bad || past > head.Width
	return points, past
}

// parseRuns appends the runs of well-formed ones to dst.
func parseRuns(dst []head.Run, src []byte) []head.Run {
	f := fields{src: src}
	slot := int64(0)
	for range f.uvarint(maxRun) {
		r := f.run(slot)
		slot = r.Slot
		dst = append(dst, r)
	}
	return dst
}

// The forms of the cells of a record: integers that all fit one, two or four
// bytes as zigzag, else the words. A log of raw words would cost more in the
// page cache than all the rest of the way of a point.
const (
	cells8  = 1
	cells16 = 2
	cells32 = 4
	cells64 = 8
)

const intTag = uint64(1) << 56 // of a word that is an integer

// appendCells appends words in the smallest form that holds them all.
func appendCells(dst []byte, words []uint64) []byte {
	form := cellForm(words)
	dst = append(dst, byte(form))
	at := len(dst)
	dst = slices.Grow(dst, len(words)*form)[:at+len(words)*form]
	out := dst[at:]
	if form != cells64 {
		kernel.Zigzags(out, words, form)
		return dst
	}
	for _, w := range words {
		binary.LittleEndian.PutUint64(out, w)
		out = out[8:]
	}
	return dst
}

// cellForm returns the smallest form for words. An integer and its complement
// have zigzags of the same length, so the bits of all magnitudes together tell
// it.
func cellForm(words []uint64) int {
	tags, all := kernel.IntBits(words)
	if tags>>56 != 0 {
		return cells64
	}
	switch n := bits.Len64(all&(1<<56-1)) + 1; { // and the sign
	case n <= 8:
		return cells8
	case n <= 16:
		return cells16
	case n <= 32:
		return cells32
	}
	return cells64
}

// unzigzag undoes what kernel.Zigzags does.
func unzigzag(z uint64) uint64 {
	v := z>>1 ^ -(z & 1)
	return intTag | v&(1<<56-1)
}

// cellCount returns how many words the cells of a record hold; ok is false
// when they are malformed.
func cellCount(cells []byte) (n int, ok bool) {
	if len(cells) == 0 {
		return 0, false
	}
	form := int(cells[0])
	switch form {
	case cells8, cells16, cells32, cells64:
		n = (len(cells) - 1) / form
		return n, n*form == len(cells)-1 && n <= maxRun
	}
	return 0, false
}

// parseCells appends the words of well-formed cells to dst.
func parseCells(dst []uint64, cells []byte) []uint64 {
	form, cells := int(cells[0]), cells[1:]
	at, n := len(dst), len(cells)/form
	dst = slices.Grow(dst, n)[:at+n]
	out := dst[at:]
	switch form {
	case cells8:
		for i, c := range cells[:len(out)] {
			out[i] = unzigzag(uint64(c))
		}
	case cells16:
		for ; len(out) >= 4; out, cells = out[4:], cells[8:] {
			four := binary.LittleEndian.Uint64(cells)
			out[0] = unzigzag(four & 0xffff)
			out[1] = unzigzag(four >> 16 & 0xffff)
			out[2] = unzigzag(four >> 32 & 0xffff)
			out[3] = unzigzag(four >> 48)
		}
		for i := range out {
			out[i] = unzigzag(uint64(binary.LittleEndian.Uint16(cells[2*i:])))
		}
	case cells32:
		for i := range out {
			out[i] = unzigzag(uint64(binary.LittleEndian.Uint32(cells[4*i:])))
		}
	default:
		for i := range out {
			out[i] = binary.LittleEndian.Uint64(cells[8*i:])
		}
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

func (f *fields) uint64() uint64 {
	if len(f.src) < 8 {
		f.bad = true
		return 0
	}
	v := binary.LittleEndian.Uint64(f.src)
	f.src = f.src[8:]
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

// parseRecord parses a log record. Slices of the result are src's memory.
func parseRecord(src []byte) (r record, err error) {
	f := fields{src: src}
	r.kind = f.byte()
	r.bucket = f.uint64()
	switch r.kind {
	case recBucket:
		f.bucket(&r)
	case recDelete:
		r.deleted = buckets.Deletion{ID: r.bucket, Clock: f.uvarint(math.MaxUint64), Name: string(f.src)}
		f.bad = f.bad || len(f.src) == 0 || len(f.src) > metric.MaxBucket
		f.src = nil
	case recTTL:
		r.ttl = int64(f.uvarint(buckets.MaxPoints))
	case recDefine:
		r.group = uint32(f.uvarint(series.MaxGroups))
		r.column = int(f.byte())
		r.incarnation = f.uvarint(math.MaxUint64)
		r.key, f.src = f.src, nil
		f.bad = f.bad || len(r.key) == 0 || len(r.key) > metric.MaxKey
	case recRow, recColumn:
		h := f.dataHead(r.bucket)
		r.group, r.slot, r.last, r.minute = h.group, h.first, h.last, h.minute
		r.column = int(f.byte())
		r.counts = f.counts()
		r.cells, f.src = f.src, nil
		if _, ok := cellCount(r.cells); !ok {
			f.bad = true
		}
	case recRuns:
		h := f.dataHead(r.bucket)
		r.group, r.slot, r.last, r.minute = h.group, h.first, h.last, h.minute
		from := f.src
		points, _ := f.runs()
		r.runs = from[:len(from)-len(f.src)]
		r.counts = f.counts()
		r.cells, f.src = f.src, nil
		if n, ok := cellCount(r.cells); !ok || n != points {
			f.bad = true
		}
	case recForget:
		r.group = uint32(f.uvarint(series.MaxGroups))
		r.why = f.byte()
		r.incarnation = f.uvarint(math.MaxUint64)
		r.series, f.src = f.src, nil
		f.bad = f.bad || r.why != whyDeleted && r.why != whyExpired || len(r.series) == 0 || len(r.series)%forgetSize != 0 ||
			(r.why == whyDeleted) != (r.incarnation != 0)
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
	r.info.Resolution = int64(f.uvarint(buckets.MaxResolution))
	r.info.PPF = int64(f.uvarint(buckets.MaxPoints))
	r.info.TTL = int64(f.uvarint(buckets.MaxPoints))
	r.info.Grace = int64(f.uvarint(1<<63 - 1))
	flags := f.byte()
	r.info.HPTS = flags == 1
	r.info.Name = string(f.src)
	f.src = nil
	if flags > 1 || r.info.Validate() != nil {
		f.bad = true
	}
}

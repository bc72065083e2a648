// Package logrecord is what the records of the log say: it appends and parses them,
// and says of lost ones what is known. DESIGN.md has their layouts.
package logrecord

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"

	"dalmatiner/internal/account"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/series"
)

// Kind is the kind of a record.
type Kind byte

// The kinds of log records.
const (
	Bucket        Kind = 1 // a bucket was created
	BucketDeleted Kind = 2
	TTL           Kind = 3 // a bucket's TTL was set
	Series        Kind = 4 // a series got its group and column
	Row           Kind = 5 // points of consecutive columns in one slot
	Column        Kind = 6 // points of one column in consecutive slots
	Refused       Kind = 7 // points that were refused
	SeriesDeleted Kind = 8 // series of one group were deleted or have expired
	Runs          Kind = 9 // several runs of points of one group, each of consecutive columns in one slot
)

// Points reports whether records of the kind hold points.
func (k Kind) Points() bool { return k == Row || k == Column || k == Runs }

// Reason is why series are no more.
type Reason byte

// The reasons.
const (
	Deleted Reason = 1 // somebody deleted them
	Expired Reason = 2 // their last points are older than the lifetime
)

// MaxPoints is the largest number of points in one record.
const MaxPoints = 4096

var errRecord = errors.New("malformed log record")

// Record is any log record, parsed. Its slices are the memory of the record that was
// parsed.
type Record struct {
	Kind        Kind
	Bucket      uint64
	Info        buckets.Info     // Bucket
	Deleted     buckets.Deletion // BucketDeleted
	TTL         int64            // TTL; points
	Group       uint32           // Series, SeriesDeleted, Row, Column, Runs
	Column      int              // Series, Row, Column
	Key         []byte           // Series
	Incarnation uint64           // Series: of it; SeriesDeleted: that it gives them
	Minute      int64            // Refused, Row, Column, Runs: of arrival
	Counts      account.Counts   // likewise
	Slot, Last  int64            // Row, Column, Runs: the lowest and the highest slot of its points
	Why         Reason           // SeriesDeleted
	Runs        []byte           // Runs: well-formed, for ParseRuns
	Cells       []byte           // Row, Column, Runs: well-formed, for ParseCells

	series []byte // SeriesDeleted
}

// appendHead begins a record: its kind and the id of its bucket.
func appendHead(dst []byte, kind Kind, bucket uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, byte(kind)), bucket)
}

// AppendBucket appends the record of the creation of a bucket.
func AppendBucket(dst []byte, b *buckets.Info) []byte {
	dst = appendHead(dst, Bucket, b.ID)
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

// AppendBucketDeleted appends the record of the deletion of a bucket.
func AppendBucketDeleted(dst []byte, d *buckets.Deletion) []byte {
	dst = binary.AppendUvarint(appendHead(dst, BucketDeleted, d.ID), d.Clock)
	return append(dst, d.Name...)
}

// AppendTTL appends the record of a new TTL, in points.
func AppendTTL(dst []byte, bucket uint64, ttl int64) []byte {
	dst = appendHead(dst, TTL, bucket)
	return binary.AppendUvarint(dst, uint64(ttl))
}

// AppendSeries appends the record of a series that gets a column; with timestamps, two.
func AppendSeries(dst []byte, bucket uint64, group uint32, column int, incarnation uint64, key []byte) []byte {
	dst = appendHead(dst, Series, bucket)
	dst = binary.AppendUvarint(dst, uint64(group))
	dst = append(dst, byte(column))
	dst = binary.AppendUvarint(dst, incarnation)
	return append(dst, key...)
}

// deletedSize is what a series takes in a SeriesDeleted: column, id.
const deletedSize = 1 + len(metric.SeriesID{})

// AppendSeriesDeleted begins the record of the end of series of one group; each follows
// by AppendDeleted. The incarnation is 0 for those that have expired.
func AppendSeriesDeleted(dst []byte, bucket uint64, group uint32, why Reason, incarnation uint64) []byte {
	dst = appendHead(dst, SeriesDeleted, bucket)
	dst = binary.AppendUvarint(dst, uint64(group))
	dst = append(dst, byte(why))
	return binary.AppendUvarint(dst, incarnation)
}

// AppendDeleted adds a series to a SeriesDeleted.
func AppendDeleted(dst []byte, column int, id metric.SeriesID) []byte {
	return append(append(dst, byte(column)), id[:]...)
}

// DeletedSeries returns the columns and ids of the series of a SeriesDeleted.
func (r *Record) DeletedSeries() iter.Seq2[int, metric.SeriesID] {
	return func(yield func(int, metric.SeriesID) bool) {
		for src := r.series; len(src) > 0; src = src[deletedSize:] {
			if !yield(int(src[0]), metric.SeriesID(src[1:deletedSize])) {
				return
			}
		}
	}
}

// AppendRefused appends the record of points that were refused in a minute.
func AppendRefused(dst []byte, bucket uint64, minute int64, c *account.Counts) []byte {
	dst = appendHead(dst, Refused, bucket)
	dst = binary.AppendVarint(dst, minute)
	return account.AppendCounts(dst, c)
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

// Parse parses a log record. Slices of the result are src's memory. After an error only
// the kind and the bucket may be used of it.
func Parse(src []byte) (r Record, err error) {
	f := fields{src: src}
	r.Kind = Kind(f.byte())
	r.Bucket = f.uint64()
	switch r.Kind {
	case Bucket:
		f.bucket(&r)
	case BucketDeleted:
		r.Deleted = buckets.Deletion{ID: r.Bucket, Clock: f.uvarint(math.MaxUint64), Name: string(f.src)}
		f.bad = f.bad || len(f.src) == 0 || len(f.src) > metric.MaxBucket
		f.src = nil
	case TTL:
		r.TTL = int64(f.uvarint(buckets.MaxPoints))
	case Series:
		r.Group = uint32(f.uvarint(series.MaxGroups))
		r.Column = int(f.byte())
		r.Incarnation = f.uvarint(math.MaxUint64)
		r.Key, f.src = f.src, nil
		f.bad = f.bad || len(r.Key) == 0 || len(r.Key) > metric.MaxKey
	case Row, Column:
		h := f.dataHead(r.Bucket)
		r.Group, r.Slot, r.Last, r.Minute = h.Group, h.First, h.Last, h.Minute
		r.Column = int(f.byte())
		r.Counts = f.counts()
		r.Cells, f.src = f.src, nil
		if _, ok := cellCount(r.Cells); !ok {
			f.bad = true
		}
	case Runs:
		h := f.dataHead(r.Bucket)
		r.Group, r.Slot, r.Last, r.Minute = h.Group, h.First, h.Last, h.Minute
		from := f.src
		points, _ := f.runs()
		r.Runs = from[:len(from)-len(f.src)]
		r.Counts = f.counts()
		r.Cells, f.src = f.src, nil
		if n, ok := cellCount(r.Cells); !ok || n != points {
			f.bad = true
		}
	case SeriesDeleted:
		r.Group = uint32(f.uvarint(series.MaxGroups))
		r.Why = Reason(f.byte())
		r.Incarnation = f.uvarint(math.MaxUint64)
		r.series, f.src = f.src, nil
		f.bad = f.bad || r.Why != Deleted && r.Why != Expired || len(r.series) == 0 || len(r.series)%deletedSize != 0 ||
			(r.Why == Deleted) != (r.Incarnation != 0)
	case Refused:
		r.Minute = f.varint()
		r.Counts = f.counts()
	default:
		f.bad = true
	}
	if f.bad || len(f.src) != 0 {
		return Record{}, fmt.Errorf("%w of kind %d, %d bytes", errRecord, r.Kind, len(src))
	}
	return r, nil
}

func (f *fields) bucket(r *Record) {
	r.Info.ID = r.Bucket
	r.Info.Resolution = int64(f.uvarint(buckets.MaxResolution))
	r.Info.PPF = int64(f.uvarint(buckets.MaxPoints))
	r.Info.TTL = int64(f.uvarint(buckets.MaxPoints))
	r.Info.Grace = int64(f.uvarint(1<<63 - 1))
	flags := f.byte()
	r.Info.HPTS = flags == 1
	r.Info.Name = string(f.src)
	f.src = nil
	if flags > 1 || r.Info.Validate() != nil {
		f.bad = true
	}
}

// Past returns the column behind the last one that a record has points of; width is how
// many columns a metric of its bucket has.
func (r *Record) Past(width int) (past int) {
	switch r.Kind {
	case Column:
		return r.Column + width
	case Row:
		n, _ := cellCount(r.Cells) // well-formed, or it were no record
		return r.Column + n
	}
	f := fields{src: r.Runs}
	_, past = f.runs()
	return past
}

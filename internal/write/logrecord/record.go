// Package logrecord encodes and decodes the records that the store writes into its log
// (package wal), and says what is known of those that damage took. DESIGN.md has their
// layouts.
//
// Append functions append to a slice of the caller, and keep nothing.
package logrecord

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"dalmatiner/internal/codec/fields"
	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/series"
)

// Kind is the kind of a record.
type Kind byte

// The kinds of log records.
const (
	Bucket        Kind = 1 // a bucket was created
	BucketDeleted Kind = 2 // a bucket was deleted
	TTL           Kind = 3 // a bucket's TTL was set
	Series        Kind = 4 // a series got its group and column
	Row           Kind = 5 // points of consecutive columns in one slot
	Column        Kind = 6 // points of one column in consecutive slots
	Refused       Kind = 7 // points that were refused, or that other nodes store
	SeriesDeleted Kind = 8 // series of one group were deleted or have expired
	// several runs of points of one group, each of consecutive columns in one slot
	Runs   Kind = 9
	Tags   Kind = 10 // tags of series were set or removed
	Events Kind = 11 // events of one bucket, or what became of those that were not stored
)

// copies is added to the kind of a record whose counts belong to the ledger of copies: Row, Column,
// Runs or Refused.
const copies Kind = 0x40

// MarkCopies makes the counts of a record, which AppendWrite or AppendRefused has made, those of
// the ledger of copies.
func MarkCopies(rec []byte) { rec[0] |= byte(copies) }

// Points reports whether records of the kind hold points.
func (k Kind) Points() bool { return k == Row || k == Column || k == Runs }

// HoldsPoints reports whether a record, of which the first byte is enough, holds points.
func HoldsPoints(rec []byte) bool { return (Kind(rec[0]) &^ copies).Points() }

// Reason says why series were removed.
type Reason byte

// The reasons for which series are removed.
const (
	Deleted Reason = 1 // somebody deleted them
	Expired Reason = 2 // their last points are older than the lifetime
	Dropped Reason = 3 // other nodes have them from then on; they keep their incarnation
)

// MaxPoints is the most cells of one record. A point without a timestamp is one cell.
const MaxPoints = 4096

var errRecord = errors.New("malformed log record")

// Record is a parsed log record of any kind. Beside each field stand the kinds that have it;
// it is zero for others. Slices are part of the bytes that were parsed.
type Record struct {
	Kind    Kind
	Bucket  uint64           // id; all kinds
	Info    buckets.Info     // Bucket
	Deleted buckets.Deletion // BucketDeleted
	TTL     int64            // TTL: in points, 0 = infinite
	Group   uint32           // Series, SeriesDeleted, Row, Column, Runs
	Column  int              // Series, Row, Column
	Key     []byte           // Series
	// Series: its own; SeriesDeleted: what the series have from then on, or go on to have
	Incarnation uint64
	Minute      int64 // Refused, Row, Column, Runs, Events: of arrival, since 1970
	// Refused, Row, Column, Runs, Events: what became of the points or events
	Counts account.Counts
	// Refused, Row, Column, Runs: the counts belong to the ledger of copies
	Copies     bool
	Slot, Last int64             // Row, Column, Runs: the lowest and the highest slot of the points
	Why        Reason            // SeriesDeleted
	Runs       []byte            // Runs: well-formed, for ParseRuns
	Cells      []byte            // Row, Column, Runs: well-formed, for ParseCells
	Changes    []byte            // Tags: well-formed, for EachChange
	Events     []eventfile.Event // Events: in the order of their coming

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

// AppendTTL appends the record of a new TTL of a bucket, in points, 0 for ever.
func AppendTTL(dst []byte, bucket uint64, ttl int64) []byte {
	dst = appendHead(dst, TTL, bucket)
	return binary.AppendUvarint(dst, uint64(ttl))
}

// AppendSeries appends the record of a series that gets a column of a group. In a bucket with
// timestamps it gets the next column, too.
func AppendSeries(dst []byte, bucket uint64, group uint32, column int, incarnation uint64,
	key []byte) []byte {
	dst = appendHead(dst, Series, bucket)
	dst = binary.AppendUvarint(dst, uint64(group))
	dst = append(dst, byte(column))
	dst = binary.AppendUvarint(dst, incarnation)
	return append(dst, key...)
}

// deletedSize is what a series takes in a SeriesDeleted: column, id.
const deletedSize = 1 + len(metric.SeriesID{})

// AppendSeriesDeleted begins the record of the removal of series of one group. The caller adds
// each of them with AppendDeleted. The incarnation is 0 for series that have expired, and what they
// have for those that are dropped.
func AppendSeriesDeleted(dst []byte, bucket uint64, group uint32, why Reason,
	incarnation uint64) []byte {
	dst = appendHead(dst, SeriesDeleted, bucket)
	dst = binary.AppendUvarint(dst, uint64(group))
	dst = append(dst, byte(why))
	return binary.AppendUvarint(dst, incarnation)
}

// AppendDeleted adds a series and its column to a record that AppendSeriesDeleted began.
func AppendDeleted(dst []byte, column int, id metric.SeriesID) []byte {
	return append(append(dst, byte(column)), id[:]...)
}

// DeletedSeries returns the columns and ids of the series of a SeriesDeleted record, in its
// order.
func (r *Record) DeletedSeries() iter.Seq2[int, metric.SeriesID] {
	return func(yield func(int, metric.SeriesID) bool) {
		for src := r.series; len(src) > 0; src = src[deletedSize:] {
			if !yield(int(src[0]), metric.SeriesID(src[1:deletedSize])) {
				return
			}
		}
	}
}

// AppendRefused appends the record of the points of a bucket that arrived in a minute since 1970
// and that no other record has: they were refused, or other nodes store them.
func AppendRefused(dst []byte, bucket uint64, minute int64, c *account.Counts) []byte {
	dst = appendHead(dst, Refused, bucket)
	dst = binary.AppendVarint(dst, minute)
	return account.AppendCounts(dst, c)
}

// reader reads the fields of a record in their fixed order.
type reader struct{ fields.Reader }

func read(src []byte) reader { return reader{fields.Reader{Src: src}} }

// Parse parses a log record. The slices of the Record are part of src. Bytes that are no
// record, or more than one, are an error.
func Parse(src []byte) (r Record, err error) {
	f := read(src)
	r.Kind, r.Copies = f.kind()
	r.Bucket = f.U64()
	switch r.Kind {
	case Bucket:
		f.bucket(&r)
	case BucketDeleted:
		r.Deleted = buckets.Deletion{ID: r.Bucket, Clock: f.Uvarint(), Name: string(f.Rest())}
		f.Check(len(r.Deleted.Name) > 0 && len(r.Deleted.Name) <= metric.MaxBucket)
	case TTL:
		r.TTL = int64(f.UpTo(buckets.MaxPoints))
	case Series:
		r.Group = uint32(f.UpTo(series.MaxGroups))
		r.Column = int(f.U8())
		r.Incarnation = f.Uvarint()
		r.Key = f.Rest()
		f.Check(len(r.Key) > 0 && len(r.Key) <= metric.MaxKey)
	case Row, Column:
		h := f.dataHead(r.Bucket)
		r.Group, r.Slot, r.Last, r.Minute = h.Group, h.First, h.Last, h.Minute
		r.Column = int(f.U8())
		r.Counts = account.ReadCounts(&f.Reader)
		r.Cells = f.Rest()
		_, ok := cellCount(r.Cells)
		f.Check(ok)
	case Runs:
		h := f.dataHead(r.Bucket)
		r.Group, r.Slot, r.Last, r.Minute = h.Group, h.First, h.Last, h.Minute
		from := f.Src
		points, _ := f.runs()
		r.Runs = from[:len(from)-len(f.Src)]
		r.Counts = account.ReadCounts(&f.Reader)
		r.Cells = f.Rest()
		n, ok := cellCount(r.Cells)
		f.Check(ok && n == points)
	case SeriesDeleted:
		r.Group = uint32(f.UpTo(series.MaxGroups))
		r.Why = Reason(f.U8())
		r.Incarnation = f.Uvarint()
		r.series = f.Rest()
		f.Check(r.Why == Deleted && r.Incarnation != 0 || r.Why == Expired && r.Incarnation == 0 ||
			r.Why == Dropped)
		f.Check(len(r.series) > 0 && len(r.series)%deletedSize == 0)
	case Tags:
		f.tags(&r)
	case Events:
		f.events(&r)
	case Refused:
		r.Minute = f.Varint()
		r.Counts = account.ReadCounts(&f.Reader)
	default:
		f.Check(false)
	}
	if !f.IsDone() {
		return Record{}, fmt.Errorf("%w of kind %d, %d bytes", errRecord, r.Kind, len(src))
	}
	return r, nil
}

// kind reads the kind of a record, and whether its counts are those of copies.
func (f *reader) kind() (k Kind, ofCopies bool) {
	b := Kind(f.U8())
	k, ofCopies = b&^copies, b&copies != 0
	f.Check(!ofCopies || k.Points() || k == Refused)
	return k, ofCopies
}

func (f *reader) bucket(r *Record) {
	r.Info.ID = r.Bucket
	r.Info.Resolution = int64(f.UpTo(buckets.MaxResolution))
	r.Info.PPF = int64(f.UpTo(buckets.MaxPoints))
	r.Info.TTL = int64(f.UpTo(buckets.MaxPoints))
	r.Info.Grace = int64(f.UpTo(1<<63 - 1))
	flags := f.U8()
	r.Info.HPTS = flags == 1
	r.Info.Name = string(f.Rest())
	f.Check(flags <= 1 && r.Info.Validate() == nil)
}

// EndColumn returns the column behind the last one of which a Row, Column or Runs record has
// points. width is how many columns a metric of its bucket has: 2 with timestamps, else 1.
func (r *Record) EndColumn(width int) (past int) {
	switch r.Kind {
	case Column:
		return r.Column + width
	case Row:
		n, _ := cellCount(r.Cells) // well-formed, or it were no record
		return r.Column + n
	}
	f := read(r.Runs)
	_, past = f.runs()
	return past
}

package message

import (
	"encoding/binary"
	"errors"
	"math"

	"dalmatiner/internal/cluster/names"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/fields"
	"dalmatiner/internal/model/metric"
)

var errNegative = errors.New("a number of the message is negative")

// writer appends fields. The first error stays, and what is appended behind it means nothing.
type writer struct {
	dst   []byte
	names *names.Registry
	table *table
	err   error
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) u8(v byte)        { w.dst = append(w.dst, v) }
func (w *writer) u64(v uint64)     { w.dst = binary.BigEndian.AppendUint64(w.dst, v) }
func (w *writer) uvarint(v uint64) { w.dst = binary.AppendUvarint(w.dst, v) }
func (w *writer) node(id ring.ID)  { w.dst = append(w.dst, id[:]...) }
func (w *writer) version(v ring.Version) {
	w.uvarint(v.Number)
	w.u64(v.Sum)
}
func (w *writer) series(id metric.SeriesID) { w.dst = append(w.dst, id[:]...) }

func (w *writer) int(v int) {
	if v < 0 {
		w.fail(errNegative)
	}
	w.uvarint(uint64(v))
}

func (w *writer) bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	w.u8(b)
}

// deletions appends a list. A deletion names its bucket, so that a node that never heard of the
// series can remember it there. The bucket is 0 where this node does not know it either.
func (w *writer) deletions(list []replication.Deletion) {
	w.int(len(list))
	var before uint64
	for _, d := range list {
		bucket, _ := w.names.Bucket(d.Series)
		w.bool(bucket != before)
		if bucket != before {
			w.u64(bucket)
			before = bucket
		}
		w.series(d.Series)
		w.u64(d.Incarnation)
	}
}

func (w *writer) change(c replication.Change) {
	w.int(c.Partition)
	w.int(len(c.Further))
	before := c.Partition
	for _, p := range c.Further {
		w.int(p - before - 1)
		before = p
	}
	w.int(c.Copies)
	w.columns(c.Columns)
	w.rows(c.Rows)
	w.deletions(c.Deletions)
}

// reader reads what writer appends, and nothing else: a field has one form.
type reader struct {
	fields.Reader
	lookup
	deleted []deletionKey // buckets of series, for the registry of names
}

type deletionKey struct {
	series metric.SeriesID
	bucket uint64
}

func (r *reader) u64() uint64 {
	if b := r.Take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	before := len(r.Src)
	v := r.Uvarint()
	if n := before - len(r.Src); n > 1 {
		r.Check(v>>(7*(n-1)) != 0)
	}
	return v
}

func (r *reader) upTo(most uint64) uint64 {
	v := r.uvarint()
	r.Check(v <= most)
	if r.Bad {
		return 0
	}
	return v
}

func (r *reader) int() int { return int(r.upTo(math.MaxInt64)) }

func (r *reader) bool() bool {
	b := r.U8()
	r.Check(b <= 1)
	return b == 1
}

func (r *reader) copies() int    { return int(r.upTo(ring.MaxCopies)) }
func (r *reader) partition() int { return int(r.upTo(ring.MaxPartitions - 1)) }

func (r *reader) node() (id ring.ID) {
	copy(id[:], r.Take(len(id)))
	return id
}

func (r *reader) series() (id metric.SeriesID) {
	copy(id[:], r.Take(len(id)))
	return id
}

func (r *reader) version() ring.Version { return ring.Version{Number: r.uvarint(), Sum: r.u64()} }

// count reads how many things follow that have so many bytes at least: what is made for them is
// bounded by what is there.
func (r *reader) count(bytes int) int { return int(r.upTo(uint64(len(r.Src) / bytes))) }

// list reads a list of things that have so many bytes at least. An empty list is nil.
func list[T any](r *reader, bytes int, one func() T) []T {
	n := r.count(bytes)
	if n == 0 {
		return nil
	}
	all := make([]T, n)
	for i := range all {
		if all[i] = one(); r.Bad {
			return nil
		}
	}
	return all
}

func (r *reader) deletions() []replication.Deletion {
	var bucket uint64
	return list(r, 1+16+8, func() replication.Deletion {
		if r.bool() {
			before := bucket
			bucket = r.u64()
			r.Check(bucket != before)
		}
		d := replication.Deletion{Series: r.series(), Incarnation: r.u64()}
		if bucket != 0 {
			r.deleted = append(r.deleted, deletionKey{d.Series, bucket})
		}
		return d
	})
}

func (r *reader) change() replication.Change {
	c := replication.Change{Partition: r.partition()}
	before := c.Partition
	c.Further = list(r, 1, func() int {
		before += 1 + r.partition()
		r.Check(before < ring.MaxPartitions)
		return before
	})
	c.Copies, c.Columns, c.Rows, c.Deletions = r.copies(), r.columns(), r.rows(), r.deletions()
	return c
}

package message

import (
	"encoding/binary"
	"fmt"
	"slices"

	"dalmatiner/internal/cluster/names"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/fields"
	"dalmatiner/internal/model/metric"
)

// Changes is the encoding of changes on disk: each has the names of its series with it. Checksums
// are left to the log. Its methods may be called concurrently.
type Changes struct{ names *names.Registry }

// NewChanges returns the encoding with the registry that names are taken from and noted in.
func NewChanges(names *names.Registry) Changes { return Changes{names} }

// What the length of a key in a change has in its lowest bits.
const (
	timestampedName = 1 << iota // the id is that of values in a bucket with timestamps
	otherBucket                 // not the one of the name before; it follows
	nameBits        = iota
)

// Append appends a change. It fails, wrapping ErrName, if the name of a series is not known.
func (c Changes) Append(dst []byte, of replication.Change) ([]byte, error) {
	w := writer{dst: append(dst, version), names: c.names}
	at := len(w.dst)
	known := writer{names: c.names}
	var bucket uint64
	w.table = newTable(func(id metric.SeriesID) error { return known.name(id, &bucket) })
	w.change(of)
	if w.err != nil {
		return dst, w.err
	}
	count := binary.AppendUvarint(nil, uint64(len(w.table.ids)))
	return slices.Insert(w.dst, at, append(count, known.dst...)...), nil
}

// name appends the name of a series. before is the bucket of the one before.
func (w *writer) name(id metric.SeriesID, before *uint64) error {
	bucket, key, ok := w.names.Lookup(id)
	if !ok {
		return fmt.Errorf("series %x: %w", id[:], ErrName)
	}
	head := uint64(len(key)) << nameBits
	if plain := metric.Series(bucket, key); plain != id {
		if plain.Value() != id {
			return otherID(id, bucket, key)
		}
		head |= timestampedName
	}
	if bucket != *before {
		head |= otherBucket
	}
	w.uvarint(head)
	if bucket != *before {
		w.u64(bucket)
		*before = bucket
	}
	w.dst = append(w.dst, key...)
	return nil
}

// Read reads a change, and notes the names of its series. Nothing that is returned is part of src.
func (c Changes) Read(src []byte) (replication.Change, error) {
	r := reader{Reader: fields.Reader{Src: src}}
	v := r.U8()
	r.Check(v == version)
	var bucket uint64
	r.fresh = list(&r, 1, func() definition { return r.definition(&bucket) })
	of := r.change()
	if !r.IsDone() {
		return replication.Change{}, fmt.Errorf("%w: a change with %d bytes", ErrMalformed, len(src))
	}
	for _, n := range r.fresh {
		c.names.Note(n.id, n.bucket, n.key)
	}
	for _, d := range r.deleted {
		c.names.NoteBucket(d.series, d.bucket)
	}
	return of, nil
}

func (r *reader) definition(bucket *uint64) definition {
	head := r.upTo(metric.MaxKey<<nameBits | 1<<nameBits - 1)
	if head&otherBucket != 0 {
		before := *bucket
		*bucket = r.u64()
		r.Check(*bucket != before)
	}
	key := r.Take(int(head >> nameBits))
	id := metric.ValuesOf(*bucket, key, head&timestampedName != 0)
	r.Check(head&timestampedName == 0 || id != metric.Series(*bucket, key))
	return definition{id, *bucket, key}
}

package remote

import (
	"encoding/binary"
	"errors"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/fields"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/store/reader"
)

// kind says what is asked.
type kind uint8

const (
	askMetrics kind = iota + 1 // keys of partitions
	askExists                  // whether the series are there
	askPoints                  // whether they may have points in a range
	askExtent                  // where they may have points
	askSlots                   // their words
	// their aggregates, or what tells whether those of another copy are the same
	askAggregates
	kinds
)

// The bounds of a request.
const (
	maxKeys      = 256
	maxKeyBytes  = 248 << 10 // all keys of a request
	maxSteps     = 8192
	maxPartition = ring.MaxPartitions / 8 // bytes of a set of partitions
)

// errRequest is the error of bytes that are no request.
var errRequest = errors.New("not a request that this version can read")

// request is a question to a node that has copies.
type request struct {
	kind    kind
	version ring.Version
	bucket  uint64
	name    string // of the bucket

	prefix     []byte // of metrics
	partitions []byte // a bit for each that is wanted

	keys   [][]byte
	from   int64
	count  int    // slots, or steps of aggregates
	step   int64  // slots
	older  bool   // words that damage may have hidden newer ones of are wanted, too
	times  bool   // timestamps are wanted, too
	stale  bool   // and stale markers
	whole  []bool // of each key: its aggregates are wanted; else only the digests
	digest bool   // digests are wanted
	split  int64  // a chunk: digests are made of what lies before it, and from it on
}

const (
	flagOlder = 1 << iota
	flagTimes
	flagDigest
	flagStale
)

func (q *request) flags() (f byte) {
	if q.older {
		f |= flagOlder
	}
	if q.times {
		f |= flagTimes
	}
	if q.digest {
		f |= flagDigest
	}
	if q.stale {
		f |= flagStale
	}
	return f
}

func (q *request) append(dst []byte) []byte {
	dst = append(dst, byte(q.kind))
	for _, n := range []uint64{q.version.Number, q.version.Sum, q.bucket} {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	dst = append(binary.AppendUvarint(dst, uint64(len(q.name))), q.name...)
	if q.kind == askMetrics {
		dst = append(binary.AppendUvarint(dst, uint64(len(q.partitions))), q.partitions...)
		return append(dst, q.prefix...)
	}
	dst = binary.AppendVarint(append(dst, q.flags()), q.from)
	dst = binary.AppendUvarint(dst, uint64(q.count))
	dst = binary.AppendVarint(binary.AppendVarint(dst, q.step), q.split)
	dst = binary.AppendUvarint(dst, uint64(len(q.keys)))
	for i, key := range q.keys {
		role := byte(0)
		if q.whole != nil && q.whole[i] {
			role = 1
		}
		dst = append(dst, role)
		dst = append(binary.AppendUvarint(dst, uint64(len(key))), key...)
	}
	return dst
}

// parseRequest reads what append appends. The slices of the request are parts of b.
func parseRequest(b []byte) (q request, err error) {
	r := fields.Reader{Src: b}
	q.kind = kind(r.U8())
	q.version = ring.Version{Number: r.U64(), Sum: r.U64()}
	q.bucket, q.name = r.U64(), string(r.Bytes(metric.MaxBucket))
	r.Check(q.kind > 0 && q.kind < kinds)
	if q.kind == askMetrics {
		q.partitions = r.Bytes(maxPartition)
		q.prefix = r.Rest()
	} else {
		q.parseKeys(&r)
	}
	if !r.IsDone() {
		return request{}, errRequest
	}
	return q, nil
}

func (q *request) parseKeys(r *fields.Reader) {
	f := r.U8()
	q.older, q.times, q.digest, q.stale = f&flagOlder != 0, f&flagTimes != 0, f&flagDigest != 0,
		f&flagStale != 0
	q.from = r.Varint()
	most := uint64(buckets.MaxSlot)
	switch q.kind {
	case askSlots:
		most = source.MaxSlots
		r.Check(q.from >= 0)
	case askAggregates:
		most = maxSteps
	}
	q.count = int(r.UpTo(most))
	q.step, q.split = r.Varint(), r.Varint()
	r.Check(q.from >= reader.MinFrom && q.from <= buckets.MaxSlot)
	if q.kind == askAggregates {
		r.Check(q.step > 0 && q.step <= (buckets.MaxSlot-q.from)/int64(max(q.count, 1)))
	}
	n := int(r.UpTo(maxKeys))
	for range n {
		role := r.U8()
		r.Check(role < 2)
		q.whole = append(q.whole, role == 1)
		q.keys = append(q.keys, r.Bytes(metric.MaxKey))
	}
}

// chunks returns the chunks that enclose the steps of aggregates.
func (q *request) chunks() (first, past int64) { return enclosing(q.from, q.step*int64(q.count)) }

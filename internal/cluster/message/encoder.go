package message

import (
	"fmt"
	"slices"

	"dalmatiner/internal/cluster/names"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/model/metric"
)

// Encoder makes the frames for one peer. It is not for concurrent use.
//
// It counts on frames that were sent arriving in order, or not at all: a peer that misses some
// asks for what they brought. When a connection ends, Renew spares it the question.
type Encoder struct {
	names   *names.Registry
	buckets func(id uint64) (replication.Bucket, bool)
	limit   int
	epoch   epoch
	most    int // names

	table  *table
	bucket map[uint64]sentBucket
	order  []uint64 // buckets by number
	sent   sizes    // of what the peer has, if nothing was lost
	fresh  struct{ buckets, names writer }
}

// sentBucket is a bucket in the tables.
type sentBucket struct {
	number     uint32
	timestamps bool
}

// sizes are numbers of things in a table.
type sizes struct{ buckets, names int }

// NewEncoder returns one that has sent nothing. boot is another one for every start of the node,
// and all encoders of a start share the registry: so a peer never takes the names of one for those
// of another. limit is
// the longest frame in bytes. buckets says what a bucket is.
func NewEncoder(names *names.Registry, buckets func(id uint64) (replication.Bucket, bool),
	boot uint64, limit int) *Encoder {
	e := &Encoder{
		names:   names,
		buckets: buckets,
		limit:   limit,
		epoch:   epoch{boot: boot},
		most:    MaxNames,
	}
	e.Renew()
	return e
}

// Renew sends every name again from now on.
func (e *Encoder) Renew() {
	e.epoch.number = e.names.NewEpoch()
	e.table, e.bucket, e.order, e.sent = newTable(e.define), make(map[uint64]sentBucket), nil, sizes{}
	e.begin()
}

// HandleRequest takes the request of a peer (Decoder.AppendRequest). Those for older names than the
// present ones are passed over: many frames may need names that were lost once.
func (e *Encoder) HandleRequest(b []byte) error {
	of, err := readRequest(b)
	if err == nil && of == e.epoch {
		e.Renew()
	}
	return err
}

// ConfirmSent says whether the frame of the last Append was given to the connection. Append takes a
// frame of which it was not told for one that was not sent.
func (e *Encoder) ConfirmSent(ok bool) {
	if ok {
		e.sent = e.now()
	}
	e.begin()
}

// now returns how much is in the tables.
func (e *Encoder) now() sizes { return sizes{len(e.order), len(e.table.ids)} }

// begin takes back what was not sent.
func (e *Encoder) begin() {
	for _, id := range e.order[e.sent.buckets:] {
		delete(e.bucket, id)
	}
	e.order = e.order[:e.sent.buckets]
	e.table.cut(e.sent.names)
	e.fresh.buckets = writer{dst: e.fresh.buckets.dst[:0]}
	e.fresh.names = writer{dst: e.fresh.names.dst[:0]}
}

// Append appends the frame of a message. Its names count as sent after ConfirmSent(true). An error
// wraps ErrName or ErrTooLong where the message is to blame; dst is returned as it was.
func (e *Encoder) Append(dst []byte, m replication.Message) ([]byte, error) {
	e.begin()
	out, err := e.append(dst, m)
	if e.now().names > e.most || e.now().buckets > MaxBuckets {
		e.Renew()
		if out, err = e.append(dst, m); err == nil && e.now().names > e.most {
			err = fmt.Errorf("%w: it has %d series, the limit is %d", ErrTooLong, e.now().names, e.most)
		}
	}
	if err != nil {
		e.begin()
		return dst, err
	}
	return out, nil
}

func (e *Encoder) append(dst []byte, m replication.Message) ([]byte, error) {
	w := writer{dst: append(dst, version), names: e.names, table: e.table}
	kind := len(w.dst)
	w.u8(0)
	w.uvarint(e.epoch.boot)
	w.uvarint(e.epoch.number)
	at := len(w.dst)
	w.u8(0) // no buckets
	w.u8(0) // no names
	w.dst[kind] = w.message(m)
	if w.err != nil {
		return nil, w.err
	}
	if e.now() != e.sent {
		w.dst = slices.Replace(w.dst, at, at+2, e.appendDefinitions()...)
	}
	if n := len(w.dst) - len(dst); n > e.limit {
		return nil, e.tooLong(n)
	}
	return w.dst, nil
}

// appendDefinitions is what the frame says of buckets and series that the peer does not know yet.
func (e *Encoder) appendDefinitions() []byte {
	var w writer
	for _, part := range []struct {
		first, past int
		bytes       []byte
	}{{e.sent.buckets, len(e.order), e.fresh.buckets.dst},
		{e.sent.names, len(e.table.ids), e.fresh.names.dst}} {
		w.int(part.past - part.first)
		if part.past > part.first {
			w.int(part.first)
		}
		w.dst = append(w.dst, part.bytes...)
	}
	return w.dst
}

func (e *Encoder) tooLong(bytes int) error {
	return fmt.Errorf("%w: %d bytes, the limit of a frame is %d", ErrTooLong, bytes, e.limit)
}

// define appends the name of a series, and its bucket in front of the first one. The peer computes
// the id.
func (e *Encoder) define(id metric.SeriesID) error {
	bucket, key, ok := e.names.Lookup(id)
	if !ok {
		return fmt.Errorf("series %x: %w", id[:], ErrName)
	}
	in, ok := e.bucket[bucket]
	if !ok {
		var err error
		if in, err = e.defineBucket(bucket); err != nil {
			return err
		}
	}
	if metric.ValuesOf(bucket, key, in.timestamps) != id {
		return otherID(id, bucket, key)
	}
	w := &e.fresh.names
	w.uvarint(uint64(in.number))
	w.key(key)
	if n := len(w.dst); n > e.limit {
		return e.tooLong(n)
	}
	return nil
}

func (e *Encoder) defineBucket(id uint64) (in sentBucket, err error) {
	b, ok := e.buckets(id)
	if !ok {
		return in, fmt.Errorf("bucket %016x: %w", id, ErrName)
	}
	if err := validate(&b); err != nil {
		return in, fmt.Errorf("bucket %016x: %w: %w", id, ErrName, err)
	}
	if b.ID() != id {
		return in, fmt.Errorf("bucket %016x: %w: what is known of it belongs to bucket %016x", id,
			ErrName, b.ID())
	}
	in = sentBucket{uint32(len(e.order)), b.Timestamps}
	e.bucket[id] = in
	e.order = append(e.order, id)
	e.fresh.buckets.bucket(&b)
	return in, nil
}

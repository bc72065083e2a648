package message

import (
	"math"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// minBucket is what a bucket has in bytes at least.
const minBucket = 2 + 8 + 4

func validate(b *replication.Bucket) error {
	info := b.Info()
	return info.Validate()
}

// bucket appends what a bucket is. Its id follows from that.
func (w *writer) bucket(b *replication.Bucket) {
	w.u8(byte(len(b.Name)))
	w.dst = append(w.dst, b.Name...)
	w.bool(b.Timestamps)
	w.int(b.Copies)
	for _, v := range []uint64{uint64(b.Resolution), b.Deleted, b.Created, uint64(b.Lifetime),
		b.Changed, uint64(b.PPF), uint64(b.Grace),
		uint64(b.Quorum.Reads), uint64(b.Quorum.Writes), b.Quorum.Changed} {
		w.uvarint(v)
	}
}

func (r *reader) bucket() (b replication.Bucket) {
	b.Name = string(r.Take(int(r.U8())))
	b.Timestamps, b.Copies = r.bool(), r.copies()
	b.Resolution = int64(r.upTo(math.MaxInt64))
	b.Deleted, b.Created = r.uvarint(), r.uvarint()
	b.Lifetime = int64(r.upTo(math.MaxInt64))
	b.Changed = r.uvarint()
	b.PPF, b.Grace = int64(r.upTo(math.MaxInt64)), int64(r.upTo(math.MaxInt64))
	b.Quorum = replication.Quorum{
		Reads:   int(r.upTo(ring.MaxCopies)),
		Writes:  int(r.upTo(ring.MaxCopies)),
		Changed: r.uvarint(),
	}
	r.Check(r.Bad || validate(&b) == nil)
	return b
}

// key appends the key of a metric.
func (w *writer) key(key []byte) {
	w.uvarint(uint64(len(key)))
	w.dst = append(w.dst, key...)
}

func (r *reader) key() []byte { return r.Take(int(r.upTo(metric.MaxKey))) }

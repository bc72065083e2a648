package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/fields"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// The bounds of what is held in common about buckets.
const (
	bucketsLayout = 2 // version of the encoding
	maxBuckets    = 1 << 16

	// maxBucketBytes is the most that is gossiped; a creation is refused at half of it, so that what
	// several nodes create at once still fits.
	maxBucketBytes = 1<<20 - 8
)

var errBuckets = errors.New("malformed buckets of a cluster")

// appendBuckets appends what is known of buckets. Equal knowledge gives equal bytes.
func appendBuckets(b []byte, of *replication.Buckets) []byte {
	all, deleted := of.All(), of.Deletions()
	b = binary.AppendUvarint(append(b, bucketsLayout), uint64(len(deleted)))
	for _, d := range deleted {
		b = binary.AppendUvarint(append(binary.AppendUvarint(b, uint64(len(d.Name))), d.Name...), d.Clock)
	}
	b = binary.AppendUvarint(b, uint64(len(all)))
	for _, k := range all {
		b = append(binary.AppendUvarint(b, uint64(len(k.Name))), k.Name...)
		var flags uint64
		if k.Timestamps {
			flags = 1
		}
		for _, n := range []uint64{uint64(k.Resolution), flags, uint64(k.Copies), k.Deleted, k.Created,
			uint64(k.Lifetime), k.Changed, uint64(k.PPF), uint64(k.Grace),
			uint64(k.Quorum.Reads), uint64(k.Quorum.Writes), k.Quorum.Changed} {
			b = binary.AppendUvarint(b, n)
		}
	}
	return b
}

// parseBuckets reads what appendBuckets has written. Only buckets that can be are taken.
func parseBuckets(b []byte) (*replication.Buckets, error) {
	if len(b) > maxBucketBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are taken", errBuckets, len(b), maxBucketBytes)
	}
	r := &fields.Reader{Src: b}
	r.Check(r.U8() == bucketsLayout)
	out := replication.NewBuckets()
	last := ""
	for n := r.UpTo(maxBuckets); n > 0 && !r.Bad; n-- {
		d := replication.NameDeletion{Name: string(r.Bytes(metric.MaxBucket)), Clock: r.Uvarint()}
		r.Check(d.Name > last && d.Clock > 0) // in order: one encoding of what is known
		out.NoteDeleted(d)
		last = d.Name
	}
	var id uint64
	for n := r.UpTo(maxBuckets); n > 0 && !r.Bad; n-- {
		k := replication.Bucket{Name: string(r.Bytes(metric.MaxBucket)),
			Resolution: int64(r.UpTo(buckets.MaxResolution)),
			Timestamps: r.UpTo(1) == 1, Copies: int(r.UpTo(ring.MaxCopies)), Deleted: r.Uvarint(),
			Created: r.Uvarint(), Lifetime: int64(r.UpTo(buckets.MaxPoints)),
			Changed: r.Uvarint(), PPF: int64(r.UpTo(buckets.MaxPoints)), Grace: int64(r.UpTo(math.MaxInt64)),
			Quorum: replication.Quorum{
				Reads:   int(r.UpTo(ring.MaxCopies)),
				Writes:  int(r.UpTo(ring.MaxCopies)),
				Changed: r.Uvarint(),
			}}
		if r.Bad {
			break
		}
		info := k.Info()
		if err := info.Validate(); err != nil {
			return nil, fmt.Errorf("%w: %w", errBuckets, err)
		}
		r.Check(info.ID > id)
		out.Put(k)
		if _, ok := out.Get(info.ID); !ok {
			return nil, fmt.Errorf("%w: %s was deleted", errBuckets, metric.Quote(k.Name))
		}
		id = info.ID
	}
	if !r.IsDone() {
		return nil, errBuckets
	}
	return out, nil
}

// mergeBuckets merges two encodings, as gossip asks for it.
func mergeBuckets(a, b []byte) ([]byte, error) {
	mine, err := parseBuckets(a)
	if err != nil {
		return nil, err
	}
	theirs, err := parseBuckets(b)
	if err != nil {
		return nil, err
	}
	mine.Merge(theirs)
	merged := appendBuckets(nil, mine)
	if len(merged) > maxBucketBytes {
		return nil, fmt.Errorf("%d bytes of buckets are more than %d: delete some on one side first",
			len(merged), maxBucketBytes)
	}
	return merged, nil
}

// bucketOf returns a bucket as nodes tell each other of it, but for its clocks.
func bucketOf(info buckets.Info) replication.Bucket {
	return replication.Bucket{
		Name:       info.Name,
		Resolution: info.Resolution,
		Timestamps: info.HPTS,
		Lifetime:   info.TTL,
		PPF:        info.PPF,
		Grace:      info.Grace,
		Copies:     info.Copies,
	}
}

package metric

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// SeriesID identifies a series on every node: XXH3-128 of the bucket's id, eight
// bytes big-endian, and the key behind it. Its top bits choose the partition.
type SeriesID [16]byte

// shortKey is the length up to which a key is hashed without an allocation.
const shortKey = 248

// Series returns the id of the metric key in the bucket. Bucket ids are not
// reused, so a deleted bucket's series never meet those of its successor.
func Series(bucket uint64, key []byte) SeriesID {
	// The bucket is not the seed: XXH3 adds that to a short key, so that keys of
	// 4 to 8 bytes in two buckets had one hash as soon as they differed by what
	// the seeds do.
	var short [8 + shortKey]byte
	h := xxh3.Hash128(append(binary.BigEndian.AppendUint64(short[:0], bucket), key...))
	var id SeriesID
	binary.BigEndian.PutUint64(id[:8], h.Hi)
	binary.BigEndian.PutUint64(id[8:], h.Lo)
	return id
}

// BucketID returns the id of a bucket, the same on every node: XXH3-64 of its
// resolution in ms, whether its points have timestamps, the clock of the last
// deletion of its name (0 for none), and the name. It is never 0.
func BucketID(name string, resolution int64, hpts bool, deleted uint64) uint64 {
	buf := append(make([]byte, 0, 64+len(name)), bucketDomain...)
	buf = binary.BigEndian.AppendUint64(buf, uint64(resolution))
	flags := byte(0)
	if hpts {
		flags = 1
	}
	buf = binary.BigEndian.AppendUint64(append(buf, flags), deleted)
	return max(xxh3.Hash(append(buf, name...)), 1)
}

// bucketDomain tells what is hashed for a bucket from all else that is hashed.
const bucketDomain = "dalmatiner bucket\x00"

// timestampBit is the bit of the last byte of an id that tells the two series of a
// metric with timestamps apart: they stand next to each other wherever series
// are sorted, and it is none of the bits that spread series over partitions and
// shards.
const timestampBit = 0x80

// TimestampedID returns the id of the values of the metric key in a bucket with
// timestamps.
func TimestampedID(bucket uint64, key []byte) SeriesID { return Series(bucket, key).Value() }

// ValuesOf returns the id of the values of the metric key in a bucket, which has timestamps or not.
func ValuesOf(bucket uint64, key []byte, timestamps bool) SeriesID {
	if timestamps {
		return TimestampedID(bucket, key)
	}
	return Series(bucket, key)
}

// Value returns the id of the values that belong to the id of values or timestamps.
func (id SeriesID) Value() SeriesID {
	id[15] &^= timestampBit
	return id
}

// Timestamp returns the id of the timestamps that belong to the id of values.
func (id SeriesID) Timestamp() SeriesID {
	id[15] |= timestampBit
	return id
}

// IsTimestamp reports whether an id of a bucket with timestamps is that of timestamps.
// It means nothing for other buckets.
func (id SeriesID) IsTimestamp() bool { return id[15]&timestampBit != 0 }

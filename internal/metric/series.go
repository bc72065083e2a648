package metric

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// SeriesID identifies a series on every node: XXH3-128 of the bucket's id and
// the key. Its top bits choose the partition.
type SeriesID [16]byte

// Series returns the id of the metric key in the bucket. Bucket ids are never
// reused, so a deleted bucket's series never meet those of its successor.
func Series(bucket uint32, key []byte) SeriesID {
	h := xxh3.Hash128Seed(key, uint64(bucket))
	var id SeriesID
	binary.BigEndian.PutUint64(id[:8], h.Hi)
	binary.BigEndian.PutUint64(id[8:], h.Lo)
	return id
}

// Partition returns the partition of the series among a power of two of them.
func (id SeriesID) Partition(partitions int) int {
	return int(binary.BigEndian.Uint32(id[:4]) / uint32((1<<32)/uint64(partitions)))
}

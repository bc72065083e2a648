// Package segment reads and writes segments: immutable files of encoded chunks, sorted by
// (bucket, series hash, chunk number). A CRC-32C covers every byte and is verified on
// every read.
//
// Chunks are opaque bytes here. A segment also has the properties of its buckets, and the
// identity (the key) of every series that no committed segment named before it. So the
// catalogue can be rebuilt from segments alone. DESIGN.md has the byte diagrams.
package segment

import "encoding/hex"

// Hash identifies a series: XXH3-128 of (bucket id, key) as big-endian bytes.
// Its top bits are the partition, so a partition is a contiguous range of a
// segment.
type Hash [16]byte

// String returns the hash as 32 hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Series is the identity of one series: it turns a hash back into a name, and says which
// column the series has. Several identities may name one column, or several columns of
// one series: the one with the highest Since counts.
type Series struct {
	Bucket uint64
	Hash   Hash
	Group  uint32
	Column uint16
	Since  uint64 // position in the log of its definition, 0 when that is not known
	Key    []byte // at most MaxName bytes; none where DeleteSequence is set

	// DeleteSequence is not 0 for a series that was deleted: its points in segments that
	// are not clean of it are hidden (manifest.Tombstones). Group and Column are those
	// that it had, Since is the position of the deletion.
	DeleteSequence uint64

	// Incarnation is the clock of the last deletion of the series, which is the deletion
	// itself where DeleteSequence is set. It is 0 when none is remembered.
	Incarnation uint64
}

// Info is what the footer of a segment says about its content.
type Info struct {
	Size       int64 // bytes of the file
	DataBytes  int64 // bytes of all chunks, without any overhead
	Chunks     int64
	Points     int64 // set slots, as the writer was told; timestamps are none
	Series     int64 // distinct (bucket, hash) without those of timestamps
	Identities int64 // records added with AddSeries
	Buckets    int64 // records added with AddBucket
	MinChunk   int64 // lowest chunk number; 0 when Chunks is 0
	MaxChunk   int64 // highest chunk number, inclusive; 0 when Chunks is 0

	// These were given to Describe: the rank of the segment among others that hold the
	// same slots, and the window of chunks that it covers.
	Generation   int64
	WindowFirst  int64
	WindowChunks uint32 // 0 = it covers none
}

// reaches reports whether any chunk may have a number in [first, past).
func (i *Info) reaches(first, past int64) bool {
	return first < past && i.Chunks > 0 && past > i.MinChunk && first <= i.MaxChunk
}

// Package segment reads and writes segments: immutable files of encoded chunks, sorted by
// (bucket, series hash, chunk number). A CRC-32C covers every byte, and is verified whenever
// the byte is read from the file.
//
// Chunks are opaque bytes here. The number of a chunk is its first slot divided by
// chunk.Slots. A segment also has the properties of its buckets, and the identity (the key)
// of every series that no committed segment named before it. So the catalogue can be rebuilt
// from segments alone. DESIGN.md has the byte diagrams.
package segment

import "dalmatiner/internal/model/identity"

// Series is the identity of one series, and Hash its hash.
type (
	Series = identity.Series
	Hash   = identity.Hash
)

// Info is what the footer of a segment says about its content.
type Info struct {
	Size       int64  // bytes of the file
	Sum        uint32 // of the footer, which has sums of everything else
	DataBytes  int64  // bytes of all chunks, without any overhead
	Chunks     int64
	Points     int64 // set slots, as the writer was told: values and stale markers, no timestamps
	Series     int64 // distinct (bucket, hash) without those of timestamps
	Identities int64 // records added with AddSeries
	Buckets    int64 // records added with AddBucket
	MinChunk   int64 // lowest chunk number; 0 when Chunks is 0
	MaxChunk   int64 // highest chunk number, inclusive; 0 when Chunks is 0

	// What Writer.Describe was given: the rank of the segment among others that hold the
	// same slots, where the higher one is newer, and the window of chunks that it covers.
	Generation   int64
	WindowFirst  int64  // number of the first chunk
	WindowChunks uint32 // number of chunks, 0 = it covers no window
}

// reaches reports whether any chunk may have a number in [first, past).
func (i *Info) reaches(first, past int64) bool {
	return first < past && i.Chunks > 0 && past > i.MinChunk && first <= i.MaxChunk
}

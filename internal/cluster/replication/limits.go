package replication

import (
	"bytes"
	"math"

	"dalmatiner/internal/model/metric"
)

// WindowChunks is how many chunks of a series make a window.
const WindowChunks = 120

// The bounds of a message. A Fill has at least one chunk.
const (
	MaxRows       = 32 << 10 // of a batch, a hint
	MaxPoints     = 32 << 10 // of a Fill and its answer
	MaxChunkBytes = 16 << 10 // of the values of a chunk, and of its timestamps
	MaxWindows    = 4096     // of a Compare and its answer
	MaxChunks     = 256      // of a CompareChunks and its answer, and asked for in a Fill
	MaxDeletions  = 8192     // of a LearnReply, a ShareDeletions and its answer
)

// Limits are the bounds of messages of a node. Where one is 0, it is the largest.
type Limits struct{ Points, Windows, Chunks, Deletions int }

func (l Limits) orLargest() Limits {
	bounded := func(n, largest int) int {
		if n <= 0 {
			return largest
		}
		return min(n, largest)
	}
	return Limits{Points: bounded(l.Points, MaxPoints), Windows: bounded(l.Windows, MaxWindows),
		Chunks: bounded(l.Chunks, MaxChunks), Deletions: bounded(l.Deletions, MaxDeletions)}
}

// lastWindow is behind all windows that there are.
const lastWindow = math.MaxUint64

// maxAdopting bounds the bytes of chunks that have no file yet: while there are more, no others are
// asked for.
const maxAdopting = 16 << 20

// LastSeries returns what is behind all series: a page up to it is the last one.
func LastSeries() metric.SeriesID {
	return metric.SeriesID(bytes.Repeat([]byte{0xff}, len(metric.SeriesID{})))
}

package window

import (
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/segment"
)

// Rollups makes the rollups of a window from the headers and digests of its chunks,
// one series at a time. Entries of Small are made from the chunks, in order, and
// one of Large from those of Small. A series with few chunks has none.
type Rollups struct {
	window  Range
	hash    segment.Hash
	small   [segment.MaxSpans]chunk.Node
	digests [segment.MaxSpans]uint64
	spans   uint16 // those with chunks
	chunks  int    // of the series
	few     int    // segment.FewChunks
	data    []byte
}

// NewRollups returns a maker of the rollups of a window: a whole one of Small or
// Large chunks.
func NewRollups(window Range) *Rollups { return &Rollups{window: window, few: segment.FewChunks} }

// Add takes a chunk by its header and digest. Where it is the first one of a series, the
// rollups of the series before go to w; bytes is their size in the file.
func (l *Rollups) Add(w *segment.Writer, h segment.Hash, number int64, header *chunk.Header,
	digest uint64) (bytes int, err error) {
	if l.chunks > 0 && h != l.hash {
		if bytes, err = l.Flush(w); err != nil {
			return bytes, err
		}
	}
	l.hash = h
	l.chunks++
	at := number - l.window.First
	l.spans |= 1 << (at / Small)
	l.small[at/Small].Append(header, int(at%Small)*chunk.Slots)
	l.digests[at/Small] += chunk.NumberedDigest(number, digest)
	return bytes, nil
}

// Flush writes the rollups of the last series.
func (l *Rollups) Flush(w *segment.Writer) (bytes int, err error) {
	chunks, spans := l.chunks, l.spans
	if l.chunks, l.spans = 0, 0; chunks < l.few {
		clear(l.small[:])
		clear(l.digests[:])
		return 0, nil
	}
	var large chunk.Node
	var all uint64
	digests := make([]uint64, 0, segment.MaxSpans)
	l.data = l.data[:0]
	for i := range l.small {
		if spans>>i&1 != 0 {
			s := l.small[i].Header()
			l.data = chunk.AppendRollup(l.data, &s)
			large.Append(&s, i*Small*chunk.Slots)
			digests = append(digests, l.digests[i])
			all += l.digests[i]
		}
	}
	l.small, l.digests = [segment.MaxSpans]chunk.Node{}, [segment.MaxSpans]uint64{}
	if err := w.AddRollups(segment.Small, l.window.Bucket, l.hash, spans, digests,
		l.data); err != nil {
		return 0, err
	}
	bytes = len(l.data) + len(digests)*segment.RollupDigest + segment.RollupRow
	if l.window.Past-l.window.First < Large || len(digests) == 1 {
		return bytes, nil
	}
	header := large.Header()
	l.data = chunk.AppendRollup(l.data[:0], &header)
	bytes += len(l.data) + segment.RollupDigest + segment.RollupRow
	return bytes, w.AddRollups(segment.Large, l.window.Bucket, l.hash, 1, []uint64{all}, l.data)
}

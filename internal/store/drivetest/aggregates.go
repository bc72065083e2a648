package drivetest

import (
	"fmt"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/recompute"
)

// Aggregates adds up the words of a step, whose first slot is from, by the definition of the tree:
// a node is what its children give in their order.
func Aggregates(words []uint64, from int64) (h chunk.Header) {
	for i, w := range words {
		if w <= point.Stale {
			continue
		}
		if h.Count == 0 {
			h.FirstOff, h.First, h.Last, h.Rises = i, w, w, true
		}
		v := point.Float(w)
		h.Rises = h.Rises && v-v == 0 && !chunk.Less(w, h.Last)
		h.Count++
		h.LastOff, h.Last = i, w
		recompute.Extremes(&h, w)
	}
	h.Sum = sumTree(words, from, []int64{120 * chunk.Slots, 10 * chunk.Slots, chunk.Slots})
	return h
}

// sumTree cuts words at the multiples of the first size, and what comes out at those of the next.
func sumTree(words []uint64, from int64, sizes []int64) (all chunk.Sum) {
	if len(sizes) == 0 {
		return sumChunk(words, from)
	}
	var floats recompute.Float
	for len(words) > 0 {
		rest := from % sizes[0]
		if rest < 0 {
			rest += sizes[0]
		}
		n := min(sizes[0]-rest, int64(len(words)))
		part := sumTree(words[:n], from, sizes[1:])
		all.AddInts(part)
		floats.Add(part.Float)
		words, from = words[n:], from+n
	}
	all.Float = floats.Rounded()
	return all
}

// sumChunk adds up the lanes of a chunk slot by slot.
func sumChunk(words []uint64, from int64) chunk.Sum {
	var sum recompute.Sum
	for i, w := range words {
		if (from+int64(i))%chunk.Lane == 0 {
			sum.Next()
		}
		if w > point.Stale {
			sum.Add(w)
		}
	}
	return sum.Total()
}

// EqualAggregates compares bit by bit, but one NaN with another. Of slots that rise it may not be
// known.
func EqualAggregates(got, want chunk.Header) error {
	want.Rises = want.Rises && got.Rises
	if !recompute.Equal(&got, &want) {
		return fmt.Errorf("\n%+v, want\n%+v", got, want)
	}
	return nil
}

// Digest is the definition of the digest of a series, computed from the words and timestamps of
// whole chunks, from a slot on, that read returns.
func Digest(t TB, info buckets.Info, key []byte, incarnation uint64, from, past int64,
	read func(from int64, words, timestamps []uint64) error) (sum uint64) {
	t.Helper()
	id := metric.Series(info.ID, key)
	if info.HPTS {
		id = metric.TimestampedID(info.ID, key)
	}
	for number := max(from, 0); number < past; number++ {
		var words, timestamps [chunk.Slots]uint64
		if err := read(number*chunk.Slots, words[:], timestamps[:]); err != nil {
			t.Fatalf("%v", err)
		}
		sum += chunk.DigestOfSeries(id, incarnation) * chunk.NumberedDigest(number,
			chunk.DigestWords(words[:], 0))
		sum += chunk.DigestOfSeries(id.Timestamp(), incarnation) * chunk.NumberedDigest(number,
			chunk.DigestWords(timestamps[:], 0))
	}
	return sum
}

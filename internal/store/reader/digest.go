package reader

import (
	"context"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/incarnation"
)

// Digest returns the digest of the words that reads give of a series in the chunks
// [from, past) of its slots, stale markers among them, with timestamps of these too: the sum of
// chunk.NumberedDigest over its chunks, times chunk.DigestOfSeries with the incarnation.
// Where the points lie makes no difference, so copies of a series are compared by it.
// Slots below the lifetime are left out. The digest of nothing, as of an unknown series,
// is 0.
//
// Windows have stored the digests of 10 and of 120 chunks; what lies otherwise is
// decoded.
//
// The Stats are those of an aggregate of all these slots: they name the ones that are unknown.
func (r *Reader) Digest(ctx context.Context, s Series, timestamps bool,
	incarnations *incarnation.Set, from, past int64) (uint64, Stats, error) {
	first := max(min(max(from, 0), buckets.MaxSlot/chunk.Slots+1)*chunk.Slots, s.Oldest)
	end := min(max(past, 0), buckets.MaxSlot/chunk.Slots+1) * chunk.Slots
	if !r.o.Index.Has(s.ID) || first >= end {
		return 0, Stats{}, ctx.Err()
	}
	if err := r.o.Replay(ctx, s.ID); err != nil {
		return 0, Stats{}, err
	}
	k, err := r.enter()
	if err != nil {
		return 0, Stats{}, err
	}
	defer k.leave()
	a := r.aggregator()
	defer r.aggregators.Put(a)
	s.Stale = true // copies agree on stale markers as well
	for {
		n := incarnations.Get(s.ID)
		a.begin(k, s, first, end-first, nil)
		var sum uint64
		if timestamps {
			sum, err = a.digestPairs(ctx, n, first, end)
		} else {
			d := &digest{}
			a.digest = d
			err = a.run(ctx, first, end)
			sum = chunk.DigestOfSeries(s.ID, n) * d.sum
		}
		if incarnations.Get(s.ID) == n { // else the series was deleted meanwhile
			return sum, a.stats, err
		}
	}
}

// digest is a digest being made of what an aggregator walks through.
type digest struct {
	sum      uint64 // of chunk.NumberedDigest
	digester chunk.Digester
	units    [segment.MaxSpans]uint64 // of the level of a window
}

// level takes in what a window has stored of the chunks from number on, as
// aggregator.level does.
func (d *digest) level(a *aggregator, w *layer, number, shared int64) int64 {
	for l := segment.Large; l >= segment.Small; l-- {
		n := l.Chunks()
		if number%n != 0 || number+n > min(a.end/chunk.Slots, w.past, shared) || w.noRollups[l] {
			continue
		}
		if w.loaded != l+1 {
			var read int64
			var err error
			w.spans, read, err = w.seg.Reader.RollupDigests(l, a.series.Bucket, segment.Hash(a.series.ID),
				&d.units)
			a.stats.Bytes += read
			if err != nil {
				w.noRollups[l], w.damage = true, err // the chunks have the same
				continue
			}
			if w.spans == 0 {
				w.noRollups = [2]bool{true, true}
				return 0
			}
			w.loaded = l + 1
		}
		if i := (number - w.first) / n; w.spans>>i&1 != 0 {
			d.sum += d.units[i]
			a.stats.Rollups++
		}
		return n
	}
	return 0
}

// chunk takes in the slots [pos, end) of a chunk.
func (d *digest) chunk(a *aggregator, number, pos, end int64) error {
	if l := a.layers.only(number); l != nil && end-pos == chunk.Slots {
		data, err := a.data(l, number)
		if err != nil {
			return err
		}
		if sum, err := d.digester.Chunk(data); err == nil && data != nil {
			a.stats.Points += chunk.Slots
			d.sum += chunk.NumberedDigest(number, sum)
			return nil
		}
	}
	words, err := a.resolve(number, pos, end)
	if err == nil {
		d.sum += chunk.NumberedDigest(number, chunk.DigestWords(words, int(pos-number*chunk.Slots)))
	}
	return err
}

// digestPairs is Digest for a bucket with timestamps: which of them belongs to a
// value is known from the source of the value, so both are read.
func (a *aggregator) digestPairs(ctx context.Context, incarnation uint64, first,
	past int64) (uint64, error) {
	first, past = a.extent(first, past)
	var values, timestamps uint64
	var words, times [chunk.Slots]uint64
	for first < past {
		number := first / chunk.Slots
		off := int(first - number*chunk.Slots)
		n := min(past-first, chunk.Slots-int64(off))
		clear(times[:n])
		how := reading{timestamps: times[:n], stats: &a.stats}
		if err := a.look.read(ctx, a.series, first, words[:n], how); err != nil {
			return 0, err
		}
		values += chunk.NumberedDigest(number, chunk.DigestWords(words[:n], off))
		timestamps += chunk.NumberedDigest(number, chunk.DigestWords(times[:n], off))
		first += n
	}
	id := a.series.ID
	return chunk.DigestOfSeries(id, incarnation)*values +
		chunk.DigestOfSeries(id.Timestamp(), incarnation)*timestamps, nil
}

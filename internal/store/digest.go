package store

import (
	"context"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/chunk"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/segment"
)

// Digest returns the digest of the words that reads give of a metric in the chunks
// [from, past) of its slots, in a bucket with timestamps of these too: the sum of
// chunk.NumberedDigest over its chunks, times chunk.DigestOfSeries with the incarnation. Where the points lie makes no difference, so
// copies of a series are compared by it. Slots below the lifetime are left out. The
// digest of nothing, as of an unknown metric, is 0.
//
// Windows have stored the digests of 10 and of 120 chunks; what lies otherwise is
// decoded.
func (s *Store) Digest(ctx context.Context, info buckets.Info, key []byte, from, past int64) (uint64, error) {
	b, err := s.buckets.Of(info)
	if err != nil {
		return 0, err
	}
	lo, _ := s.admitted(b)
	first := max(min(max(from, 0), buckets.MaxSlot/chunk.Slots+1)*chunk.Slots, int64(lo))
	end := min(max(past, 0), buckets.MaxSlot/chunk.Slots+1) * chunk.Slots
	id := b.seriesID(key)
	if _, ok := s.index.Lookup(id); !ok || first >= end {
		return 0, ctx.Err()
	}
	if err := s.bringSeries(ctx, b, key); err != nil {
		return 0, err
	}
	r, err := s.enter()
	if err != nil {
		return 0, err
	}
	defer r.leave()
	for {
		incarnation := b.incarnations.Of(id)
		sum, err := s.digestOf(ctx, r, b, key, incarnation, first, end)
		if b.incarnations.Of(id) == incarnation { // else the series was deleted meanwhile
			return sum, err
		}
	}
}

// digestOf is Digest of a series in one incarnation.
func (s *Store) digestOf(ctx context.Context, r *reader, b *bucket, key []byte, incarnation uint64, first, end int64) (uint64, error) {
	a := s.aggregator()
	defer s.aggregators.Put(a)
	if b.info.HPTS {
		return s.digestPairs(ctx, r, a, b, key, incarnation, first, end)
	}
	id := b.seriesID(key)
	d := &digest{}
	a.begin(r, b.info.ID, id, first, end-first, nil)
	a.digest = d
	err := a.run(ctx, first, end)
	return chunk.DigestOfSeries(id, incarnation) * d.sum, err
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
			w.spans, read, err = w.seg.Reader.RollupDigests(l, a.bucket, segment.Hash(a.id), &d.units)
			a.stats.Bytes += read
			if err != nil {
				w.noRollups[l], w.damage = true, err // the chunks have the same
				continue
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
func (s *Store) digestPairs(ctx context.Context, r *reader, a *aggregator, b *bucket, key []byte, incarnation uint64, first, past int64) (uint64, error) {
	id := b.seriesID(key)
	a.begin(r, b.info.ID, id, first, past-first, nil)
	first, past = a.extent(first, past)
	var values, timestamps uint64
	var words, times [chunk.Slots]uint64
	for first < past {
		number := first / chunk.Slots
		off := int(first - number*chunk.Slots)
		n := min(past-first, chunk.Slots-int64(off))
		clear(times[:])
		if err := s.read(ctx, b.info, key, first, words[:n], reading{timestamps: times[:n]}); err != nil {
			return 0, err
		}
		values += chunk.NumberedDigest(number, chunk.DigestWords(words[:n], off))
		timestamps += chunk.NumberedDigest(number, chunk.DigestWords(times[:n], off))
		first += n
	}
	sum := chunk.DigestOfSeries(id, incarnation) * values
	return sum + chunk.DigestOfSeries(metric.SeriesID(id).Timestamp(), incarnation)*timestamps, nil
}

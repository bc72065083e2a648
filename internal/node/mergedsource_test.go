package node

import (
	"context"
	"errors"
	"slices"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/codec/sumtree"
	"dalmatiner/internal/model/buckets"
	seam "dalmatiner/internal/query/source"
)

// merged is a source over those of several nodes, each of which has some of the series,
// some slots of a series, or a copy.
type merged []seam.Source

// Offers says what all offer.
func (m merged) Offers() seam.Offers {
	o := seam.Offers{Aggregates: true, Older: true}
	for _, of := range m {
		o.Aggregates = o.Aggregates && of.Offers().Aggregates
		o.Older = o.Older && of.Offers().Older
	}
	return o
}

func (m merged) BucketNames() (names []string) {
	for _, of := range m {
		names = append(names, of.BucketNames()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (m merged) Bucket(name string) (seam.Bucket, error) {
	var b mergedBucket
	var unknown error
	for _, of := range m {
		part, err := of.Bucket(name)
		switch {
		case err == nil:
			b = append(b, part)
		case errors.Is(err, buckets.ErrUnknown):
			unknown = err
		default:
			return nil, err
		}
	}
	if len(b) == 0 {
		return nil, unknown
	}
	return b, nil
}

type mergedBucket []seam.Bucket

func (b mergedBucket) Info() seam.Info { return b[0].Info() }

// Mark and Since keep no history: a mark of several nodes is more than a Mark holds.
func (b mergedBucket) Mark() seam.Mark { return seam.NoHistory{}.Mark() }
func (b mergedBucket) Since(m seam.Mark, from int64) seam.Unchanged {
	return seam.NoHistory{}.Since(m, from)
}

func (b mergedBucket) Metrics(ctx context.Context, prefix []byte, fn func(key []byte) bool) error {
	seen, more := make(map[string]bool), true
	for _, part := range b {
		err := part.Metrics(ctx, prefix, func(key []byte) bool {
			if more && !seen[string(key)] {
				seen[string(key)] = true
				more = fn(key)
			}
			return more
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b mergedBucket) Series(key []byte) seam.Series {
	s := make(mergedSeries, len(b))
	for i, part := range b {
		s[i] = part.Series(key)
	}
	return s
}

type mergedSeries []seam.Series

func (s mergedSeries) Exists(ctx context.Context) (bool, error) {
	for _, part := range s {
		if found, err := part.Exists(ctx); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

func (s mergedSeries) Read(ctx context.Context, from int64, dst []uint64) (seam.Cost, error) {
	return s.lay(from, dst, func(part seam.Series, words []uint64) (seam.Cost, error) {
		return part.Read(ctx, from, words)
	})
}

func (s mergedSeries) WithStale() seam.Series {
	all := make(mergedSeries, len(s))
	for i, part := range s {
		all[i] = part.WithStale()
	}
	return all
}

// ReadOlder shows an older word only where no copy has a current one.
func (s mergedSeries) ReadOlder(ctx context.Context, from int64, dst []uint64) (seam.Cost, error) {
	older := make([]uint64, len(dst))
	_, err := s.lay(from, older, func(part seam.Series, words []uint64) (seam.Cost, error) {
		return part.ReadOlder(ctx, from, words)
	})
	if err != nil {
		return seam.Cost{}, err
	}
	cost, err := s.Read(ctx, from, dst)
	for _, u := range cost.Unknown {
		copy(dst[u.From-from:u.Past-from], older[u.From-from:])
	}
	return cost, err
}

// lay lays the words of all parts over each other: the largest word of a slot counts, and a
// slot is unknown where damage took it from one part and no other has it.
func (s mergedSeries) lay(from int64, dst []uint64,
	read func(part seam.Series, words []uint64) (seam.Cost, error)) (all seam.Cost, err error) {
	clear(dst)
	words := make([]uint64, len(dst))
	var unknown []seam.Unknown
	for _, part := range s {
		cost, err := read(part, words)
		if err != nil {
			return all, err
		}
		all.Add(cost)
		unknown = append(unknown, cost.Unknown...)
		for i, w := range words {
			dst[i] = max(dst[i], w)
		}
	}
	for _, u := range unknown {
		for slot := u.From; slot < u.Past; slot++ {
			if dst[slot-from] != point.Unset {
				continue
			}
			if n := len(all.Unknown); n > 0 && all.Unknown[n-1].Past == slot &&
				all.Unknown[n-1].Why == u.Why {
				all.Unknown[n-1].Past++
			} else {
				all.Unknown = append(all.Unknown, seam.Unknown{From: slot, Past: slot + 1, Why: u.Why})
			}
		}
	}
	return all, nil
}

// Aggregate takes a step from the part that alone has something in it, and adds up its slots
// where several have.
func (s mergedSeries) Aggregate(ctx context.Context, from, step int64,
	dst []chunk.Header) (all seam.Cost, err error) {
	parts, unknown := make([][]chunk.Header, len(s)), make([][]seam.Unknown, len(s))
	for i, part := range s {
		parts[i] = make([]chunk.Header, len(dst))
		cost, err := part.Aggregate(ctx, from, step, parts[i])
		if err != nil {
			return all, err
		}
		all.Add(cost)
		unknown[i] = cost.Unknown
	}
	for i := range dst {
		begin := from + int64(i)*step
		dst[i] = chunk.Header{}
		var has []int
		for p := range s {
			if parts[p][i].Count > 0 || len(within(unknown[p], begin, begin+step)) > 0 {
				has = append(has, p)
			}
		}
		switch len(has) {
		case 0:
		case 1:
			dst[i] = parts[has[0]][i]
			all.Unknown = append(all.Unknown, within(unknown[has[0]], begin, begin+step)...)
		default:
			cost, err := s.addUp(ctx, begin, begin+step, &dst[i])
			if err != nil {
				return all, err
			}
			all.Unknown = append(all.Unknown, cost.Unknown...)
		}
	}
	return all, nil
}

// addUp is Aggregate of the slots of one step, read one by one.
func (s mergedSeries) addUp(ctx context.Context, from, past int64,
	h *chunk.Header) (all seam.Cost, err error) {
	var tree sumtree.Tree
	for at := max(from, 0); at < past; {
		number := at / chunk.Slots
		words := make([]uint64, min(past, (number+1)*chunk.Slots)-at)
		cost, err := s.Read(ctx, at, words)
		if err != nil {
			return all, err
		}
		all.Add(cost)
		all.Unknown = append(all.Unknown, cost.Unknown...)
		tree.Words(words, int(at%chunk.Slots), number, int(number*chunk.Slots-from))
		at += int64(len(words))
	}
	tree.End(h)
	return all, nil
}

// within returns what lies in the slots [from, past).
func within(unknown []seam.Unknown, from, past int64) (some []seam.Unknown) {
	for _, u := range unknown {
		if u.From, u.Past = max(u.From, from), min(u.Past, past); u.From < u.Past {
			some = append(some, u)
		}
	}
	return some
}

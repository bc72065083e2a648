package reader

import (
	"context"
	"errors"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/series"
)

// Extent returns the slots [first, past), inside [from, from+n), outside of which
// the series certainly has no point: what is asked for beyond them costs nothing
// to answer. It reads no data, but may bring the part of the log that the series
// lies in. Of an unknown series, and where nothing can be, first and past are
// both from. from is not negative.
func (r *Reader) Extent(ctx context.Context, s Series, from,
	n int64) (first, past int64, err error) {
	begin, end := max(from, s.Oldest), min(from+n, buckets.MaxSlot+1)
	if begin >= end {
		return from, from, ctx.Err()
	}
	if err := r.o.Replay(ctx, s.ID); err != nil {
		return from, from, err
	}
	k, err := r.enter()
	if err != nil {
		return from, from, err
	}
	defer k.leave()
	within := version.Chunks{First: begin / chunk.Slots, Past: (end-1)/chunk.Slots + 1}
	found := version.Chunks{First: within.Past, Past: within.First} // nothing yet
	add := func(first, past int64) {
		found.First, found.Past = min(found.First, max(first, within.First)),
			max(found.Past, min(past, within.Past))
	}
	known, err := k.at(ctx, s.ID, func(g *head.Group, col int) (bool, error) {
		if g == nil {
			return true, nil
		}
		first, past, own := g.Extent(col, s.ID, begin, end)
		if first < past {
			add(first/chunk.Slots, chunksOf(past))
		}
		return own, nil
	})
	if err != nil || !known {
		return from, from, errors.Join(err, ctx.Err())
	}
	err = k.version.SegmentsOf(s.Bucket, s.ID, within, func(seg *version.Segment) error {
		for _, r := range seg.Meta.Ranges {
			if r.Bucket == s.Bucket && seg.Overlaps(manifest.Range{
				Bucket: r.Bucket,
				First:  within.First,
				Past:   within.Past,
			}) {
				add(r.First, r.Past)
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return from, from, err
	}
	if found.First >= found.Past {
		return from, from, nil
	}
	return max(begin, found.First*chunk.Slots), min(end, found.Past*chunk.Slots), nil
}

// mostHeld is how many series InHead looks up together.
const mostHeld = 1024

// InHead sets has[i] where the head certainly holds a point of series i in the slots [from, past):
// that takes a tenth of the time of an Extent. For others nothing is said.
func (r *Reader) InHead(ids []metric.SeriesID, from, past int64, has []bool) error {
	k, err := r.enter()
	if err != nil {
		return err
	}
	defer k.leave()
	var l held
	for len(ids) > 0 {
		n := min(len(ids), mostHeld)
		r.o.Index.LookupAll(ids[:n], l.refs[:n], l.order[:n])
		l.inGroups(r.o.Groups, ids[:n], from, past, has[:n])
		ids, has = ids[n:], has[n:]
	}
	return nil
}

// held is series that InHead looks up together.
type held struct {
	refs  [mostHeld]series.Ref
	order [mostHeld]uint16
	list  [mostHeld]head.SeriesPresence
}

// inGroups asks the groups of the series, each once for those of its series that follow each other
// when they are ordered by the lowest bits of their groups' numbers.
func (l *held) inGroups(groups *series.Groups, ids []metric.SeriesID, from, past int64,
	has []bool) {
	const bins = 64
	var ends [bins + 1]uint16
	for i, ref := range l.refs[:len(ids)] {
		if has[i] = false; !ref.Inactive() {
			ends[1+ref.Group()%bins]++
		}
	}
	for i := range bins {
		ends[i+1] += ends[i]
	}
	for i, ref := range l.refs[:len(ids)] {
		if !ref.Inactive() {
			at := &ends[ref.Group()%bins]
			l.order[*at] = uint16(i)
			l.list[*at] = head.SeriesPresence{ID: ids[i], Col: ref.Column()}
			*at++
		}
	}
	order := l.order[:ends[bins-1]]
	for i := 0; i < len(order); {
		begin, group := i, l.refs[order[i]].Group()
		for i < len(order) && l.refs[order[i]].Group() == group {
			i++
		}
		if i < len(order) {
			if next := groups.Get(l.refs[order[i]].Group()); next != nil {
				next.Fetch()
			}
		}
		if g := groups.Get(group); g != nil {
			g.Holds(l.list[begin:i], from, past)
		}
	}
	for i, to := range order {
		has[to] = l.list[i].Has
	}
}

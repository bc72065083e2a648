package reader

import (
	"bytes"
	"context"
	"slices"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/metric"
)

// InSegments sets has[i] where it is false and a file certainly holds a point of series i of a
// bucket in the slots [from, past). It reads index entries, and headers of chunks that the range
// cuts. For others nothing is said, and neither is anything of damage: who reads them meets it.
func (r *Reader) InSegments(ctx context.Context, bucket uint64, ids []metric.SeriesID, from,
	past int64, has []bool) error {
	p := probe{bucket: bucket, from: from, past: past}
	for i := range ids {
		if !has[i] {
			p.wanted = append(p.wanted, wantedSeries{id: ids[i], has: &has[i]})
		}
	}
	if len(p.wanted) == 0 || from >= past {
		return nil
	}
	k, err := r.enter()
	if err != nil {
		return err
	}
	defer k.leave()
	v := r.o.Versions.Pin()
	defer r.o.Versions.Unpin(v)
	// as the indexes are
	slices.SortFunc(p.wanted, func(a, b wantedSeries) int { return bytes.Compare(a.id[:], b.id[:]) })
	p.chunks = version.Chunks{First: from / chunk.Slots, Past: (past-1)/chunk.Slots + 1}
	for i := len(v.Segments) - 1; i >= 0 && len(p.wanted) > 0; i-- { // the newest first
		seg := v.Segments[i]
		if seg.Info.Chunks == 0 || !seg.Overlaps(manifest.Range{
			Bucket: bucket,
			First:  p.chunks.First,
			Past:   p.chunks.Past,
		}) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		p.ask(seg, v.Tombstones(bucket))
		p.wanted = slices.DeleteFunc(p.wanted, func(w wantedSeries) bool { return *w.has })
	}
	return nil
}

// probe asks files of series.
type probe struct {
	bucket     uint64
	from, past int64
	chunks     version.Chunks // of the range
	wanted     []wantedSeries
	cursors    [probes]segment.Cursor
}

type wantedSeries struct {
	id  metric.SeriesID
	has *bool
}

// probes is how many series are looked up in an index before the first entry is read: one after the
// other each would be waited for.
const probes = 16

// ask asks a segment of all series that are wanted.
func (p *probe) ask(seg *version.Segment, deleted version.Tombstones) {
	for list := p.wanted; len(list) > 0; {
		n := min(len(list), probes)
		for i := range list[:n] {
			id := list[i].id
			p.cursors[i] = segment.Cursor{}
			if seg.PurgedThrough() < deleted.DeleteSequence(id) {
				continue // what it has is from before the deletion
			}
			if p.cursors[i].Find(seg.Reader, p.bucket, segment.Hash(id), p.chunks.First,
				p.chunks.Past) != nil {
				p.cursors[i] = segment.Cursor{}
			}
		}
		for i := range list[:n] {
			c := &p.cursors[i]
			found := c.Stand(p.chunks.First) == nil && p.holds(c)
			if _, err := c.Close(); found && err == nil {
				*list[i].has = true
			}
		}
		list = list[n:]
	}
}

// holds reports whether a chunk from where the cursor stands on has a value in the range. One
// that is longer than any of stale markers alone is not read where it lies in the range.
func (p *probe) holds(c *segment.Cursor) bool {
	for {
		number, ok := c.Chunk()
		if !ok {
			return false
		}
		start := number * chunk.Slots
		whole := start >= p.from && start+chunk.Slots <= p.past
		if whole && c.Length() > chunk.MaxStale {
			return true
		}
		data, err := c.Data(number + 1)
		if err != nil {
			return false
		}
		if h, err := chunk.ParseHeader(data); data != nil && err == nil && h.Count > 0 {
			first, last := start+int64(h.FirstOff), start+int64(h.LastOff)
			if whole || p.from <= first && first < p.past || p.from <= last && last < p.past {
				return true
			}
		}
		if c.Advance(number+1) != nil {
			return false
		}
	}
}

package reader

import (
	"context"
	"fmt"
	"slices"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/head"
)

// laying is sources under way of being laid over each other, for the slots of one
// series. Of what damage took it lays point.Unknown, which newer sources overwrite.
// Without damage it costs one look at the bucket's holes.
type laying struct {
	damage  *damage.Notes
	version *version.Version
	bucket  uint64
	id      metric.SeriesID
	from    int64 // of the first slot
	stats   *Stats
	older   bool // show what lies below what was lost
	stale   bool // a chunk with stale markers was laid

	spans []hole.Span // of holes that are known, by position
	laid  []Unknown   // in the order in which it was laid
}

// begin looks up the holes of the series. Those from before it was deleted hide
// nothing.
func (l *laying) begin(n int64) {
	if set := l.version.Holes(l.bucket); set != nil && !l.older {
		below := l.version.Tombstones(l.bucket).DeleteSequence(l.id)
		for _, span := range set.Spans(nil, hole.PrefixOf(l.id), l.from, l.from+n) {
			if span.At.Generation >= below {
				l.spans = append(l.spans, span)
			}
		}
	}
}

// upTo lays the holes that hide what lies below a position.
func (l *laying) upTo(at hole.Position, dst []uint64) {
	for len(l.spans) > 0 && l.spans[0].At.Compare(at) <= 0 {
		l.span(l.spans[0], dst)
		l.spans = l.spans[1:]
	}
}

// rest lays the holes that lie above all segments.
func (l *laying) rest(dst []uint64) {
	for ; len(l.spans) > 0; l.spans = l.spans[1:] {
		l.span(l.spans[0], dst)
	}
}

func (l *laying) span(p hole.Span, dst []uint64) {
	why := p.Cause.String()
	if p.Source != 0 {
		why = fmt.Sprintf("%s, segment %d", why, p.Source)
	}
	l.hide(p.From, p.Past, why, dst)
}

// hide lays slots as unknown.
func (l *laying) hide(from, past int64, why string, dst []uint64) {
	from, past = max(from, l.from), min(past, l.from+int64(len(dst)))
	if from >= past || l.older {
		return
	}
	for i := range dst[from-l.from : past-l.from] {
		dst[from-l.from+int64(i)] = point.Unknown
	}
	l.laid = append(l.laid, Unknown{From: from, Past: past, Why: why})
}

// lost lays as unknown what a segment marked of chunks that cannot be read.
func (l *laying) lost(seg *version.Segment, first, past int64, dst []uint64) {
	p := hole.PrefixOf(l.id)
	for _, m := range seg.Meta.Marks.Clip(hole.Mark{
		Bucket: l.bucket,
		First:  first,
		Past:   past,
		Low:    p,
		High:   p,
	}) {
		l.hide(m.First*chunk.Slots, m.Past*chunk.Slots, "damage in "+seg.Name(), dst)
	}
}

// end takes what is unknown out of dst, whose slots are unset then, and adds it to
// the stats.
func (l *laying) end(dst []uint64) {
	if len(l.laid) == 0 {
		return
	}
	for i := 0; i < len(dst); i++ {
		if dst[i] != point.Unknown {
			continue
		}
		dst[i] = point.Unset
		slot := l.from + int64(i)
		u := Unknown{From: slot, Past: slot + 1, Why: l.why(slot)}
		if l.stats == nil {
			continue
		}
		if all := l.stats.Unknown; len(all) > 0 && all[len(all)-1].Past == slot &&
			all[len(all)-1].Why == u.Why {
			all[len(all)-1].Past++
		} else if len(all) >= maxUnknown {
			l.stats.MoreUnknown++
		} else {
			l.stats.Unknown = append(all, u)
		}
	}
}

// why is what was laid last over a slot.
func (l *laying) why(slot int64) string {
	for i := len(l.laid) - 1; i >= 0; i-- {
		if u := &l.laid[i]; u.From <= slot && slot < u.Past {
			return u.Why
		}
	}
	return ""
}

// segments lays the chunks of all segments over dst, oldest first: of two that hold a
// slot the newer one wins.
func (l *laying) segments(ctx context.Context, dst []uint64) error {
	l.begin(int64(len(dst)))
	err := l.version.SegmentsOf(l.bucket, l.id, slotRange(l.from, dst),
		func(seg *version.Segment) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			l.upTo(seg.Meta.Position(), dst)
			_, err := l.segment(seg, dst)
			return err
		})
	l.rest(dst)
	return err
}

// segment lays what a segment holds of the series over dst, and says whether that
// was anything.
func (l *laying) segment(seg *version.Segment, dst []uint64) (found bool, err error) {
	r := slotRange(l.from, dst)
	err = seg.Reader.SeriesChunks(l.bucket, segment.Hash(l.id), r.First, r.Past,
		func(number int64, data []byte) error {
			found = true
			lo, hi := max(l.from, number*chunk.Slots)-l.from,
				min(l.from+int64(len(dst)), (number+1)*chunk.Slots)-l.from
			if l.stats != nil {
				l.stats.Points += hi - lo
				l.stats.Bytes += int64(len(data))
			}
			l.stale = l.stale || chunk.HasStale(data)
			var before []uint64
			if l.older { // nothing hides what a damaged chunk leaves behind
				before = slices.Clone(dst[lo:hi])
			}
			if err := head.DecodeChunk(dst, l.from, data, number); err != nil {
				l.damage.NoteUndecodable(seg, l.id, number, err)
				copy(dst[lo:hi], before)
				// Some of it may have been decoded: what was there before is gone.
				l.hide(number*chunk.Slots, (number+1)*chunk.Slots, "damage in "+seg.Name(), dst)
			}
			return nil
		}, func(first, past int64) {
			found = true
			l.lost(seg, first, past, dst)
		})
	return found, l.damage.NoteReadError(seg, err)
}

// pairs lays the points of all segments over values and timestamps, oldest first, as
// pairs: a slot whose value comes from one segment never has the timestamp of another,
// and without its own it is unknown. Stale markers have none.
func (l *laying) pairs(ctx context.Context, values, timestamps []uint64) error {
	some := make([]uint64, 2*len(values)) // of one segment
	v, t := some[:len(values)], some[len(values):]
	l.begin(int64(len(values)))
	err := l.version.SegmentsOf(l.bucket, l.id, slotRange(l.from, values),
		func(seg *version.Segment) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			l.upTo(seg.Meta.Position(), values)
			found, err := l.segment(seg, v)
			if err != nil || !found {
				return err
			}
			if err := l.timestamps(seg, t); err != nil {
				return err
			}
			for i, w := range v {
				if w <= point.Stale {
					values[i] = point.Overwrite(w, values[i])
					continue
				}
				values[i], timestamps[i] = w, t[i]
				if slot := l.from + int64(i); w != point.Unknown && t[i] == point.Unset {
					l.hide(slot, slot+1, "damaged timestamps in "+seg.Name(), values)
				}
			}
			clear(some)
			return nil
		})
	l.rest(values)
	return err
}

// timestamps lays the timestamps that a segment holds over dst. Those that are damaged
// are unset.
func (l *laying) timestamps(seg *version.Segment, dst []uint64) error {
	r := slotRange(l.from, dst)
	err := seg.Reader.Chunks(l.bucket, segment.Hash(l.id.Timestamp()), r.First, r.Past,
		func(number int64, data []byte) error {
			if err := head.DecodeChunk(dst, l.from, data, number); err != nil {
				l.damage.NoteUndecodable(seg, l.id.Timestamp(), number, err)
				lo, hi := max(l.from, number*chunk.Slots), min(l.from+int64(len(dst)), (number+1)*chunk.Slots)
				clear(dst[lo-l.from : hi-l.from])
			}
			return nil
		})
	return l.damage.NoteReadError(seg, err)
}

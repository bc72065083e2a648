package replay

import (
	"cmp"
	"maps"
	"slices"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/logrecord"
)

// maxLogHoles bounds the holes that records of the log leave at a start. Where there
// were more, they are those of all series of a bucket.
const maxLogHoles = 1 << 16

// holes returns the holes of records: all series that have had a column of the group
// since before the record. Of those that had one of them earlier all points are in
// segments, and of those that were deleted since then nothing is shown. With wide these
// would be too many, and the holes are those of all series of the buckets.
func (t *target) holes(records []logrecord.LostRecord,
	at hole.Position) (out []hole.Hole, wide bool) {
	for group, list := range logrecord.ByGroup(records) {
		slices.SortFunc(list, func(a, b logrecord.LostRecord) int {
			return cmp.Compare(a.First,
				b.First)
		})
		if g := t.groups.Get(group); g != nil && g.Bucket == list[0].Bucket {
			out = t.groupHoles(out, g, list, at)
		}
		if len(out) > maxLogHoles {
			return wideHoles(records, at), true
		}
	}
	return out, false
}

// groupHoles appends the holes of records of a group, sorted by their first slots.
func (t *target) groupHoles(out []hole.Hole, g *head.Group, list []logrecord.LostRecord,
	at hole.Position) []hole.Hole {
	cols, since := g.Columns(), t.owners.SinceLSNs(g.ID)
	for col := range cols.Len() {
		if !cols.HasName(col) {
			continue
		}
		p := hole.PrefixOf(cols.ID(col))
		h := hole.Hole{Bucket: g.Bucket, Low: p, High: p, At: at, Cause: hole.LogRecord}
		for _, l := range list {
			switch {
			case since.Column[col] > l.LSN:
			case h.Past > 0 && l.First <= h.Past:
				h.Past = max(h.Past, l.Last+1)
			default:
				if h.Past > 0 {
					out = append(out, h)
				}
				h.From, h.Past = l.First, l.Last+1
			}
		}
		if h.Past > 0 {
			out = append(out, h)
		}
		if len(out) > maxLogHoles {
			break
		}
	}
	return out
}

// wideHoles returns holes of all series of the buckets of records: one for each range
// of slots, or one for each bucket where there are too many of them.
func wideHoles(records []logrecord.LostRecord, at hole.Position) []hole.Hole {
	var out []hole.Hole
	whole := make(map[uint64]hole.Hole)
	for _, l := range records {
		h := hole.Hole{
			Bucket: l.Bucket,
			Low:    hole.LowestPrefix,
			High:   hole.HighestPrefix,
			From:   l.First,
			Past:   l.Last + 1,
			At:     at,
			Cause:  hole.LogRecord,
		}
		out = append(out, h)
		if w, ok := whole[l.Bucket]; ok {
			h.From, h.Past = min(w.From, h.From), max(w.Past, h.Past)
		}
		whole[l.Bucket] = h
	}
	if out = hole.Join(out); len(out) <= maxLogHoles {
		return out
	}
	return slices.Collect(maps.Values(whole))
}

package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"dalmatiner/internal/head"
	"dalmatiner/internal/hole"
	"dalmatiner/internal/logrecord"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/wal"
)

const (
	// maxLogHoles bounds the holes that records of the log leave at a start. Where there
	// were more, they are those of all series of a bucket.
	maxLogHoles = 1 << 16

	// maxOlderSlots bounds the slots that are told apart by whether an earlier record of
	// the log holds them. With more, all that a lost record names count as such.
	maxOlderSlots = 1 << 20

	// maxStarts bounds how often a start is made again where each finds other damage in
	// the log than the one before.
	maxStarts = 4
)

// startAgain is the error of a start that has found records of the log to be lost
// and earlier ones of the same slots to be whole. What those hold is in a segment by
// then, below all that follows; the next start leaves it out of the replay.
type startAgain struct {
	starts int
	lost   []logrecord.Lost
	hidden []logrecord.Lost // the slots of them that something older may hold
	damage []string         // what the start found
}

func (e *startAgain) Error() string {
	return fmt.Sprintf("%d records are lost from the log: what was written before them is put aside first", len(e.lost))
}

// hide makes holes of the slots of lost records, for all series that had a column of
// their group. They lie under all that the replay applies: what came before a lost
// record is not in that.
func (r *replayer) hide(lost []logrecord.Lost) error {
	if len(lost) == 0 {
		return nil
	}
	s := r.s
	hidden, again := lost, r.again
	switch {
	case again != nil && slices.Equal(again.lost, lost):
		hidden = again.hidden
	case again == nil || again.starts < maxStarts:
		older, err := r.setAside(lost)
		if err != nil {
			return err
		}
		if hidden = cutRecords(lost, older); older.any {
			names, _ := s.damage.Names()
			next := &startAgain{starts: 1, lost: lost, hidden: hidden, damage: names}
			if again != nil {
				next.starts += again.starts
			}
			return next
		}
	}
	return s.addLogHoles(r.holes(hidden))
}

// addLogHoles makes the holes that lost records of the log leave permanent, as far as
// the disk has room, and shows them to readers.
func (s *Store) addLogHoles(holes []hole.Hole) error {
	if len(holes) == 0 {
		return nil
	}
	if permanent, err := s.manifest.Settle(manifest.Edit{AddHoles: holes, NextSeq: s.dir.NextNumber()}); err != nil {
		return err
	} else if !permanent {
		s.o.Logger.Warn("the holes that lost records of the log leave wait for room on the disk", "holes", len(holes))
	}
	s.versions.Publish(s.showHoles)
	return nil
}

// olderSlots says in which slots something older than a lost record may be.
type olderSlots struct {
	any     bool             // some of the log is older
	highest map[uint64]int64 // by bucket: slots up to it may be in segments
	inLog   map[uint32]map[int64]struct{}
	n       int
}

func (o *olderSlots) add(group uint32, slot int64) {
	if o.any = true; o.n >= maxOlderSlots {
		return
	}
	m := o.inLog[group]
	if m == nil {
		m = make(map[int64]struct{})
		o.inLog[group] = m
	}
	was := len(m)
	m[slot] = struct{}{}
	o.n += len(m) - was
}

// setAside flushes what the log holds of slots that later, lost records name, into
// segments of its own: it can be asked for as older values. The replay is not to go on
// behind it.
func (r *replayer) setAside(lost []logrecord.Lost) (*olderSlots, error) {
	s := r.s
	o := &olderSlots{highest: make(map[uint64]int64), inLog: make(map[uint32]map[int64]struct{})}
	for _, b := range s.buckets.All() {
		o.highest[b.ID] = b.Highest()
	}
	s.flusher.KeepPositions(true)
	r.lost = logrecord.ByGroup(lost)
	a := newApplier(r)
	a.older = o
	records := 0
	err := s.log.Again(wal.LSN(r.from), func(lsn wal.LSN, rec []byte) error {
		if !logrecord.Kind(rec[0]).Points() {
			return nil
		}
		p, err := logrecord.Parse(rec)
		if err != nil || len(r.lost.Behind(p.Group, uint64(lsn))) == 0 || uint64(lsn) < r.state.ReplayPositionOf(p.Group) {
			return nil
		}
		b, g := s.buckets.ID(p.Bucket), s.columns.Groups.Get(p.Group)
		if b == nil || g == nil {
			return nil
		}
		if err := r.awaitRoom(context.Background()); err != nil {
			return err
		}
		n := newRun(uint64(lsn), b, &p)
		a.record(g, &n, p.Runs, p.Cells)
		if records++; records%closeEvery == 0 {
			a.closeBehind(g)
		}
		return nil
	})
	if err != nil {
		return o, err
	}
	if !o.any {
		s.flusher.KeepPositions(false)
		r.lost = nil
		return o, nil
	}
	if _, err := s.flusher.All(context.Background()); err != nil {
		if s.pressure.Failed() != nil {
			return o, err
		}
		s.o.Logger.Error("older values of slots in which records of the log are lost cannot be kept", "err", err)
	}
	return o, nil
}

// cutRecords returns the parts of lost records that something older may be in.
func cutRecords(lost []logrecord.Lost, o *olderSlots) (out []logrecord.Lost) {
	for _, l := range lost {
		settled := min(l.Last, o.highest[l.Bucket])
		if o.n >= maxOlderSlots {
			settled = l.Last
		}
		if past := l; l.First <= settled {
			past.Last = settled
			out = append(out, past)
		}
		var above []int64
		for slot := range o.inLog[l.Group] {
			if settled < slot && l.First <= slot && slot <= l.Last {
				above = append(above, slot)
			}
		}
		slices.Sort(above)
		for _, slot := range above {
			one := l
			one.First, one.Last = slot, slot
			out = append(out, one)
		}
	}
	return out
}

// holes returns the holes of records: all series that have had a column of the group
// since before the record. Of those that had one of them earlier all points are in
// segments, and of those that were deleted since then nothing is shown.
func (r *replayer) holes(records []logrecord.Lost) (out []hole.Hole) {
	at := hole.Position{Generation: r.generation}
	for group, list := range logrecord.ByGroup(records) {
		slices.SortFunc(list, func(a, b logrecord.Lost) int { return cmp.Compare(a.First, b.First) })
		if g := r.s.columns.Groups.Get(group); g != nil && g.Bucket == list[0].Bucket {
			out = r.groupHoles(out, g, list, at)
		}
		if len(out) > maxLogHoles {
			r.s.o.Logger.Error("damage took so many records from the log that their slots are unknown for all series of their buckets", "limit", maxLogHoles)
			return wideHoles(records, at)
		}
	}
	return out
}

// groupHoles appends the holes of records of a group, sorted by their first slots.
func (r *replayer) groupHoles(out []hole.Hole, g *head.Group, list []logrecord.Lost, at hole.Position) []hole.Hole {
	cols, t := g.Columns(), r.owners.Since(g.ID)
	for col := range cols.Len() {
		if !cols.Named(col) {
			continue
		}
		p := hole.PrefixOf(cols.ID(col))
		h := hole.Hole{Bucket: g.Bucket, Low: p, High: p, At: at, Cause: hole.LogRecord}
		for _, l := range list {
			switch {
			case t.Column[col] > l.LSN:
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
func wideHoles(records []logrecord.Lost, at hole.Position) []hole.Hole {
	var out []hole.Hole
	whole := make(map[uint64]hole.Hole)
	for _, l := range records {
		h := hole.Hole{Bucket: l.Bucket, Low: hole.LowestPrefix, High: hole.HighestPrefix, From: l.First, Past: l.Last + 1, At: at, Cause: hole.LogRecord}
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

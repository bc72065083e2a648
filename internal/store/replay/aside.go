package replay

import (
	"context"
	"fmt"
	"slices"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/write/logrecord"
)

const (
	// maxOlderSlots bounds the slots that are told apart by whether an earlier record of
	// the log holds them. With more, all that a lost record names count as such.
	maxOlderSlots = 1 << 20

	// maxStarts bounds how often a start is made again where each finds other damage in
	// the log than the one before.
	maxStarts = 4
)

// Again is the error of a start that has found records of the log to be lost
// and earlier ones of the same slots to be whole. What those hold is in a segment by
// then, below all that follows; the next start leaves it out of the replay.
type Again struct {
	starts int
	lost   []logrecord.LostRecord
	hidden []logrecord.LostRecord // the slots of them that something older may hold
	damage []string               // what the start found
}

func (e *Again) Error() string {
	return fmt.Sprintf("%d records are lost from the log: what was written before them is put aside "+
		"first", len(e.lost))
}

// Damage returns the names of the damage that the start found.
func (e *Again) Damage() []string { return e.damage }

// hide makes holes of the slots of lost records, for all series that had a column of
// their group. They lie under all that the replay applies: what came before a lost
// record is not in that.
func (f *firstReading) hide(lost []logrecord.LostRecord) error {
	if len(lost) == 0 {
		return nil
	}
	hidden, again := lost, f.again
	switch {
	case again != nil && slices.Equal(again.lost, lost):
		hidden = again.hidden
	case again == nil || again.starts < maxStarts:
		older, err := f.setAside(lost)
		if err != nil {
			return err
		}
		if hidden = cutRecords(lost, older); older.any {
			names, _ := f.r.o.Damage.Names()
			next := &Again{starts: 1, lost: lost, hidden: hidden, damage: names}
			if again != nil {
				next.starts += again.starts
			}
			return next
		}
	}
	whole, known := split(hidden)
	holes, wide := f.r.target.holes(known, hole.Position{Generation: f.generation})
	if wide {
		f.r.o.Logger.Error("damage took so many records from the log that their slots are unknown for "+
			"all series of their buckets", "limit", maxLogHoles)
	}
	return f.r.o.AddHoles(append(holes, f.wholeHoles(whole)...))
}

// split returns what stands for unknown records, and the known ones.
func split(lost []logrecord.LostRecord) (whole, known []logrecord.LostRecord) {
	for _, l := range lost {
		if l.Whole {
			whole = append(whole, l)
		} else {
			known = append(known, l)
		}
	}
	return whole, known
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
func (f *firstReading) setAside(lost []logrecord.LostRecord) (*olderSlots, error) {
	r := f.r
	older := &olderSlots{highest: make(map[uint64]int64), inLog: make(map[uint32]map[int64]struct{})}
	for _, b := range r.o.Buckets.All() {
		older.highest[b.ID] = b.Highest()
	}
	r.o.Flusher.KeepPositions(true)
	r.target.lost = logrecord.ByGroup(lost)
	a := newApplier(r.target)
	a.older = older
	if err := f.applyOlder(a); err != nil {
		return older, err
	}
	if !older.any {
		r.o.Flusher.KeepPositions(false)
		r.target.lost = nil
		return older, nil
	}
	if _, err := r.o.Flusher.All(context.Background()); err != nil {
		if r.o.Pressure.Failure() != nil {
			return older, err
		}
		r.o.Logger.Error("older values of slots in which records of the log are lost cannot be kept",
			"err", err)
	}
	return older, nil
}

// applyOlder reads the log once more for what lost records may have written over.
func (f *firstReading) applyOlder(a *applier) error {
	r, records := f.r, 0
	return r.o.Log.ReplayAgain(wal.LSN(r.from), func(lsn wal.LSN, rec []byte) error {
		if !logrecord.HoldsPoints(rec) {
			return nil
		}
		p, err := logrecord.Parse(rec)
		if err != nil || len(r.target.lost.After(p.Group, uint64(lsn))) == 0 ||
			uint64(lsn) < f.state.ReplayPositionOf(p.Group) {
			return nil
		}
		b, g := r.o.Buckets.ID(p.Bucket), r.target.groups.Get(p.Group)
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
}

// cutRecords returns the parts of lost records that something older may be in.
func cutRecords(lost []logrecord.LostRecord, o *olderSlots) (out []logrecord.LostRecord) {
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

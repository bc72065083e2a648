package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/write/logrecord"
)

// maxLooks bounds how often a start reads the log to find out what the records were that
// are gone since its first reading. Of others their group is known, which has the slots
// of all its records.
const maxLooks = 8

// goneRecords are records of the log that were whole at the first reading of a start and
// are no more. One caller at a time deals with them.
type goneRecords struct {
	mu    sync.Mutex
	known []logrecord.LostRecord // by position
	looks int
}

// find returns a record that is gone.
func (r *goneRecords) find(lsn uint64) (logrecord.LostRecord, bool) {
	i, ok := slices.BinarySearchFunc(r.known, lsn, func(l logrecord.LostRecord, lsn uint64) int {
		return cmp.Compare(l.LSN, lsn)
	})
	if !ok {
		return logrecord.LostRecord{}, false
	}
	return r.known[i], true
}

// look reads the log for what is lost of it by now.
func (r *goneRecords) look(log *wal.Log, from uint64) error {
	r.looks++
	list, err := log.LostNow(wal.LSN(from))
	if err != nil {
		return err
	}
	r.known = r.known[:0]
	for _, l := range list {
		if h, ok := logrecord.ParseHead(l.Head); ok {
			r.known = append(r.known, logrecord.LostRecord{LSN: uint64(l.LSN), Head: h})
		}
	}
	return nil
}

// hideGone passes over the next record of a group, which is gone, and those behind it
// that are known to be. What came before it in its slots is flushed into segments, and
// a hole is laid over that; what comes behind it is replayed later. The caller holds no
// lock but the gate.
func (r *replayer) hideGone(l *pendingRecords, lsn uint64) error {
	r.later.mu.Lock()
	defer r.later.mu.Unlock()
	list, err := r.goneNext(l, lsn)
	if err != nil || len(list) == 0 {
		return err
	}
	if _, err := r.o.Flusher.All(context.Background()); err != nil {
		return fmt.Errorf("older values of slots in which records of the log are lost cannot be "+
			"hidden: %w", err)
	}
	if err := r.layGone(l, list); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r.o.Ledger.Count(func() { // a flush takes the account and what is counted again in one moment
		for _, g := range list {
			if l.next != g.LSN {
				return // its bucket was deleted
			}
			r.o.Damage.Report(fmt.Sprintf("log record at %d", g.LSN),
				errors.New("it was whole a moment ago and is no more"))
			if points := l.left.take(g.Copies, g.Points); points > 0 {
				r.o.Lost.Count(l.group, g.Copies, g.LSN, points)
			}
			l.pass()
		}
	})
	return nil
}

// goneNext returns the record at lsn and the pending ones directly behind it that
// are gone, too, nothing where somebody was faster. Of one of which no copy of the head
// is left the slots are those of all records of the group, and the points are not known.
func (r *replayer) goneNext(l *pendingRecords,
	lsn uint64) (list []logrecord.LostRecord, err error) {
	if _, ok := r.later.find(lsn); !ok && r.later.looks < maxLooks {
		if err := r.later.look(r.o.Log, r.from); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next != lsn {
		return nil, nil
	}
	one, ok := r.later.find(lsn)
	if !ok {
		one = logrecord.LostRecord{LSN: lsn, Head: logrecord.Head{
			Bucket: l.b.ID,
			Group:  l.group,
			First:  l.lowest,
			Last:   l.highest,
		}}
	}
	list = append(list, one)
	for at, rest := lsn, l.rest; len(rest) > 0; list = append(list, one) {
		at, rest = nextPosition(at, rest)
		if one, ok = r.later.find(at); !ok {
			break
		}
	}
	return list, nil
}

// layGone lays the holes of records over what is flushed by now.
func (r *replayer) layGone(l *pendingRecords, list []logrecord.LostRecord) error {
	r.o.Flusher.Gate().Lock() // no segment is on its way with a number below
	defer r.o.Flusher.Gate().Unlock()
	g, b := r.target.groups.Get(l.group), l.b
	if g == nil || r.o.Buckets.ID(b.ID) != b || g.Bucket != b.ID {
		return nil
	}
	var cut []logrecord.LostRecord // to what something older may be in
	for _, one := range list {
		if one.Last = min(one.Last, b.Highest()); one.First <= one.Last {
			cut = append(cut, one)
		}
	}
	slices.SortFunc(cut, func(a, b logrecord.LostRecord) int { return cmp.Compare(a.First, b.First) })
	at := hole.Position{Generation: r.o.Dir.NextNumber()}
	holes := r.target.groupHoles(nil, g, cut, at)
	if len(holes) > maxLogHoles {
		holes = wideHoles(cut, at)
	}
	return r.o.AddHoles(holes)
}

// hideGoneBelow deals with the pending records below a position: the second
// reading has not met them.
func (r *replayer) hideGoneBelow(end uint64) error {
	for _, l := range r.pending.groups {
		for l != nil && !l.empty.Load() {
			l.mu.Lock()
			lsn := l.next
			l.mu.Unlock()
			if lsn == 0 || lsn >= end {
				break
			}
			if err := r.hideGone(l, lsn); err != nil {
				return err
			}
		}
	}
	return nil
}

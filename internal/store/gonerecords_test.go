package store

import (
	"math"
	"slices"
	"testing"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/store/replay"
	"dalmatiner/internal/write/logrecord"
)

// The log is damaged between its two readings: the points of the record are lost, named
// and counted, by whom ever it is missed, no older value is in their slots, and all others
// are there. Where the head of the record is lost as well, and nothing behind it repeats
// it, that is said of the slots of its group.
func TestDamageBetweenTheReadings(t *testing.T) {
	t.Parallel()
	for _, wanted := range []bool{true, false} {
		for _, headLost := range []bool{true, false} {
			w := newHalfRead(t, 2)
			var hit replay.Pending
			for _, l := range w.s.replay.Pending() {
				if l.First < l.Last {
					hit = l
				}
			}
			rec, err := w.s.disk.Log.NewReader().Record(wal.LSN(hit.Last))
			if err != nil {
				t.Fatal(err)
			}
			p, err := logrecord.Parse(rec)
			if err != nil {
				t.Fatal(err)
			}
			w.raise(hit.Group)
			first, last, at := p.Slot, p.Last, 12+int64(len(rec))
			if headLost {
				first, last, at = 0, math.MaxInt64, 20
			}
			flipByte(t, w.fs, onlyLogFile(t, w.fs), 64+int64(hit.Last)-1+at)
			if wanted {
				if err := w.s.replay.Group(t.Context(), hit.Group); err != nil {
					t.Fatal(err)
				}
			}
			w.release()
			if lost := w.s.Account().Losses(); len(lost) != 1 ||
				lost[0] != (account.Loss{Cause: replay.LostInReplay, Points: p.Counts.StoredPoints()}) {
				t.Errorf("lost: %+v, want %d points", lost, p.Counts.StoredPoints())
			}
			if _, n := w.s.Damage(); n != 1 {
				t.Errorf("%d damages", n)
			}
			w.checkGone(hit.Group, first, last)
			w.s.Crash()
		}
	}
}

// raise sends a point of another group to the last slot. A flush behind it has slots of the bucket
// up to there, so that something older may be in those of any lost record.
func (w *halfRead) raise(group uint32) {
	w.t.Helper()
	b := w.s.buckets.Get("b")
	for _, series := range w.known {
		ref, ok := w.s.columns.Index.Lookup(b.SeriesID(key(series)))
		if !ok || ref.Inactive() || ref.Group() == group {
			continue
		}
		x := mustSession(w.t, w.s, "b")
		slot, word := epoch+int64(manySlots), point.FromInt(1)
		x.Point(key(series), uint64(slot), word)
		w.want[series][slot-modelFrom] = word
		w.received++
		if err := x.Close(); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	w.t.Fatal("there is no other group")
}

// checkGone wants all slots to be right but for those of a range of a group, which are
// unknown or what was sent last.
func (w *halfRead) checkGone(group uint32, first, last int64) {
	w.t.Helper()
	hidden := 0
	info, err := w.s.BucketByName("b")
	if err != nil {
		w.t.Fatal(err)
	}
	for series := range w.want {
		words, unknown := readUnknown(w.t, w.s, "b", series, modelFrom, modelSlots)
		ref, _ := w.s.columns.Index.Lookup(w.s.buckets.ID(info.ID).SeriesID(key(series)))
		for i, got := range words {
			slot := modelFrom + int64(i)
			if unknown[i] {
				hidden++
			} else if got == w.want[series][i] {
				continue
			}
			if got != 0 || ref.Inactive() || ref.Group() != group || slot < first || slot > last {
				w.t.Fatalf("series %d slot %d is %x, unknown %v; want %x: the record of group %d had slots "+
					"%d to %d",
					series, slot, got, unknown[i], w.want[series][i], group, first, last)
			}
		}
	}
	if hidden == 0 {
		w.t.Error("nothing is unknown")
	}
}

// Damage to records of the log comes between the readings of a start, beside callers that replay
// groups on demand, and beside older damage. The outcome is the same as where the first reading
// finds it; at the next start as well.
func TestRecordsGoneBetweenTheReadings(t *testing.T) {
	t.Parallel()
	seeds, told, silent := uint64(40), 0, 0
	if testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		w := newLogWorld(t, seed+1000)
		w.roundBetween(&told, &silent)
		w.s.Crash()
	}
	if told == 0 || silent > int(seeds)/3 {
		t.Errorf("%d slots were unknown; of %d seeds damage said nothing in %d", told, seeds, silent)
	}
}

func (w *logWorld) roundBetween(told, silent *int) {
	w.t.Helper()
	w.some(w.r.IntN(60))
	if w.r.IntN(3) > 0 {
		w.flush()
	}
	w.some(10 + w.r.IntN(60))
	w.pad()
	w.crash()
	positions := w.records()
	file := w.logFile()
	if w.r.IntN(3) == 0 {
		w.hurt(file, positions)
	}
	hold := make(chan struct{})
	w.o.holdReplay = hold
	w.open()
	if w.said {
		close(hold)
		*silent++
		return
	}
	w.noteAside()
	before := slices.Clone(w.sent)
	w.replaySome()
	w.hurt(file, positions)
	if w.r.IntN(2) == 0 {
		close(hold)
		if err := w.s.replay.All(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		w.some(w.r.IntN(20))
		*told += w.check("replayed")
	} else { // the readers of the check replay the groups
		*told += w.check("brought")
		w.checkOlder("brought")
		close(hold)
		if err := w.s.replay.All(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		w.check("replayed behind")
	}
	// What was in memory only is lost, too, but for what is flushed below a hole.
	inMemory := slices.ContainsFunc(w.sent, func(c logCommit) bool { return c.lost && c.segment })
	if inMemory || w.r.IntN(2) == 0 {
		w.flush()
		w.check("flushed")
	} else {
		for i := range before {
			w.sent[i].segment = before[i].segment
		}
	}
	w.crash()
	w.o.holdReplay = nil
	w.open()
	if w.said {
		*silent++
		return
	}
	w.check("opened again")
	w.checkOlder("opened again")
	w.merge(1)
	w.check("merged")
}

// replaySome replays the groups of some buckets before their turn: what is damaged from
// now on of them is as good as flushed.
func (w *logWorld) replaySome() {
	for bucket := range 2 {
		if _, err := w.s.BucketByName(logBucket(bucket)); err != nil || w.r.IntN(3) > 0 {
			continue
		}
		readAll(w.t, w.s, logBucket(bucket), 0, epoch, 1) // a bucket has one group
		for i := range w.sent {
			c := &w.sent[i]
			c.segment = c.segment || c.bucket == bucket && !c.lost
		}
	}
}

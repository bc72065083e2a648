package replay

import (
	"fmt"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/logrecord"
	"dalmatiner/internal/write/series"
)

// unknown returns what stands for the records that damage took and of which nothing is known. For
// each bucket, and each group of it, these are the slots that they may have overwritten. The
// account names the loss; the number of its points is not known.
func (f *firstReading) unknown(report *wal.Report) (whole []logrecord.LostRecord, err error) {
	if report.Unknown == 0 {
		return nil, nil
	}
	r := f.r
	place, past := max(uint64(report.UnknownFrom), r.from), max(uint64(report.UnknownPast), r.from)
	if past <= uint64(report.Begin) {
		return nil, nil // only a state that is older than its files asks for what the log let go
	}
	r.unknown = true
	r.o.Ledger.Count(func() { r.o.Lost.CountOnce(false, 0) })
	if whole = f.again.wholeBefore(past); whole != nil {
		return whole, nil // what it has put aside has raised what is flushed
	}
	highest, err := f.highestBefore(place)
	if err != nil {
		return nil, err
	}
	for _, b := range r.o.Buckets.All() {
		flushed := int64(columns.NoSlot)
		for _, h := range f.state.Highest {
			if h.Bucket == b.ID {
				flushed = h.Slot
			}
		}
		lowest := max(flushed+1, b.Reach.NoteBound(highest[b.ID]))
		l := logrecord.LostRecord{
			LSN:   past,
			Whole: true,
			Head:  logrecord.Head{Bucket: b.ID, Group: series.None.Group()},
		}
		l.First, l.Last = f.state.LowestOf(b.ID, place, lowest), b.Reach.Highest()
		if l.First > l.Last {
			continue
		}
		whole = append(whole, l)
		for _, g := range b.Groups() {
			l.Group = g.ID
			whole = append(whole, l)
		}
	}
	return whole, nil
}

// wholeBefore returns what a start has found out about unknown records in front of an LSN.
func (e *Again) wholeBefore(lsn uint64) (whole []logrecord.LostRecord) {
	if e == nil {
		return nil
	}
	for _, l := range e.lost {
		if l.Whole && l.LSN == lsn {
			whole = append(whole, l)
		}
	}
	return whole
}

// highestBefore returns the highest slot of each bucket in front of a place in the log. What
// follows there without a note lies above what is flushed, and hardly below that (columns.Reach).
// Where a flush came behind the place, that has noted all slots that it has left in the log.
func (f *firstReading) highestBefore(place uint64) (map[uint64]int64, error) {
	highest := make(map[uint64]int64)
	if place < f.state.AccountLSN {
		return highest, nil
	}
	err := f.r.o.Log.ReplayAgain(wal.LSN(f.r.from), func(lsn wal.LSN, rec []byte) error {
		if uint64(lsn) >= place || !logrecord.HoldsPoints(rec) {
			return nil
		}
		if p, err := logrecord.Parse(rec); err == nil {
			highest[p.Bucket] = max(highest[p.Bucket], p.Last)
		}
		return nil
	})
	return highest, err
}

// wholeHoles names the slots that unknown records may have overwritten, and returns their holes.
func (f *firstReading) wholeHoles(whole []logrecord.LostRecord) []hole.Hole {
	holes := wideHoles(whole, hole.Position{Generation: f.generation})
	for _, h := range holes {
		if b := f.r.o.Buckets.ID(h.Bucket); b != nil {
			f.r.o.Damage.Report(fmt.Sprintf("log of bucket %s", b.Name), fmt.Errorf(
				"records of which nothing is known may have overwritten slots %d to %d, where no older value "+
					"is shown as current", h.From, h.Past-1))
		}
	}
	return holes
}

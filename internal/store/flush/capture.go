package flush

import (
	"slices"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/incarnation"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
)

// unit is a flush under way.
type unit struct {
	rarely    bool // see Flusher.Rarely
	captures  Captures
	base      wal.LSN // records below were in the head before the first capture
	behind    bool    // the log has records that are not in the head
	positions Positions
	accounts  manifest.Accounts
	changes   columns.Changes
	buckets   []buckets.Info
	highest   []manifest.Highest   // slots that are flushed with it
	open      map[uint64]int64     // by bucket, the lowest slot that is not
	late      []manifest.LateNote  // what is to be noted of slots that are not
	adopted   []Chunk              // of other nodes, by bucket
	files     manifest.FileChanges // of what is kept beside points

	forget uint64 // deletions up to this clock, 0 for none,
	early  int64  // of so many series before their time
}

// capture takes what is to be written: first the groups' sealed blocks and late
// points, then, in one moment, the account, the new series and the end of the log, or
// of what is counted of it. The record of a series defined after that moment lies
// above that end, and stays in the log.
func (f *Flusher) capture(adopted []Chunk) *unit {
	base, came, behind := f.Reach.begin()
	u := &unit{
		base:    base,
		behind:  behind,
		rarely:  f.Rarely(),
		adopted: adopted,
		open:    make(map[uint64]int64),
	}
	for i := range adopted {
		u.raise(adopted[i].Bucket, adopted[i].last())
	}
	for i, g := range f.o.Columns.Groups.All() {
		if u.rarely && i%trimGroups == 0 {
			f.o.Arenas.Trim() // the sealed blocks of the next ones take as much as these give back
		}
		c := g.BeginFlush()
		u.settle(f.o.Buckets.ID(g.Bucket), g, &c)
		if c.ReplayPosition != 0 {
			u.remains(g.Bucket, c.Open)
		}
		if !c.Empty() || c.ReplayPosition != 0 {
			u.captures.Add(g, &c)
		}
	}
	if u.positions = f.positions; !f.keepPositions.Load() {
		u.positions = f.positions.Next(&u.captures, u.base)
	}
	f.positions = u.positions
	if u.rarely {
		f.o.Arenas.Trim()
	}
	f.o.Step(StepCaptured)
	unflushed := &f.o.Columns.Unflushed
	unflushed.DropGone()
	f.o.Ledger.Snapshot(func() {
		end := f.o.AccountEnd()
		u.accounts.AccountLSN = uint64(end)
		f.Reach.leave(u, came)
		u.accounts.Account, u.accounts.Copies = snapshot(&u.positions, f.o.Ownerless, f.o.Lost)
		u.changes = unflushed.Take(f.needed.Load())
		more := version.CountDeleted(u.changes.Tombstones)
		u.forget, u.early = f.o.Manifest.ForgettableClock(incarnation.ExpiredUpTo(f.o.Now()),
			f.o.MaxDeletions()-more)
		u.buckets = f.o.Buckets.Infos()
		f.takeSides(end)
	})
	return u
}

// abort puts back what capture took.
func (f *Flusher) abort(u *unit) {
	for _, g := range u.captures.Groups {
		g.AbortFlush()
	}
	f.o.Columns.Unflushed.PutBack(u.changes)
	f.putBackSides()
}

// settle completes what is settled for a capture of a group of the bucket, and notes
// what will be once the flush is committed. A deleted bucket has none.
func (u *unit) settle(b *columns.Bucket, g *head.Group, c *head.Capture) {
	if b == nil {
		return
	}
	if c.Unsettled {
		c.Settled = max(c.Settled, b.Highest())
		g.Settle(c.Settled)
	}
	if c.Highest == columns.NoSlot {
		return
	}
	u.raise(b.ID, c.Highest)
}

// raise notes that a slot of a bucket is flushed.
func (u *unit) raise(bucket uint64, slot int64) {
	i := slices.IndexFunc(u.highest, func(h manifest.Highest) bool { return h.Bucket == bucket })
	if i < 0 {
		i = len(u.highest)
		u.highest = append(u.highest, manifest.Highest{Bucket: bucket, Slot: slot})
	}
	u.highest[i].Slot = max(u.highest[i].Slot, slot)
}

package flush

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/metric"
)

// Adopted is a chunk that came from another node. Data is its points, all of them admitted, as this
// node encodes them, and belongs to the flusher from then on. Nothing that is here has a point of
// the series in the chunk.
type Adopted struct {
	Bucket      uint64
	ID          metric.SeriesID // whose definition is in the log
	Incarnation uint64          // of the series
	Number      int64
	Points      int
	Data        []byte
}

// last is the highest slot that the chunk may hold.
func (c *Chunk) last() int64 { return (c.Number+1)*chunk.Slots - 1 }

// Adopt flushes what is sealed, and with it chunks of other nodes: so all that a segment says of
// itself holds for one with such chunks, too. They are on disk when it returns; on an error none
// is. Those of buckets and series that were deleted are left out. The account of copies counts
// them; a crash between the two leaves that out. The error is version.ErrClosed when the gate is
// closed.
func (f *Flusher) Adopt(ctx context.Context, list []Adopted) error {
	f.gate.Lock() // deletions of series wait
	defer f.gate.Unlock()
	if f.gate.IsClosed() {
		return version.ErrClosed
	}
	if _, err := f.flush(ctx, f.adoptable(list)); err != nil {
		return err
	}
	return f.o.Log.Sync()
}

// adoptable returns those chunks whose series live, in the order of a segment. Older points of
// theirs may be written anew from now on, so their groups count the slots as flushed: what is then
// flushed is marked.
func (f *Flusher) adoptable(list []Adopted) []Chunk {
	chunks := make([]Chunk, 0, len(list))
	for i := range list {
		a := &list[i]
		b := f.o.Buckets.ID(a.Bucket)
		if b == nil || b.Incarnations.Get(b.ValueID(a.ID)) != a.Incarnation {
			continue
		}
		ref, ok := f.o.Columns.Index.Lookup(a.ID)
		if !ok {
			continue
		}
		c := Chunk{
			ID:     a.ID,
			Bucket: a.Bucket,
			Points: int16(a.Points),
			Marked: true,
			Number: a.Number,
			Data:   a.Data,
		}
		if !ref.Inactive() {
			if g := f.o.Columns.Groups.Get(ref.Group()); g != nil {
				g.Settle(c.last())
			}
		}
		chunks = append(chunks, c)
	}
	slices.SortFunc(chunks, func(a, b Chunk) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), bytes.Compare(a.ID[:], b.ID[:]),
			cmp.Compare(a.Number, b.Number))
	})
	return chunks
}

// eachAdopted calls fn with the adopted chunks of each bucket.
func (u *unit) eachAdopted(fn func(bucket uint64, of []Chunk)) {
	for list := u.adopted; len(list) > 0; {
		n := 1
		for n < len(list) && list[n].Bucket == list[0].Bucket {
			n++
		}
		fn(list[0].Bucket, list[:n])
		list = list[n:]
	}
}

// countAdopted enters the points of adopted chunks into the account of copies, and into the log,
// unless that has no room.
func (f *Flusher) countAdopted(u *unit) {
	u.eachAdopted(func(bucket uint64, of []Chunk) {
		var c account.Counts
		for i := range of {
			c.Accepted += uint64(of[i].Points)
		}
		if err := f.o.Ledger.CountCopies(bucket, &c); err != nil {
			f.o.Logger.Warn("points of chunks of other nodes are missing in the account of copies", "points",
				c.Accepted, "err", err)
		}
	})
}

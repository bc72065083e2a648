package logrecord

import (
	"encoding/binary"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/series"
)

// AppendWrite appends the record of a write to a group, of points that arrived in a minute
// since 1970 and of which c says what became of them. headed is how many bytes of the record
// are its head, for wal.Log.AppendHeaded: ParseHead reads it if the rest is damaged.
func AppendWrite(dst []byte, bucket uint64, group uint32, w *head.Write, minute int64,
	c *account.Counts) (rec []byte, headed int) {
	at := len(dst)
	kind := Row
	switch {
	case len(w.Runs) > 0:
		kind = Runs
	case w.Down:
		kind = Column
	}
	dst = appendHead(dst, kind, bucket)
	first, last := w.Slots()
	dst = binary.AppendUvarint(dst, uint64(group))
	dst = binary.AppendUvarint(dst, c.StoredPoints())
	dst = binary.AppendUvarint(dst, uint64(first))
	dst = binary.AppendUvarint(dst, uint64(last-first))
	dst = binary.AppendVarint(dst, minute)
	headed = len(dst) - at
	if kind == Runs {
		dst = appendRuns(dst, w.Runs)
	} else {
		dst = append(dst, byte(w.Column))
	}
	dst = account.AppendCounts(dst, c)
	return appendCells(dst, w.Words), headed
}

// Head is the head of a record with points.
type Head struct {
	Bucket      uint64 // id
	Group       uint32
	Points      uint64 // how many of its points were stored
	First, Last int64  // the lowest and the highest slot of its points
	Minute      int64  // of arrival, since 1970
	Copies      bool   // its points count in the ledger of copies
}

// dataHead reads the head of a record with points behind its bucket.
func (f *reader) dataHead(bucket uint64) (h Head) {
	h.Bucket = bucket
	h.Group = uint32(f.UpTo(series.MaxGroups))
	h.Points = f.UpTo(2 * MaxPoints)
	h.First = int64(f.UpTo(buckets.MaxSlot))
	h.Last = h.First + int64(f.UpTo(uint64(buckets.MaxSlot-h.First)+2*MaxPoints))
	h.Minute = f.Varint()
	return h
}

// ParseHead reads the head of a record with points. ok is false if src is none.
func ParseHead(src []byte) (h Head, ok bool) {
	f := read(src)
	kind, ofCopies := f.kind()
	if !kind.Points() {
		return h, false
	}
	h = f.dataHead(f.U64())
	h.Copies = ofCopies
	return h, f.IsDone()
}

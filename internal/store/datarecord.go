package store

import (
	"encoding/binary"

	"dalmatiner/internal/account"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/head"
	"dalmatiner/internal/series"
)

// appendDataRecord appends the record of a write to a group, and returns how many
// bytes of it are the head: what is known of the record where the rest is lost.
func appendDataRecord(dst []byte, bucket uint64, group uint32, w *head.Write, minute int64, c *account.Counts) (rec []byte, headed int) {
	at := len(dst)
	kind := byte(recRow)
	switch {
	case len(w.Runs) > 0:
		kind = recRuns
	case w.Down:
		kind = recColumn
	}
	dst = appendHead(dst, kind, bucket)
	first, last := slotsOf(w)
	dst = binary.AppendUvarint(dst, uint64(group))
	dst = binary.AppendUvarint(dst, c.Stored())
	dst = binary.AppendUvarint(dst, uint64(first))
	dst = binary.AppendUvarint(dst, uint64(last-first))
	dst = binary.AppendVarint(dst, minute)
	headed = len(dst) - at
	if kind == recRuns {
		dst = appendRuns(dst, w.Runs)
	} else {
		dst = append(dst, byte(w.Column))
	}
	dst = account.AppendCounts(dst, c)
	return appendCells(dst, w.Words), headed
}

// slotsOf returns the first and the last slot of a write.
func slotsOf(w *head.Write) (first, last int64) {
	switch {
	case len(w.Runs) > 0:
		first, last = w.Runs[0].Slot, w.Runs[0].Slot
		for i := range w.Runs {
			first, last = min(first, w.Runs[i].Slot), max(last, w.Runs[i].Slot)
		}
		return first, last
	case !w.Down:
		return w.Slot, w.Slot
	case w.Pairs:
		return w.Slot, w.Slot + int64(len(w.Words)/2) - 1
	}
	return w.Slot, w.Slot + int64(len(w.Words)) - 1
}

// dataHead is the head of a record with points.
type dataHead struct {
	bucket      uint64
	group       uint32
	points      uint64 // stored
	first, last int64  // slots
	minute      int64  // of arrival
}

// dataHead reads the head of a record with points behind its bucket.
func (f *fields) dataHead(bucket uint64) (h dataHead) {
	h.bucket = bucket
	h.group = uint32(f.uvarint(series.MaxGroups))
	h.points = f.uvarint(2 * maxRun)
	h.first = int64(f.uvarint(buckets.MaxSlot))
	h.last = h.first + int64(f.uvarint(uint64(buckets.MaxSlot-h.first)+2*maxRun))
	h.minute = f.varint()
	return h
}

// parseDataHead reads the head of a record with points; ok is false where it is none.
func parseDataHead(src []byte) (h dataHead, ok bool) {
	f := fields{src: src}
	if !holdsPoints(f.byte()) {
		return h, false
	}
	h = f.dataHead(f.uint64())
	return h, !f.bad && len(f.src) == 0
}

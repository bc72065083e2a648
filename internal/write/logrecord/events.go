package logrecord

import (
	"encoding/binary"
	"math"

	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
)

// maxEvents is the most events of one record.
const maxEvents = 4096

// AppendEvents makes the record of events of a bucket that arrived in a minute since 1970, in two
// parts: head is to begin an empty slice or nil, and wal.Log.AppendHeaded takes both. c says what
// became of those that arrived, and stored are those of them that were stored, at most 4,096: none
// for a record of refusals.
func AppendEvents(dst []byte, bucket uint64, minute int64, c *account.Counts,
	stored []eventfile.Event) (head, body []byte) {
	h := EventsHead{Bucket: bucket, Events: uint64(len(stored)), Minute: minute}
	for i := range stored {
		if t := stored[i].Time; i == 0 {
			h.First, h.Last = t, t
		} else {
			h.First, h.Last = min(h.First, t), max(h.Last, t)
		}
	}
	dst = appendHead(dst, Events, bucket)
	dst = binary.AppendUvarint(dst, h.Events)
	dst = binary.AppendUvarint(dst, uint64(h.First))
	dst = binary.AppendUvarint(dst, uint64(h.Last-h.First))
	head = binary.AppendVarint(dst, minute)
	body = account.AppendCounts(nil, c)
	body = eventfile.AppendKeys(body, stored)
	return head, eventfile.AppendBodies(body, stored)
}

// AppendEventsRefused appends the record of events of a bucket that were refused in a minute since
// 1970.
func AppendEventsRefused(dst []byte, bucket uint64, minute int64, c *account.Counts) []byte {
	head, body := AppendEvents(dst, bucket, minute, c, nil)
	return append(head, body...)
}

// EventsHead is the head of a record of events.
type EventsHead struct {
	Bucket      uint64 // id
	Events      uint64 // that were stored
	First, Last int64  // the lowest and the highest of their times, in nanoseconds
	Minute      int64  // of arrival, since 1970
}

func (f *reader) eventsHead(bucket uint64) (h EventsHead) {
	h.Bucket = bucket
	h.Events = f.UpTo(maxEvents)
	h.First = int64(f.UpTo(math.MaxInt64))
	h.Last = h.First + int64(f.UpTo(uint64(math.MaxInt64-h.First)))
	h.Minute = f.Varint()
	return h
}

// ParseEventsHead reads the head of a record of events. ok is false if src is none.
func ParseEventsHead(src []byte) (h EventsHead, ok bool) {
	f := read(src)
	if Kind(f.U8()) != Events {
		return h, false
	}
	h = f.eventsHead(f.U64())
	return h, f.IsDone()
}

// events reads a record of events behind its bucket.
func (f *reader) events(r *Record) {
	h := f.eventsHead(r.Bucket)
	r.Minute = h.Minute
	r.Counts = account.ReadCounts(&f.Reader)
	list, rest, err := eventfile.ParseKeys(nil, f.Rest(), maxEvents)
	f.Check(err == nil && uint64(len(list)) == h.Events && eventfile.ParseBodies(list, rest) == nil)
	r.Events = list
}

// LostEvents returns what the heads of records of events say that a replay reports as lost, at or
// above a position.
func LostEvents(report *wal.Report, from uint64) (out []EventsHead) {
	for _, l := range report.Lost {
		if h, ok := ParseEventsHead(l.Head); ok && uint64(l.LSN) >= from {
			out = append(out, h)
		}
	}
	return out
}

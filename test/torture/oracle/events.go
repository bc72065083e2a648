package oracle

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
)

// Events is what was sent to a bucket of events. Time and text of an event follow from its number
// and the salt of the book.
type Events struct {
	sync.Mutex
	Bucket string
	First  int64 // ns, of the earliest event
	salt   uint64
	fates  []fate // of event i+1
	acked  uint64
}

type fate uint8

const (
	inDoubt fate = iota
	stored       // acknowledged, or seen after a start
	absent       // not acknowledged, and not there after a start
)

// Gap is a range of time in which an answer says that events are missing. Count is 0 where nobody
// knows it.
type Gap struct{ Start, End, Count int64 }

const (
	maxBody  = 1_047_552
	longText = maxBody - 100 // what the term has beside the text
	lateness = 3600e9
)

// Next notes a new event and returns its time and its text. Its number is 0, and nothing is noted,
// when the text has more than room bytes.
func (e *Events) Next(room int) (n uint32, at int64, text string) {
	e.Lock()
	defer e.Unlock()
	n = uint32(len(e.fates)) + 1
	if text = e.text(n); len(text) > room {
		return 0, 0, ""
	}
	e.fates = append(e.fates, inDoubt)
	return n, e.time(n), text
}

// time is a millisecond behind that of the event before, or an hour earlier: such events are late.
func (e *Events) time(n uint32) int64 {
	at := e.First + lateness + int64(n)*1e6
	if n%16 == 0 {
		at -= lateness
	}
	return at
}

// text has some hundred bytes, now and then 10 KB, and of one event in 1,024 as many as an event
// may have.
func (e *Events) text(n uint32) string {
	size := int(mix(e.salt^uint64(n)) % 400)
	switch {
	case n%1024 == 512:
		size = longText
	case n%64 == 32:
		size = 10_000 + size
	}
	out := make([]byte, 0, size+16)
	for x := e.salt ^ uint64(n)<<32; len(out) < size; {
		x = mix(x)
		out = hex.AppendEncode(out, binary.BigEndian.AppendUint64(nil, x))
	}
	return string(out[:size])
}

// Term is the external term of an event: a map of two texts.
func Term(n, text string) []byte {
	b := []byte{0x83, 't', 0, 0, 0, 2}
	for _, s := range []string{"n", n, "text", text} {
		b = append(binary.BigEndian.AppendUint32(append(b, 'm'), uint32(len(s))), s...)
	}
	return b
}

// number is what the term says, 0 when it does not say any.
func number(term []byte) uint32 {
	const at = 6 + 5 + 1
	if len(term) < at+5 || len(term) < at+5+int(binary.BigEndian.Uint32(term[at+1:])) {
		return 0
	}
	// 0 when it is none
	n, _ := strconv.ParseUint(string(term[at+5:][:binary.BigEndian.Uint32(term[at+1:])]), 10, 32)
	return uint32(n)
}

// Sent is the number of the newest event.
func (e *Events) Sent() uint32 {
	e.Lock()
	defer e.Unlock()
	return uint32(len(e.fates))
}

// Confirmed counts the events that were acknowledged.
func (e *Events) Confirmed() uint64 {
	e.Lock()
	defer e.Unlock()
	return e.acked
}

// Ack notes that the events from first to last are durable.
func (e *Events) Ack(first, last uint32) {
	e.Lock()
	defer e.Unlock()
	for n := first; n <= last; n++ {
		e.fates[n-1] = stored
	}
	e.acked += uint64(last + 1 - first)
}

// Read is an event as it was read.
type Read struct {
	Time int64
	Term []byte
}

// Judge compares an answer that has all events of the bucket. Lost says of which events damage may
// have taken the file; nil without damage. It returns how many were lost so.
func (e *Events) Judge(read []Read, gaps []Gap, settle bool, lost func(n uint32) bool,
	found func(Finding)) int64 {
	e.Lock()
	defer e.Unlock()
	report := func(c Class, format string, args ...any) {
		found(Finding{Class: c, Text: "events of " + e.Bucket + ": " + fmt.Sprintf(format, args...)})
	}
	seen := make([]bool, len(e.fates))
	for i, r := range read {
		n := number(r.Term)
		switch {
		case n == 0 || int(n) > len(e.fates) || e.time(n) != r.Time ||
			!bytes.Equal(r.Term, Term(strconv.Itoa(int(n)), e.text(n))):
			report(Foreign, "event %d of time %d with %d bytes, which nobody sent: %.60q", n, r.Time,
				len(r.Term), r.Term)
			continue
		case seen[n-1]:
			report(Answer, "event %d is there twice", n)
		case e.fates[n-1] == absent:
			report(Foreign, "event %d was not there after a start, and is now", n)
		}
		if i > 0 && r.Time < read[i-1].Time {
			report(Answer, "event %d is out of order", n)
		}
		seen[n-1] = true
	}
	missing, told, unknown := int64(0), int64(0), false
	for _, g := range gaps {
		told, unknown = told+g.Count, unknown || g.Count == 0
		if lost == nil {
			report(Missing, "a gap of %d events from %d to %d, and nothing was damaged", g.Count, g.Start,
				g.End)
		}
	}
	for i, f := range e.fates {
		n := uint32(i + 1)
		switch {
		case f == stored && !seen[i] && lost != nil && lost(n) && within(gaps, e.time(n)):
			missing++
		case f == stored && !seen[i]:
			report(Missing, "event %d of time %d is missing", n, e.time(n))
		case settle && f == inDoubt && seen[i]:
			e.fates[i] = stored
		case settle && f == inDoubt:
			e.fates[i] = absent
		}
	}
	if missing > told && !unknown {
		report(Missing, "%d events are missing, and the answer names %d", missing, told)
	}
	return missing
}

func within(gaps []Gap, at int64) bool {
	for _, g := range gaps {
		if at >= g.Start && at < g.End {
			return true
		}
	}
	return false
}

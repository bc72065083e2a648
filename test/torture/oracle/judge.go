package oracle

import (
	"encoding/binary"
	"fmt"
)

// Class says what is wrong with an answer.
type Class uint8

const (
	Missing   Class = iota // acknowledged, and not there
	Stale                  // a value that was overwritten
	Foreign                // a value that nobody sent to this slot
	Risen                  // a value from before a deletion
	Timestamp              // the timestamp of another write, or of none
	Alone                  // a value that is there without its timestamp only
	Expired                // a value older than the lifetime
	Name                   // listed and must not be, or the other way round
	Answer                 // HTTP contradicts what the wire gives
	Other                  // what a whole node may not do
	classes
)

var classNames = [classes]string{"missing", "overwritten value", "value nobody sent",
	"deleted value", "wrong timestamp", "value without timestamp", "expired value", "name", "answer",
	"node"}

func (c Class) String() string { return classNames[c] }

// Finding is one fault.
type Finding struct {
	Class  Class
	Bucket string
	Series string
	Slot   int64
	Text   string
}

func (f Finding) String() string {
	if f.Series == "" {
		return fmt.Sprintf("%v: %s", f.Class, f.Text)
	}
	return fmt.Sprintf("%v: bucket %s series %s slot %d: %s", f.Class, f.Bucket, f.Series, f.Slot,
		f.Text)
}

// Clock bounds what a lifetime hides: slots below Hidden must be unset, those
// from Shown on must be there, between them both is right.
type Clock struct{ Hidden, Shown int64 }

// Verdict is the sum of what Judge compared.
type Verdict struct {
	Slots  int64 // compared, unset ones among them
	Points int64 // slots that must have a value
	Set    int64 // slots that had the right one
}

// Judge compares the answer of a GET for the whole range of the bucket. found is
// called for each fault. With settle, what is read decides what was in doubt: the
// node was started again, and what it shows is what it has from now on. The
// caller holds the lane, and nobody writes.
func (s *Series) Judge(points []byte, clock Clock, settle bool, found func(Finding)) Verdict {
	width := 8
	if s.Bucket.HPTS {
		width = 16
	}
	if s.Deleting && settle {
		s.decide(points, width)
	}
	var v Verdict
	if s.Deleting {
		return v // until the next start both is right
	}
	for i := range int32(s.Bucket.Slots) {
		p := points[int(i)*width:][:width]
		v.Slots++
		w := binary.BigEndian.Uint64(p)
		allowed := s.allowed(i)
		slot := s.Bucket.First + int64(i)
		hidden, either := slot < clock.Hidden, slot < clock.Shown
		report := func(c Class, text string) {
			found(Finding{c, s.Bucket.Name, printable(s.Key), slot, text})
		}
		if len(allowed) > 0 && allowed[0] != 0 && !either {
			v.Points++
		}
		if w == 0 {
			if len(allowed) > 0 && allowed[0] != 0 && !either {
				report(Missing, fmt.Sprintf("unset, want %x", word(s.Kind, s.ID, allowed[len(allowed)-1])))
			}
			if settle && len(allowed) > 1 && allowed[0] == 0 {
				s.settle(i, 0)
			}
			continue
		}
		if hidden {
			report(Expired, fmt.Sprintf("%x", w))
			continue
		}
		n, c, text := s.match(i, slot, allowed, w, p)
		if text != "" {
			report(c, text)
			continue
		}
		v.Set++
		if settle && len(allowed) > 1 {
			s.settle(i, n)
		}
	}
	return v
}

// JudgeAlone compares the values of a bucket with timestamps, read without them, with
// the pairs that Judge has seen. A value that only one of the reads shows is a finding,
// and so is one that Judge would not allow. The caller holds the lane.
func (s *Series) JudgeAlone(pairs, values []byte, found func(Finding)) {
	if s.Deleting {
		return
	}
	for i := range int32(s.Bucket.Slots) {
		pair, w := binary.BigEndian.Uint64(pairs[int(i)*16:]), binary.BigEndian.Uint64(values[int(i)*8:])
		slot := s.Bucket.First + int64(i)
		report := func(c Class, text string) {
			found(Finding{c, s.Bucket.Name, printable(s.Key), slot, text})
		}
		switch {
		case w == pair:
		case pair != 0:
			report(Answer, fmt.Sprintf("%x with its timestamp, %x without", pair, w))
		default:
			report(Alone, fmt.Sprintf("%x, unset with timestamps", w))
			if _, c, text := s.match(i, slot, s.allowed(i), w, nil); text != "" {
				report(c, text)
			}
		}
	}
}

// match finds the write that a point came from, the newest one among equals. p is the
// value with its timestamp, or nil where it is judged alone.
func (s *Series) match(i int32, slot int64, allowed []uint32, w uint64, p []byte) (uint32, Class,
	string) {
	same := func(n uint32) bool {
		return n != 0 && word(s.Kind, s.ID, n) == w &&
			(!s.Bucket.HPTS || p == nil || binary.BigEndian.Uint64(p[8:]) == timestamp(s.Bucket, slot, s.ID,
				n))
	}
	timestamps := false
	for j := len(allowed) - 1; j >= 0; j-- {
		n := allowed[j]
		if n == 0 || word(s.Kind, s.ID, n) != w {
			continue
		}
		if same(n) {
			return n, 0, ""
		}
		timestamps = true
	}
	want := "unset"
	if len(allowed) > 0 && allowed[len(allowed)-1] != 0 {
		want = fmt.Sprintf("%x", word(s.Kind, s.ID, allowed[len(allowed)-1]))
	}
	for _, n := range s.writes(i) {
		if same(n) {
			return 0, Stale, fmt.Sprintf("write %d, %x, want %s", n, w, want)
		}
	}
	for _, g := range s.deletions {
		old := &Series{Bucket: s.Bucket, cells: g.cells, over: g.over}
		for _, n := range old.writes(i) {
			if same(n) {
				return 0, Risen, fmt.Sprintf("write %d, %x, want %s", n, w, want)
			}
		}
	}
	if timestamps {
		return 0, Timestamp, fmt.Sprintf("value %x with timestamp %d", w, binary.BigEndian.Uint64(p[8:]))
	}
	return 0, Foreign, fmt.Sprintf("%x, want %s", w, want)
}

// settle puts the write that was seen last, so that the ones after it are as old
// as those before.
func (s *Series) settle(i int32, n uint32) {
	w := append([]uint32(nil), s.writes(i)...)
	keep := w[:0]
	for _, m := range w {
		if m != n || n == 0 && m == 0 {
			keep = append(keep, m)
		}
	}
	if s.over == nil {
		s.over = make(map[int32][]uint32)
	}
	s.over[i] = append(keep, n)
	s.cells[i] = n
}

// decide finds out whether a deletion that was cut off happened. Where no point had
// to be there, nothing tells: its name may be listed or not.
func (s *Series) decide(points []byte, width int) {
	s.Deleting = false
	for i := 0; i < len(points); i += width {
		if binary.BigEndian.Uint64(points[i:]) != 0 {
			return // it did not: everything must be there
		}
	}
	if must, _ := s.mustBeListed(Clock{}); must {
		s.end()
	}
}

// Settled ends all doubt of a bucket after every series was judged with settle.
// The caller holds the lane.
func (b *Bucket) Settled() {
	b.Lane.acked, b.Lane.maybe = b.Lane.sent, nil
}

// printable is the key for messages: parts with a dot between them.
func printable(key []byte) string {
	out := ""
	for len(key) > 0 && len(key) > int(key[0]) {
		if out != "" {
			out += "."
		}
		past := 1 + int(key[0])
		out, key = out+string(key[1:past]), key[past:]
	}
	return out
}

// Text is the key as a query takes it: quoted parts with a dot between them. The
// parts hold nothing that needs an escape.
func Text(key []byte) string {
	out := ""
	for len(key) > 0 && len(key) > int(key[0]) {
		if out != "" {
			out += "."
		}
		past := 1 + int(key[0])
		out, key = out+"'"+string(key[1:past])+"'", key[past:]
	}
	return out
}

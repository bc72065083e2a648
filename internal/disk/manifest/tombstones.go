package manifest

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Fields of edits about the incarnations of series.
const (
	tagRemembered    = 40 // as tagTombstones
	tagRememberAfter = 41 // v clock
	tagIncarnation   = 42 // v clock
	tagRecall        = 43
)

// tombstoneSize is the least that a series takes in an edit.
const tombstoneSize = 16 + 1 + 1

// Tombstones returns how many deleted series the file has. A series that was
// deleted twice counts twice.
func (m *Manifest) Tombstones() (n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.state.Tombstones {
		n += int64(len(m.state.Tombstones[i].Series))
	}
	return n
}

// RememberedSeries returns how many series the file has of deletions that nothing holds
// anything of any more.
func (m *Manifest) RememberedSeries() (n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.state.Remembered {
		n += int64(len(m.state.Remembered[i].Series))
	}
	return n
}

// ForgettableClock returns up to which clock remembered deletions are to be forgotten, 0 for
// none: those up to expired, and the oldest of the others, of which early are the
// series, where the file would have more than limit of them with its tombstones.
func (m *Manifest) ForgettableClock(expired uint64, limit int64) (clock uint64, early int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.state.Tombstones {
		limit -= int64(len(m.state.Tombstones[i].Series))
	}
	list := slices.Clone(m.state.Remembered)
	slices.SortFunc(list, func(a, b Tombstones) int {
		return cmp.Compare(b.Incarnation, a.Incarnation)
	})
	for i := range list {
		if limit -= int64(len(list[i].Series)); limit < 0 || list[i].Incarnation <= expired {
			clock = list[i].Incarnation
			break
		}
	}
	for i := range list {
		if list[i].Incarnation <= clock && list[i].Incarnation > expired {
			early += int64(len(list[i].Series))
		}
	}
	return clock, early
}

func appendTombstones(dst []byte, e *Edit) []byte {
	dst = appendFlag(dst, tagRecall, e.Recall)
	dst = appendNumber(dst, tagRememberAfter, e.RememberAfter)
	dst = appendNumber(dst, tagIncarnation, e.Incarnation)
	for _, b := range e.DropTombstones {
		dst = appendID(append(dst, tagDropTombstones), b.Bucket)
		dst = binary.AppendUvarint(dst, b.DeleteSequence)
		dst = binary.AppendUvarint(dst, b.LSN)
	}
	for i := range e.Tombstones {
		t := &e.Tombstones[i]
		dst = t.append(append(dst, tagTombstones))
	}
	for i := range e.Remembered {
		t := &e.Remembered[i]
		dst = t.append(append(dst, tagRemembered))
	}
	return dst
}

func (t *Tombstones) append(dst []byte) []byte {
	dst = appendID(dst, t.Bucket)
	dst = binary.AppendUvarint(dst, t.DeleteSequence)
	dst = binary.AppendUvarint(dst, t.LSN)
	dst = binary.AppendUvarint(dst, t.Incarnation)
	dst = binary.AppendUvarint(dst, uint64(len(t.Series)))
	for j := range t.Series {
		d := &t.Series[j]
		dst = append(dst, d.Hash[:]...)
		dst = append(binary.AppendUvarint(dst, uint64(d.Group)), d.Column)
	}
	return dst
}

// deletion reads a field about deletions of series.
func (r *reader) deletion(tag byte, e *Edit) {
	switch tag {
	case tagTombstones:
		e.Tombstones = append(e.Tombstones, r.tombstones())
	case tagRemembered:
		e.Remembered = append(e.Remembered, r.tombstones())
	case tagDropTombstones:
		e.DropTombstones = append(e.DropTombstones, DroppedTombstones{
			Bucket:         r.U64(),
			DeleteSequence: r.Uvarint(),
			LSN:            r.Uvarint(),
		})
	case tagRememberAfter:
		e.RememberAfter = r.Uvarint()
	case tagIncarnation:
		e.Incarnation = r.Uvarint()
	case tagRecall:
		e.Recall = true
	}
}

func (r *reader) tombstones() Tombstones {
	t := Tombstones{
		Bucket:         r.U64(),
		DeleteSequence: r.Uvarint(),
		LSN:            r.Uvarint(),
		Incarnation:    r.Uvarint(),
	}
	n := r.UpTo(uint64(len(r.Src)) / tombstoneSize)
	t.Series = make([]DeletedSeries, 0, n)
	for ; n > 0 && !r.Bad; n-- {
		var d DeletedSeries
		copy(d.Hash[:], r.Take(len(d.Hash)))
		d.Group = r.group()
		d.Column = r.U8()
		t.Series = append(t.Series, d)
	}
	return t
}

// purgedThrough reads the purged-through number of a segment: of the last one that the edit adds,
// or of one that is there. For an added one it is the same as a number in its own field.
func (r *reader) purgedThrough(e *Edit) {
	c := PurgedSegment{Seq: r.Uvarint(), Purged: r.Uvarint()}
	if n := len(e.AddSegments); n > 0 && e.AddSegments[n-1].Seq == c.Seq {
		e.AddSegments[n-1].Purged = max(e.AddSegments[n-1].Purged, c.Purged)
		return
	}
	e.Purged = append(e.Purged, c)
}

package manifest

import "encoding/binary"

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

func appendTombstones(dst []byte, e *Edit) []byte {
	for _, b := range e.Bury {
		dst = appendID(append(dst, tagBury), b.Bucket)
		dst = binary.AppendUvarint(dst, b.Below)
		dst = binary.AppendUvarint(dst, b.LSN)
	}
	for i := range e.Tombstones {
		t := &e.Tombstones[i]
		dst = appendID(append(dst, tagTombstones), t.Bucket)
		dst = binary.AppendUvarint(dst, t.Below)
		dst = binary.AppendUvarint(dst, t.LSN)
		dst = binary.AppendUvarint(dst, uint64(len(t.Series)))
		for j := range t.Series {
			d := &t.Series[j]
			dst = append(dst, d.Hash[:]...)
			dst = append(binary.AppendUvarint(dst, uint64(d.Group)), d.Column)
		}
	}
	return dst
}

func (r *reader) tombstones() Tombstones {
	t := Tombstones{Bucket: r.id(), Below: r.uvarint(), LSN: r.uvarint()}
	n := r.uvarint()
	if n > uint64(len(r.src))/tombstoneSize {
		r.fail("tombstones", n)
		return t
	}
	t.Series = make([]DeletedSeries, 0, n)
	for ; n > 0 && r.err == nil; n-- {
		var d DeletedSeries
		if len(r.src) < len(d.Hash) {
			r.fail("hash", n)
			break
		}
		r.src = r.src[copy(d.Hash[:], r.src):]
		d.Group = r.uint32()
		d.Column = r.byte()
		t.Series = append(t.Series, d)
	}
	return t
}

// clean reads the clean number of a segment: of the one that the edit adds last,
// which is the same as a number in its own field, or of one that is there.
func (r *reader) clean(e *Edit) {
	c := CleanSegment{Seq: r.uvarint(), Clean: r.uvarint()}
	if n := len(e.AddSegments); n > 0 && e.AddSegments[n-1].Seq == c.Seq {
		e.AddSegments[n-1].Clean = max(e.AddSegments[n-1].Clean, c.Clean)
		return
	}
	e.Clean = append(e.Clean, c)
}

package logrecord

import (
	"encoding/binary"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write/head"
)

// appendRuns appends where the runs of a write lie: most of them close to the one
// before in time, and many of them single points.
func appendRuns(dst []byte, runs []head.Run) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(runs)))
	slot := int64(0)
	for i := range runs {
		r := &runs[i]
		d := r.Slot - slot
		slot = r.Slot
		step := uint64(d<<1^d>>63) << 1
		dst = append(dst, byte(r.Column))
		if r.Points == 1 {
			dst = binary.AppendUvarint(dst, step)
		} else {
			dst = append(binary.AppendUvarint(dst, step|1), byte(r.Points-1))
		}
	}
	return dst
}

// run reads a run behind one in the given slot.
func (f *reader) run(slot int64) (r head.Run) {
	r.Column, r.Points = int(f.U8()), 1
	step := f.Uvarint()
	if step&1 != 0 {
		r.Points += int(f.U8())
	}
	step >>= 1
	r.Slot = slot + int64(step>>1^-(step&1))
	return r
}

// runs reads the runs of a record, and returns how many points they have and the
// column behind the last one.
func (f *reader) runs() (points, past int) {
	n, slot := f.UpTo(MaxPoints), int64(0)
	f.Check(n > 0)
	for ; n > 0 && !f.Bad; n-- {
		r := f.run(slot)
		slot = r.Slot
		points += r.Points
		past = max(past, r.Column+r.Points)
		f.Check(slot >= 0 && slot <= buckets.MaxSlot)
	}
	f.Check(past <= head.Width)
	return points, past
}

// ParseRuns appends the runs of Record.Runs to dst, in the order of their cells. Other bytes
// may give wrong runs.
func ParseRuns(dst []head.Run, src []byte) []head.Run {
	f := read(src)
	slot := int64(0)
	for range f.UpTo(MaxPoints) {
		r := f.run(slot)
		slot = r.Slot
		dst = append(dst, r)
	}
	return dst
}

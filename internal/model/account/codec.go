package account

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"dalmatiner/internal/codec/fields"
)

var errCodec = errors.New("account: malformed encoding")

// AppendCounts appends the encoding of c to dst, all of it as unsigned varints: the five
// counts other than Refused, then how many reasons have points, then the reason and the
// points of each.
func AppendCounts(dst []byte, c *Counts) []byte {
	dst = binary.AppendUvarint(dst, c.Accepted)
	dst = binary.AppendUvarint(dst, c.Duplicate)
	dst = binary.AppendUvarint(dst, c.Conflicting)
	dst = binary.AppendUvarint(dst, c.Late)
	dst = binary.AppendUvarint(dst, c.Unset)
	used := 0
	for _, n := range c.Refused {
		if n > 0 {
			used++
		}
	}
	dst = binary.AppendUvarint(dst, uint64(used))
	for r, n := range c.Refused {
		if n > 0 {
			dst = binary.AppendUvarint(dst, uint64(r))
			dst = binary.AppendUvarint(dst, n)
		}
	}
	return dst
}

// ReadCounts reads what AppendCounts wrote. Points of a reason that this version does not know
// are counted under the last one that it knows.
func ReadCounts(r *fields.Reader) (c Counts) {
	for _, p := range []*uint64{&c.Accepted, &c.Duplicate, &c.Conflicting, &c.Late, &c.Unset} {
		*p = r.Uvarint()
	}
	for range r.UpTo(uint64(len(r.Src))) {
		reason := r.Uvarint()
		c.Refused[min(reason, NumReasons-1)] += r.Uvarint()
	}
	return c
}

// Snapshot returns the whole account in the form that Restore reads. It leaves the points of
// the given losses out: those that the caller of Restore will find and count again.
func (a *Account) Snapshot(without ...Loss) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	lost := maps.Clone(a.lost)
	for _, l := range without {
		if lost[l.Cause] > l.Points {
			lost[l.Cause] -= l.Points
		} else if l.Points > 0 { // a cause without points stays: their number is not known
			delete(lost, l.Cause)
		}
	}
	dst := binary.AppendUvarint(nil, uint64(len(a.buckets)))
	for _, id := range slices.Sorted(maps.Keys(a.buckets)) {
		l := a.buckets[id]
		dst = binary.LittleEndian.AppendUint64(dst, id)
		dst = AppendCounts(dst, &l.total)
		dst = binary.AppendUvarint(dst, uint64(len(l.minutes)))
		for i := range l.minutes {
			dst = binary.AppendVarint(dst, l.minutes[i].Minute)
			dst = AppendCounts(dst, &l.minutes[i].Counts)
		}
	}
	dst = appendNamed(dst, lost)
	dst = appendNamed(dst, a.recovered)
	return appendNamed(dst, a.requests)
}

func appendNamed(dst []byte, m map[string]uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(m)))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		dst = binary.AppendUvarint(dst, uint64(len(name)))
		dst = append(dst, name...)
		dst = binary.AppendUvarint(dst, m[name])
	}
	return dst
}

// Restore replaces the whole account by a snapshot, of which it keeps nothing. If the
// snapshot is malformed, it returns an error and changes nothing.
func (a *Account) Restore(snapshot []byte) error {
	r := fields.Reader{Src: snapshot}
	buckets, rows := make(map[uint64]*sums), 0
	for n := r.UpTo(uint64(len(r.Src))); n > 0 && !r.Bad; n-- {
		id := r.U64()
		l := readSums(&r)
		buckets[id] = l
		rows += len(l.minutes)
	}
	lost, recovered, requests := readNamed(&r), readNamed(&r), readNamed(&r)
	if !r.IsDone() {
		return errCodec
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rows = rows
	a.buckets, a.lost, a.recovered, a.requests = buckets, lost, recovered, requests
	return nil
}

func readSums(r *fields.Reader) *sums {
	l := &sums{total: ReadCounts(r)}
	for n := r.UpTo(RetainedMinutes); n > 0 && !r.Bad; n-- {
		minute := r.Varint()
		l.minutes = append(l.minutes, Row{Minute: minute, Counts: ReadCounts(r)})
	}
	return l
}

func readNamed(r *fields.Reader) map[string]uint64 {
	m := make(map[string]uint64)
	for n := r.UpTo(uint64(len(r.Src))); n > 0 && !r.Bad; n-- {
		name := string(r.Bytes(len(r.Src)))
		m[name] = r.Uvarint()
	}
	return m
}

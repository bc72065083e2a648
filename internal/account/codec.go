package account

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
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

// ParseCounts reads what AppendCounts wrote from the start of src. rest is the part of src
// behind it. Points of a reason that this version does not know are counted under the last
// one that it knows. The error says that src is malformed.
func ParseCounts(src []byte) (c Counts, rest []byte, err error) {
	for _, p := range []*uint64{&c.Accepted, &c.Duplicate, &c.Conflicting, &c.Late, &c.Unset} {
		if *p, src, err = uvarint(src); err != nil {
			return c, nil, err
		}
	}
	used, src, err := uvarint(src)
	if err != nil || used > uint64(len(src)) {
		return c, nil, errCodec
	}
	for range used {
		var r, n uint64
		if r, src, err = uvarint(src); err != nil {
			return c, nil, err
		}
		if n, src, err = uvarint(src); err != nil {
			return c, nil, err
		}
		c.Refused[min(r, NumReasons-1)] += n
	}
	return c, src, nil
}

func uvarint(src []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(src)
	if n <= 0 {
		return 0, nil, errCodec
	}
	return v, src[n:], nil
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
		} else {
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
	n, src, err := uvarint(snapshot)
	if err != nil || n > uint64(len(src)) {
		return errCodec
	}
	buckets, rows := make(map[uint64]*sums), 0
	for range n {
		if len(src) < 8 {
			return errCodec
		}
		id := binary.LittleEndian.Uint64(src)
		l := &sums{}
		if src, err = l.restore(src[8:]); err != nil {
			return err
		}
		buckets[id] = l
		rows += len(l.minutes)
	}
	lost, src, err := parseNamed(src)
	if err != nil {
		return err
	}
	recovered, src, err := parseNamed(src)
	if err != nil {
		return err
	}
	requests, src, err := parseNamed(src)
	if err != nil || len(src) != 0 {
		return errCodec
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rows = rows
	a.buckets, a.lost, a.recovered, a.requests = buckets, lost, recovered, requests
	return nil
}

func (l *sums) restore(src []byte) (rest []byte, err error) {
	if l.total, src, err = ParseCounts(src); err != nil {
		return nil, err
	}
	n, src, err := uvarint(src)
	if err != nil || n > RetainedMinutes {
		return nil, errCodec
	}
	for range n {
		minute, k := binary.Varint(src)
		if k <= 0 {
			return nil, errCodec
		}
		row := Row{Minute: minute}
		if row.Counts, src, err = ParseCounts(src[k:]); err != nil {
			return nil, err
		}
		l.minutes = append(l.minutes, row)
	}
	return src, nil
}

func parseNamed(src []byte) (map[string]uint64, []byte, error) {
	n, src, err := uvarint(src)
	if err != nil || n > uint64(len(src)) {
		return nil, nil, errCodec
	}
	m := make(map[string]uint64)
	for range n {
		var size, v uint64
		if size, src, err = uvarint(src); err != nil || size > uint64(len(src)) {
			return nil, nil, errCodec
		}
		name := string(src[:size])
		if v, src, err = uvarint(src[size:]); err != nil {
			return nil, nil, err
		}
		m[name] = v
	}
	return m, src, nil
}

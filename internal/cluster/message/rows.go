package message

import (
	"encoding/binary"
	"slices"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/model/metric"
)

// A run is rows of one series and incarnation in consecutive slots. Its first byte says what is
// not as the run before leads to expect.
const (
	nextSeries  = 0 // the series whose number is one above that of the run before
	sameSeries  = 1
	otherSeries = 2 // its number follows
	seriesBits  = 3

	otherIncarnation = 1 << 2 // it follows
	otherSlot        = 1 << 3 // the difference of the first slot to that of the run before
	otherCount       = 1 << 4 // how many slots
	withTimes        = 1 << 5 // timestamps follow behind the words
	runBits          = 1<<6 - 1
)

// run is what the next run is compared with.
type run struct {
	number      uint32
	incarnation uint64
	slot        uint64 // the first one
	count       uint64
}

// firstRun stands before the first run, so that number 0 is the next one.
var firstRun = run{number: ^uint32(0), count: 1}

// zigzag has small numbers for small differences of both signs.
func zigzag(d uint64) uint64 { return d<<1 ^ uint64(int64(d)>>63) }
func zagzig(z uint64) uint64 { return z>>1 ^ -(z & 1) }

// runOf returns how many rows are in the first run, and whether any has a timestamp.
func runOf(rows []replication.Row) (n int, timed bool) {
	first := &rows[0]
	times := first.Value.Time
	slot := first.Slot
	for n = 1; n < len(rows); n++ {
		r := &rows[n]
		slot++
		if r.Slot != slot || slot == 0 || r.Series != first.Series || r.Incarnation != first.Incarnation {
			break
		}
		times |= r.Value.Time
	}
	return n, times != 0
}

// rows appends rows in the order in which they are.
func (w *writer) rows(rows []replication.Row) {
	w.int(len(rows))
	w.dst = slices.Grow(w.dst, 9*len(rows))
	before := firstRun
	for len(rows) > 0 && w.err == nil {
		n, timed := runOf(rows)
		number, err := w.table.number(rows[0].Series)
		if err != nil {
			w.fail(err)
			return
		}
		next := run{
			number:      number,
			incarnation: rows[0].Incarnation,
			slot:        rows[0].Slot,
			count:       uint64(n),
		}
		w.head(next, before, timed)
		dst := w.dst
		for i := range rows[:n] {
			dst = binary.BigEndian.AppendUint64(dst, rows[i].Value.Word)
		}
		if timed {
			for i := range rows[:n] {
				dst = binary.BigEndian.AppendUint64(dst, rows[i].Value.Time)
			}
		}
		w.dst = dst
		before, rows = next, rows[n:]
	}
}

// head appends what a run is.
func (w *writer) head(next, before run, timed bool) {
	at := len(w.dst)
	w.u8(0)
	head := byte(nextSeries)
	switch next.number {
	case before.number + 1:
	case before.number:
		head = sameSeries
	default:
		head = otherSeries
		w.uvarint(uint64(next.number))
	}
	if next.incarnation != before.incarnation {
		head |= otherIncarnation
		w.uvarint(next.incarnation)
	}
	if next.slot != before.slot {
		head |= otherSlot
		w.uvarint(zigzag(next.slot - before.slot))
	}
	if next.count != before.count {
		head |= otherCount
		w.uvarint(next.count)
	}
	if timed {
		head |= withTimes
	}
	w.dst[at] = head
}

// rows reads what writer.rows appends.
func (r *reader) rows() []replication.Row {
	n := r.count(8)
	if n == 0 {
		return nil
	}
	rows := make([]replication.Row, n)
	before := firstRun
	for left := rows; len(left) > 0; {
		next, timed := before, false
		if len(r.Src) > 0 && r.Src[0] == nextSeries && before.count <= uint64(len(left)) {
			r.Src = r.Src[1:] // as most are: all is as expected
			next.number++
		} else {
			next, timed = r.head(before, uint64(len(left)))
		}
		series := r.resolve(next.number)
		words := r.Take(8 * int(next.count))
		var times []byte
		if timed {
			times = r.Take(8 * int(next.count))
		}
		if r.Bad {
			return nil
		}
		fill(left, series, next, words)
		if timed {
			r.Check(fillTimes(left, times))
		}
		before, left = next, left[next.count:]
	}
	return rows
}

func fill(rows []replication.Row, series metric.SeriesID, of run, words []byte) {
	rows = rows[:len(words)/8]
	for i := range rows {
		r := &rows[i]
		r.Series, r.Incarnation, r.Slot = series, of.incarnation, of.slot+uint64(i)
		r.Value.Word = binary.BigEndian.Uint64(words[8*i:])
	}
}

// fillTimes reports whether there is a timestamp: else there should be none.
func fillTimes(rows []replication.Row, times []byte) bool {
	any := uint64(0)
	rows = rows[:len(times)/8]
	for i := range rows {
		rows[i].Value.Time = binary.BigEndian.Uint64(times[8*i:])
		any |= rows[i].Value.Time
	}
	return any != 0
}

// head reads what a run of at most so many rows is.
func (r *reader) head(before run, most uint64) (next run, timed bool) {
	head := r.U8()
	next = before
	switch head & seriesBits {
	case nextSeries:
		next.number++
	case sameSeries:
	case otherSeries:
		next.number = uint32(r.upTo(MaxNames - 1))
		r.Check(next.number != before.number && next.number != before.number+1)
	default:
		r.Check(false)
	}
	if head&otherIncarnation != 0 {
		next.incarnation = r.uvarint()
		r.Check(next.incarnation != before.incarnation)
	}
	if head&otherSlot != 0 {
		d := zagzig(r.uvarint())
		next.slot += d
		r.Check(d != 0)
	}
	if head&otherCount != 0 {
		next.count = r.uvarint()
		r.Check(next.count != before.count)
	}
	joined := next.number == before.number && next.incarnation == before.incarnation &&
		next.slot == before.slot+before.count && next.slot != 0
	r.Check(head <= runBits && next.count > 0 && next.count <= most &&
		next.slot+(next.count-1) >= next.slot && !joined)
	return next, head&withTimes != 0
}

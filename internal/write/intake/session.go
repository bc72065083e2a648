package intake

import (
	"math"

	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/logrecord"
)

// Session takes the points of one sender for one bucket. It remembers where it
// is in the sender's order: the next point is first compared with the column
// that followed last time, and looked up by hash only when that fails. A
// session is not for concurrent use.
type Session struct {
	position columns.Position // the predicted next column
	other    columns.Position // what followed before the sender jumped elsewhere

	misses      int                // points since the last one that was predicted
	unpredicted *unpredictedPoints // points that were not, and are looked up together
	sets        *sets              // where it comes from
	buffer      buffer             // points that were

	storer     storer   // stores both
	entry      []uint64 // with several points
	timestamps bool     // Points takes pairs

	report  func(write.Token, account.Counts) // nil where nobody asks
	counts  account.Counts                    // to be reported
	commits uint64
}

// Totals is what a session received and refused since its start, in points.
type Totals struct{ Received, Refused uint64 }

// Point takes one point: raw is the big-endian word of its 8 bytes as they
// came. key is only read during the call.
// In a bucket with timestamps it gets the begin of its slot as one.
func (x *Session) Point(key []byte, slot uint64, raw uint64) {
	if x.storer.width != 1 {
		x.TimestampedPoint(key, slot, raw, x.storer.b.SlotBegin(slot))
		return
	}
	w, ok := x.storer.normalize(raw)
	if !ok {
		x.storer.refuse(account.BadType, 1)
		return
	}
	if !x.position.Columns.Is(x.position.Column, key) && !x.seek(key, slot, w) {
		return
	}
	if !x.buffer.goesOn(slot, x.position.Column) {
		x.begin(slot)
	}
	x.buffer.add(w)
	x.position.Column++
}

// Batch takes points from the start of buf, which are bytes of a batch, while
// they are those of the columns that follow, and returns their bytes. Point takes
// any other.
func (x *Session) Batch(slot uint64, buf []byte) int {
	return x.take(slot, buf, kernel.MatchBatch)
}

// Entries is Batch for entries of one point each in one slot.
func (x *Session) Entries(slot uint64, buf []byte) int {
	return x.take(slot, buf, kernel.MatchEntries)
}

type match func(words []uint64, names []byte, expected []kernel.Span, buf []byte) (points, size int)

func (x *Session) take(slot uint64, buf []byte, match match) int {
	names, expected := x.position.Columns.NamesFrom(x.position.Column)
	if len(expected) == 0 || x.storer.width != 1 {
		return 0
	}
	goesOn := x.buffer.goesOn(slot, x.position.Column)
	if !goesOn {
		x.makeRoom()
	}
	n, size := match(x.buffer.room(), names, expected, buf)
	if !goesOn && n > 0 {
		x.buffer.begin(slot, x.position.Column)
	}
	x.buffer.runLen += n
	x.position.Column += n
	return size
}

// Append takes points of any series.
func (x *Session) Append(points []write.Point) {
	for i := range points {
		if p := &points[i]; x.storer.width == 1 || p.Time == 0 {
			x.Point(p.Key, p.Slot, p.Word)
		} else {
			x.TimestampedPoint(p.Key, p.Slot, p.Word, p.Time)
		}
	}
}

// Points takes consecutive points of one metric, 8 bytes each, or TimestampedSize in a
// session whose points carry timestamps.
func (x *Session) Points(key []byte, slot uint64, data []byte) {
	if x.timestamps {
		x.TimestampedPoints(key, slot, data)
		return
	}
	if x.storer.width != 1 {
		x.pairs(key, points{slot, uint64(len(data) / point.Size), func(i uint64) (raw, timestamp uint64) {
			return point.Get(data[i*point.Size:]), x.storer.b.SlotBegin(slot + i)
		}})
		return
	}
	n := uint64(len(data) / point.Size)
	if !x.position.Columns.Is(x.position.Column, key) {
		all := data
		if !x.find(key, points{slot, n, func(i uint64) (raw, timestamp uint64) {
			return point.Get(all[i*point.Size:]), 0
		}}) {
			return
		}
	}
	x.flush()
	if slot > math.MaxUint64-n {
		x.storer.refuse(account.Future, n) // its last slots would begin at 0 again
		data = nil
	}
	x.settle(slot, n)
	for len(data) >= point.Size {
		x.entry = x.entry[:0]
		first := slot
		for len(data) >= point.Size && len(x.entry) < logrecord.MaxPoints {
			w, ok := x.storer.normalize(point.Get(data))
			data = data[point.Size:]
			slot++
			if !ok {
				x.storer.refuse(account.BadType, 1)
				break
			}
			x.entry = append(x.entry, w)
		}
		x.storer.storeColumn(x.position, first, x.entry)
	}
	x.position.Column++
}

// begin begins a run with the predicted column in a slot.
func (x *Session) begin(slot uint64) {
	x.makeRoom()
	x.buffer.begin(slot, x.position.Column)
}

// makeRoom ends the run that goes on, and stores what was buffered unless there is
// room for another one behind it.
func (x *Session) makeRoom() {
	x.buffer.endRun()
	if x.buffer.isFull() || x.storer.width == 2 {
		x.flush()
	}
}

// flush stores all that was buffered. It comes after the unpredicted points of the
// same slots, which came before, and after those that would be late if they waited any
// longer. What is predicted stays: the name of the next point was compared with it.
func (x *Session) flush() {
	b := &x.buffer
	b.endRun()
	if len(b.runs) == 0 || x.mingle() {
		return
	}
	if x.unpredicted != nil && b.hi >= x.unpredicted.due {
		x.settleAll()
	}
	x.settle(b.lo, b.hi-b.lo+1)
	if runs, words := b.take(&x.storer); len(runs) > 0 {
		x.storer.storeRuns(x.position.Group, x.position.Columns, runs, words)
	}
}

// Commit hands everything received so far to the log and returns what to wait for.
// The refusals since the last call are logged with it.
func (x *Session) Commit() (write.Token, error) {
	x.flush()
	x.settleAll()
	last, err := x.storer.commit()
	if err != nil {
		return write.Token{}, err
	}
	x.commits++
	t := write.Token{Position: uint64(last), Commit: x.commits}
	if x.report != nil {
		x.report(t, x.counts)
		x.counts = account.Counts{}
	}
	return t, nil
}

// HasPending reports whether points or refusals wait for Commit.
func (x *Session) HasPending() bool {
	return x.buffer.hasPoints() || x.unpredicted != nil || x.storer.refused.RefusedTotal() > 0
}

// Totals returns what the session received and refused since its start.
func (x *Session) Totals() Totals { return x.storer.totals }

// Close commits what is pending and ends the session.
func (x *Session) Close() error {
	_, err := x.Commit()
	x.storer.filler.Close()
	return err
}

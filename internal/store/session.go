package store

import (
	"context"
	"math"

	"dalmatiner/internal/account"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/columns"
	"dalmatiner/internal/coordinator"
	"dalmatiner/internal/head"
	"dalmatiner/internal/kernel"
	"dalmatiner/internal/ledger"
	"dalmatiner/internal/logrecord"
	"dalmatiner/internal/point"
)

// Session takes the points of one sender for one bucket. It remembers where it
// is in the sender's order: the next point is first compared with the column
// that followed last time, and looked up by hash only when that fails. A
// session is not for concurrent use.
type Session struct {
	s *Store
	b *columns.Bucket

	position columns.Position // the predicted next column
	other    columns.Position // what followed before the sender jumped elsewhere

	misses      int          // points since the last one that was predicted
	unpredicted *unpredicted // points that were not, and are looked up together

	width  int            // columns of a metric: 1, or 2 with timestamps
	filler columns.Filler // gives columns to new series

	buffered

	neverWait  bool // points that would have to wait are refused
	timestamps bool // Points takes pairs

	writer  ledger.Writer
	report  func(coordinator.Token, account.Counts) // nil where nobody asks
	counts  account.Counts                          // to be reported
	commits uint64

	entry   []uint64 // with several points
	refused account.Counts
	totals  Totals
	err     error
}

// Totals is what a session received and refused since its start, in points.
type Totals struct{ Received, Refused uint64 }

var noColumns head.Columns

// NewSession starts a session for the bucket. Close must be called.
func (s *Store) NewSession(info buckets.Info) (*Session, error) {
	b, err := s.buckets.Of(info)
	if err != nil {
		return nil, err
	}
	return &Session{s: s, b: b, position: columns.Position{Columns: &noColumns}, width: b.Width(), filler: s.columns.NewFiller(b), writer: s.ledger.NewWriter(nil)}, nil
}

// use says how the session is used, before its first point.
func (x *Session) use(how coordinator.Options) {
	x.timestamps, x.neverWait, x.report = how.Timestamps, how.NeverWait, how.Report
	if x.report != nil {
		x.writer = x.s.ledger.NewWriter(&x.counts)
	}
}

// NeverWait makes the session refuse points where it would hold its sender back.
func (x *Session) NeverWait() { x.neverWait = true }

// Point takes one point: raw is the big-endian word of its 8 bytes as they
// came. key is only read during the call.
// In a bucket with timestamps it gets the begin of its slot as one.
func (x *Session) Point(key []byte, slot uint64, raw uint64) {
	if x.width != 1 {
		x.Timestamped(key, slot, raw, x.b.SlotBegin(slot))
		return
	}
	w := raw
	if raw < 1<<63 && raw>>56 != 1 {
		var ok bool
		if w, ok = point.Normalize(raw); !ok {
			x.refuse(account.BadType, 1)
			return
		}
	}
	if !x.position.Columns.Is(x.position.Column, key) && !x.seek(key, slot, w) {
		return
	}
	if !x.goesOn(slot) {
		x.makeRoom()
		x.runSlot, x.runCol = slot, x.position.Column
	}
	x.words[x.before+x.runLen] = w
	x.runLen++
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
	names, expected := x.position.Columns.From(x.position.Column)
	if len(expected) == 0 || x.width != 1 {
		return 0
	}
	goesOn := x.goesOn(slot)
	if !goesOn {
		x.makeRoom()
	}
	n, size := match(x.words[x.before+x.runLen:], names, expected, buf)
	if !goesOn && n > 0 {
		x.runSlot, x.runCol = slot, x.position.Column
	}
	x.runLen += n
	x.position.Column += n
	return size
}

// Append takes points of any series.
func (x *Session) Append(points []coordinator.Point) {
	for i := range points {
		if p := &points[i]; x.width == 1 || p.Time == 0 {
			x.Point(p.Key, p.Slot, p.Word)
		} else {
			x.Timestamped(p.Key, p.Slot, p.Word, p.Time)
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
	if x.width != 1 {
		x.pairs(key, slot, uint64(len(data)/point.Size), func(slot uint64) (raw, timestamp uint64) {
			raw, data = point.Get(data), data[point.Size:]
			return raw, x.b.SlotBegin(slot)
		})
		return
	}
	if !x.position.Columns.Is(x.position.Column, key) && !x.find(key, uint64(len(data)/point.Size)) {
		return
	}
	x.flush()
	n := uint64(len(data) / point.Size)
	if slot > math.MaxUint64-n {
		x.refuse(account.Future, n) // its last slots would begin at 0 again
		data = nil
	}
	x.settle(slot, n)
	for len(data) >= point.Size {
		x.entry = x.entry[:0]
		first := slot
		for len(data) >= point.Size && len(x.entry) < logrecord.MaxPoints {
			w, ok := point.Normalize(point.Get(data))
			data = data[point.Size:]
			slot++
			if !ok {
				x.refuse(account.BadType, 1)
				break
			}
			x.entry = append(x.entry, w)
		}
		x.column(first, x.entry)
	}
	x.position.Column++
}

// points returns how many points the words are.
func (x *Session) points(words []uint64) uint64 { return uint64(len(words) / x.width) }

// column writes the part of a column run that is admitted.
func (x *Session) column(slot uint64, words []uint64) {
	lo, hi := x.s.admitted(x.b)
	width := uint64(x.width)
	if slot < lo {
		n := min(x.points(words), lo-slot)
		x.refuse(account.Expired, n)
		words, slot = words[n*width:], slot+n
	}
	if over := slot + x.points(words); over > hi || over < slot {
		n := x.points(words)
		if slot < hi {
			n = over - hi
		}
		x.refuse(account.Future, n)
		words = words[:uint64(len(words))-n*width]
	}
	if len(words) > 0 {
		x.storeAt(x.position, head.Write{Slot: int64(slot), Words: words, Down: true})
	}
}

// storeRuns stores runs of columns of a group: all at once, or name by name those whose
// columns have lost their names since they were found.
func (x *Session) storeRuns(g *head.Group, cols *head.Columns, runs []head.Run, words []uint64) {
	w := rows(runs, words)
	w.Epoch = cols.Epoch()
	if x.apply(g, w) {
		return
	}
	for _, r := range runs {
		for i := 0; i < r.Points; i += x.width {
			x.storeAt(columns.Position{Group: g, Columns: cols, Column: r.Column + i}, head.Write{Slot: r.Slot, Words: words[i : i+x.width]})
		}
		words = words[r.Points:]
	}
}

// storeAt stores points of one series in the column at which it was found, or where it
// is by now. What is predicted stays as it is.
func (x *Session) storeAt(p columns.Position, w head.Write) {
	key := p.Columns.Key(p.Column)
	for ok := true; ok; p, ok = x.locate(key, x.points(w.Words)) {
		w.Column, w.Epoch = p.Column, p.Columns.Epoch()
		if x.apply(p.Group, w) {
			return
		}
	}
}

// apply stores what is written to a group and logs it, or refuses it. It is false
// when columns have lost their names since they were found: then nothing was done.
func (x *Session) apply(g *head.Group, w head.Write) bool {
	s := x.s
	w.Pairs = x.width == 2
	if x.err != nil {
		return true
	}
	if x.neverWait && s.pressure.Full() {
		x.refuse(account.Overload, x.points(w.Words))
		return true
	}
	s.pressure.Wait()
	if s.pressure.DiskFull() {
		x.refuse(account.DiskFull, x.points(w.Words))
		return true
	}
	if x.err = s.replayGroup(context.Background(), g.ID); x.err != nil {
		return true
	}
	a, err := x.writer.Write(g, &w)
	s.sealers.Applied(g, a)
	switch {
	case err != nil:
		x.err = err
	case a.Dead:
		x.refuse(account.BucketDeleted, x.points(w.Words))
	case a.Stale:
		return false
	default:
		x.totals.Received += x.points(w.Words)
	}
	return true
}

func (x *Session) refuse(r account.Reason, n uint64) {
	x.refused.Refused[r] += n
	x.totals.Received += n
	x.totals.Refused += n
}

// find makes key the predicted column: the one that follows in the order of the
// senders, else by hash. It creates the series when there is none, and is false
// when the points, n of them, were refused.
func (x *Session) find(key []byte, n uint64) bool {
	if len(key) == 0 {
		x.refuse(account.EmptyName, n)
		return false
	}
	return x.follows(key) || x.lookUp(key, n)
}

// lookUp is find by hash.
func (x *Session) lookUp(key []byte, n uint64) bool {
	p, ok := x.locate(key, n)
	if !ok {
		return false
	}
	if x.position.Group != nil && p.Column == 0 && x.position.Column >= x.position.Columns.Len() {
		x.position.Group.SetNext(p.Group)
	}
	x.other = x.position
	x.predict(p)
	return true
}

// locate is assign, and refuses the points, n of them, where there is no column for
// them: then it is false.
func (x *Session) locate(key []byte, n uint64) (p columns.Position, ok bool) {
	p, err := x.assign(key)
	switch {
	case err != nil:
		x.notAssigned(err, n)
	case p.Group == nil:
		x.refuse(account.BucketDeleted, n)
	default:
		return p, true
	}
	return columns.Position{}, false
}

// predict makes a column the next one. Runs are buffered only inside a group, and
// among names of one epoch: position is their view.
func (x *Session) predict(p columns.Position) {
	if p.Group != x.position.Group || p.Columns.Epoch() != x.position.Columns.Epoch() {
		x.flush()
	}
	x.position = p
}

// Commit hands everything received so far to the log and returns what to wait for.
// The refusals since the last call are logged with it.
func (x *Session) Commit() (coordinator.Token, error) {
	x.flush()
	x.settleAll()
	if x.err != nil {
		return coordinator.Token{}, x.err
	}
	if x.refused.RefusedTotal() > 0 {
		if x.err = x.writer.Refuse(x.b.ID, &x.refused); x.err != nil {
			return coordinator.Token{}, x.err
		}
		x.refused = account.Counts{}
	}
	x.commits++
	t := coordinator.Token{Position: uint64(x.writer.Last()), Commit: x.commits}
	if x.report != nil {
		x.report(t, x.counts)
	}
	x.counts = account.Counts{}
	return t, nil
}

// Pending reports whether points or refusals wait for Commit.
func (x *Session) Pending() bool {
	return x.runLen > 0 || len(x.runs) > 0 || x.unpredicted != nil || x.refused.RefusedTotal() > 0
}

// Totals returns what the session received and refused since its start.
func (x *Session) Totals() Totals { return x.totals }

// Close commits what is pending and ends the session.
func (x *Session) Close() error {
	_, err := x.Commit()
	x.filler.Close()
	return err
}

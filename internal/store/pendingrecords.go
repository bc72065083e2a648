package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/columns"
	"dalmatiner/internal/head"
	"dalmatiner/internal/logrecord"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/wal"
)

// LostInReplay is the account's cause for points in log records that were whole
// when a start read the log for the first time, and no more when it took them.
const LostInReplay = "log_record_damaged"

const (
	// closeEvery is how many records of one group are applied under its lock at a
	// time. Behind them its blocks are looked at that no later record fills, and
	// who replays them looks whether there is room for more and who still wants it.
	closeEvery = 32

	// recordsSize is the pending records of a group without their positions, and their place in the table.
	recordsSize = 104 + 8

	// positionsPart of the memory limit, and no more than mostPositions, is what a
	// start takes for the positions of records. With more it replays what it has of
	// a group before it goes on.
	positionsPart = 16
	mostPositions = 64 << 20
)

// pendingRecords are what the log has of a group and the head has not yet. Who wants to
// write to the group or to read it replays them first.
type pendingRecords struct {
	group uint32
	empty atomic.Bool // nothing is left; set under mu

	mu   sync.Mutex
	b    *columns.Bucket
	next uint64 // position of the first record, 0 = none
	last uint64 // of the last one
	rest []byte // from the first to the last: the distance of each to the one before it
	held int    // memory of rest, also of what was passed
	left uint64 // points that these records count as stored
	past int    // their columns lie below

	lowest, highest int64 // slots of all records that ever were in it
}

// add takes a record with points in, the last one so far.
func (l *pendingRecords) add(lsn uint64, b *columns.Bucket, p *logrecord.Record) {
	if l.b == nil {
		l.lowest, l.highest = p.Slot, p.Last
	}
	l.lowest, l.highest = min(l.lowest, p.Slot), max(l.highest, p.Last)
	if l.next == 0 {
		l.next = lsn
		l.empty.Store(false)
	} else {
		l.rest = binary.AppendUvarint(l.rest, lsn-l.last)
	}
	l.b, l.last, l.held = b, lsn, max(l.held, cap(l.rest))
	l.left += p.Counts.Stored()
	l.past = max(l.past, p.Past(b.Width()))
}

// pass goes on to the next record.
func (l *pendingRecords) pass() {
	if len(l.rest) == 0 {
		l.next, l.rest, l.past = 0, nil, 0
		return
	}
	l.next, l.rest = nextPosition(l.next, l.rest)
}

// nextPosition returns the position behind one, and what follows.
func nextPosition(lsn uint64, rest []byte) (uint64, []byte) {
	d, n := binary.Uvarint(rest)
	return lsn + d, rest[n:]
}

// done goes on behind a record whose points are in the head.
func (l *pendingRecords) done(stored uint64) {
	l.left -= min(l.left, stored)
	l.pass()
}

// drop drops all pending records of a group.
func (r *replayer) drop(l *pendingRecords) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next, l.rest, l.left, l.past = 0, nil, 0, 0
	r.giveBack(l)
}

// giveBack gives back the memory of pending records of which none is left.
func (r *replayer) giveBack(l *pendingRecords) {
	r.hold(-int64(l.held))
	r.positions.Add(-int64(l.held))
	l.held = 0
	l.empty.Store(true)
}

// hold counts memory that the replay takes, or gives back.
func (r *replayer) hold(bytes int64) { r.s.replayBytes.Add(bytes) }

// recordsOf returns the pending records of a group, or nil.
func (r *replayer) recordsOf(group uint32) *pendingRecords {
	if int(group) < len(r.records) {
		return r.records[group]
	}
	return nil
}

// pend leaves a record with points to the second reading of the log.
func (r *replayer) pend(lsn uint64, b *columns.Bucket, p *logrecord.Record) error {
	if need := int(p.Group) + 1 - len(r.records); need > 0 {
		r.records = append(r.records, make([]*pendingRecords, need)...)
	}
	l := r.records[p.Group]
	if l == nil {
		l = &pendingRecords{group: p.Group}
		r.records[p.Group] = l
		r.pending++
		r.hold(recordsSize)
	}
	was := l.held
	l.add(lsn, b, p)
	if l.held == was {
		return nil
	}
	r.hold(int64(l.held - was))
	// Of a group with much: to replay one record at a time would take hours.
	if limit := r.s.positionsLimit(); r.positions.Add(int64(l.held-was)) > limit && int64(l.held)*r.pending > limit/2 {
		return r.replayGroup(context.Background(), p.Group)
	}
	return nil
}

// positionsLimit is the memory that positions of records may take.
func (s *Store) positionsLimit() int64 { return s.memory.Share(positionsPart, s.o.mostPositions) }

// replayGroup puts what the log has of a group into the head now. The caller holds no
// lock: it may wait for a flush. Who wants it no more, by ctx, leaves what is left
// of the pending records to the next one.
func (r *replayer) replayGroup(ctx context.Context, group uint32) error {
	l := r.recordsOf(group)
	if l == nil || l.empty.Load() {
		return nil
	}
	r.gate.RLock()
	defer r.gate.RUnlock()
	in, a := r.s.log.NewReader(), newApplier(r)
	defer in.Close()
	for !l.empty.Load() {
		if err := r.awaitRoom(ctx); err != nil {
			return err
		}
		gone, err := a.replaySome(l, in)
		if err == nil && gone != 0 {
			err = r.hideGone(l, gone)
		}
		if errors.Is(err, ErrClosed) {
			return err
		}
		if err != nil {
			err = fmt.Errorf("replaying the log for group %d: %w", group, err)
			r.s.pressure.Fail(err) // as where the second reading meets it
			return err
		}
	}
	return nil
}

// replaySome applies the next pending records of a group, up to one that is gone: its position
// is returned.
func (a *applier) replaySome(l *pendingRecords, in *wal.Reader) (gone uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == 0 { // somebody was faster
		a.r.finishGroup(l)
		return 0, nil
	}
	g := a.r.s.columns.Groups.Get(l.group)
	for n := 0; l.next != 0 && gone == 0 && n < closeEvery; n++ {
		if gone, err = a.replayNext(l, g, in); err != nil {
			return 0, err
		}
	}
	a.closeBehind(g)
	a.r.finishGroup(l)
	return gone, nil
}

// closeBehind closes the blocks that no later record fills.
func (a *applier) closeBehind(g *head.Group) {
	if g != nil {
		a.r.s.sealers.Applied(g, head.Applied{Closed: g.CloseBehind()})
	}
}

// replayNext applies the next pending record of a group, or returns the position of it where it is
// gone.
func (a *applier) replayNext(l *pendingRecords, g *head.Group, in *wal.Reader) (gone uint64, err error) {
	rec, err := in.Record(wal.LSN(l.next))
	if errors.Is(err, wal.ErrNoRecord) {
		return l.next, nil
	}
	if err != nil {
		return 0, err
	}
	p, err := logrecord.Parse(rec)
	if err != nil {
		return l.next, nil // it was parsed before
	}
	if b := a.r.s.buckets.ID(p.Bucket); b != nil {
		n := newRun(l.next, b, &p)
		a.record(g, &n, p.Runs, p.Cells)
	}
	l.done(p.Counts.Stored())
	return 0, nil
}

// finishGroup notes that all pending records of a group are in the head, but for the points of
// records that are gone and of which it is not known how many they had.
func (r *replayer) finishGroup(l *pendingRecords) {
	if l.next != 0 {
		return
	}
	if l.left > 0 {
		r.s.account.Lose(LostInReplay, l.left)
		l.left = 0
	}
	r.giveBack(l)
}

// replayGroup puts what the log has of a group into the head, after a start that has
// not done so yet.
func (s *Store) replayGroup(ctx context.Context, group uint32) error {
	if r := s.behind.Load(); r != nil {
		return r.replayGroup(ctx, group)
	}
	return nil
}

// replaySeries is replayGroup for the group of a series.
func (s *Store) replaySeries(ctx context.Context, id metric.SeriesID) error {
	r := s.behind.Load()
	if r == nil {
		return nil
	}
	if ref, ok := s.columns.Index.Lookup(id); ok && !ref.Inactive() {
		return r.replayGroup(ctx, ref.Group())
	}
	return nil
}

// pendingReplay is what sessions wait for behind a start.
type pendingReplay struct{ s *Store }

// Behind reports whether there is anything left to replay.
func (p pendingReplay) Behind() bool { return p.s.behind.Load() != nil }

// Group returns when all points of a group are in memory.
func (p pendingReplay) Group(ctx context.Context, group uint32) error {
	return p.s.replayGroup(ctx, group)
}

// All returns when all points are.
func (p pendingReplay) All(ctx context.Context) error { return p.s.awaitReplay(ctx) }

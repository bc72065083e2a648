package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/account"
	"dalmatiner/internal/head"
	"dalmatiner/internal/wal"
)

// LostInReplay is the account's cause for points in log records that were whole
// when a start read the log for the first time, and no more when it took them.
const LostInReplay = "log_record_damaged"

// closeEvery is how many records of one group are applied before its blocks are
// looked at that no record behind them fills.
const closeEvery = 32

// backlog is what the log has of a group and the head has not yet. Who wants to
// write to the group or to read it brings it first.
type backlog struct {
	group uint32
	empty atomic.Bool // nothing is left; set under mu

	mu   sync.Mutex
	b    *bucket
	next uint64 // position of the first record, 0 = none
	last uint64 // of the last one
	rest []byte // from the first to the last: the distance of each to the one before it
	left uint64 // points that these records count as stored
	past int    // their columns lie below
}

// add takes a row or column record in, the last one so far.
func (l *backlog) add(lsn uint64, b *bucket, p *record) {
	if l.next == 0 {
		l.next = lsn
		l.empty.Store(false)
	} else {
		l.rest = binary.AppendUvarint(l.rest, lsn-l.last)
	}
	l.b, l.last = b, lsn
	l.left += p.counts.Stored()
	columns := b.width()
	if p.kind == recRow {
		columns, _ = cellCount(p.cells) // well-formed, or it were no record
	}
	l.past = max(l.past, p.column+columns)
}

// pass goes on to the next record.
func (l *backlog) pass() {
	if len(l.rest) == 0 {
		l.next, l.rest, l.past = 0, nil, 0
		return
	}
	d, n := binary.Uvarint(l.rest)
	l.next, l.rest = l.next+d, l.rest[n:]
}

// done goes on behind a record whose points are in the head.
func (l *backlog) done(stored uint64) {
	l.left -= min(l.left, stored)
	l.pass()
}

// drop forgets all records.
func (l *backlog) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next, l.rest, l.left, l.past = 0, nil, 0, 0
	l.empty.Store(true)
}

// backlogOf returns the backlog of a group, or nil.
func (r *replayer) backlogOf(group uint32) *backlog {
	if int(group) < len(r.backlogs) {
		return r.backlogs[group]
	}
	return nil
}

// pend leaves a row or column record to the second reading of the log.
func (r *replayer) pend(lsn uint64, b *bucket, p *record) {
	if need := int(p.group) + 1 - len(r.backlogs); need > 0 {
		r.backlogs = append(r.backlogs, make([]*backlog, need)...)
	}
	l := r.backlogs[p.group]
	if l == nil {
		l = &backlog{group: p.group}
		r.backlogs[p.group] = l
	}
	l.add(lsn, b, p)
}

// bring puts what the log has of a group into the head now. The caller holds no
// lock: it may wait for a flush.
func (r *replayer) bring(group uint32) error {
	l := r.backlogOf(group)
	if l == nil || l.empty.Load() {
		return nil
	}
	r.gate.RLock()
	defer r.gate.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	in, a, g := r.s.log.NewReader(), newApplier(r), r.s.groups.get(group)
	defer in.Close()
	for n := 1; l.next != 0; n++ {
		if r.stopping() {
			return ErrClosed
		}
		if err := a.bring(l, g, in); err != nil {
			err = fmt.Errorf("replaying the log for group %d: %w", group, err)
			r.s.fail(err) // as where the second reading meets it
			return err
		}
		if g != nil && (n%closeEvery == 0 || l.next == 0) {
			r.s.applied(g, head.Applied{Closed: g.CloseBehind()})
		}
	}
	r.settleBacklog(l)
	return nil
}

// bring applies the next record of a backlog.
func (a *applier) bring(l *backlog, g *head.Group, in *wal.Reader) error {
	rec, err := in.Record(wal.LSN(l.next))
	if errors.Is(err, wal.ErrNoRecord) {
		a.r.missing(l)
		return nil
	}
	if err != nil {
		return err
	}
	p, err := parseRecord(rec)
	if err != nil {
		a.r.missing(l) // it was parsed before
		return nil
	}
	if b := a.r.s.buckets.id(p.bucket); b != nil {
		n := newRun(l.next, b, &p)
		a.run(g, &n, p.cells)
	}
	l.done(p.counts.Stored())
	return nil
}

// missing passes over a record that was there when the log was read first.
func (r *replayer) missing(l *backlog) {
	r.s.reportDamage(fmt.Sprintf("log record at %d", l.next), errors.New("it was whole a moment ago and is no more"))
	l.pass()
}

// settleBacklog notes that all of a backlog is in the head, but for the points of
// records that are missing.
func (r *replayer) settleBacklog(l *backlog) {
	if l.next != 0 {
		return
	}
	if l.left > 0 {
		r.s.account.Lose(LostInReplay, l.left)
		l.left = 0
	}
	l.empty.Store(true)
}

// stopping reports whether the store is being closed.
func (r *replayer) stopping() bool {
	select {
	case <-r.s.stop:
		return true
	default:
		return false
	}
}

// stop waits for those who bring something. The store is being closed: nobody
// begins behind them.
func (r *replayer) stop() {
	r.gate.Lock()
	defer r.gate.Unlock()
}

// finish reads the log for the second time and puts its points into the head,
// while the store is in use.
func (r *replayer) finish() {
	s := r.s
	switch err := r.readAgain(); {
	case errors.Is(err, ErrClosed):
		return
	case err != nil:
		s.fail(fmt.Errorf("replaying the log: %w", err))
		close(s.replayOver)
		return
	}
	for _, l := range r.backlogs {
		if l != nil {
			l.mu.Lock()
			for l.next != 0 {
				r.missing(l)
			}
			r.settleBacklog(l)
			l.mu.Unlock()
		}
	}
	s.behind.Store(nil)
	s.replayed.Store(0)
	close(s.replayOver)
	if s.o.BackgroundMerge {
		s.workers.Go(s.mergeLoop)
	}
}

// readAgain is the second reading, if there is anything to be read.
func (r *replayer) readAgain() error {
	if len(r.backlogs) == 0 {
		return nil
	}
	start := time.Now()
	if r.s.o.holdReplay != nil {
		select {
		case <-r.s.o.holdReplay:
		case <-r.s.stop:
		}
	}
	err := r.s.log.Again(wal.LSN(r.from), r.point)
	if err == nil {
		r.turn()
	}
	r.settle()
	if err == nil {
		r.s.o.Logger.Info("the log is in memory", "took", time.Since(start).Round(time.Millisecond))
	}
	return err
}

// point takes a record of the second reading.
func (r *replayer) point(lsn wal.LSN, rec []byte) error {
	if r.stopping() {
		return ErrClosed
	}
	q := r.reading
	if kind := rec[0]; kind == recRow || kind == recColumn {
		p, err := parseRecord(rec)
		if err != nil {
			return nil // named by the first reading
		}
		b, l := r.s.buckets.id(p.bucket), r.backlogOf(p.group)
		if b != nil && l != nil && !l.empty.Load() {
			q.add(uint64(lsn), b, l, &p)
		}
	}
	q.end = uint64(lsn) + 1
	if q.size() >= r.roundSize {
		r.turn()
	}
	return nil
}

// bring puts what the log has of a group into the head, after a start that has
// not done so yet.
func (s *Store) bring(group uint32) error {
	if r := s.behind.Load(); r != nil {
		return r.bring(group)
	}
	return nil
}

// bringSeries is bring for the group of a series.
func (s *Store) bringSeries(b *bucket, key []byte) error {
	r := s.behind.Load()
	if r == nil {
		return nil
	}
	if ref, ok := s.index.get(b.seriesID(key)); ok && !ref.parked() {
		return r.bring(ref.group())
	}
	return nil
}

// replayLeft returns how much of the log is still to be read into the head.
func (s *Store) replayLeft() int64 {
	if lsn := s.replayed.Load(); lsn != 0 {
		return int64(s.replayEnd) - int64(lsn)
	}
	return 0
}

// awaitReplay waits until all of the log is in the head. Whatever gives a column
// to a series or takes one away, and whatever is to find everything in the head,
// waits here first, with no lock held.
func (s *Store) awaitReplay(ctx context.Context) error {
	select {
	case <-s.replayOver:
		return s.failed()
	case <-s.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// accountRow names a row of the account.
type accountRow struct {
	bucket uint32
	minute int64
}

// tally is what the first reading of the log has counted and the account has not.
type tally struct {
	rows map[accountRow]*account.Counts
	row  *account.Counts // the one counted last, of
	last accountRow
}

// count adds what a record counts.
func (t *tally) count(bucket uint32, minute int64, c *account.Counts) {
	if k := (accountRow{bucket, minute}); t.row == nil || k != t.last {
		t.row = t.rows[k]
		if t.row == nil {
			t.row = new(account.Counts)
			t.rows[k] = t.row
		}
		t.last = k
	}
	t.row.Add(c)
}

// settleCounts adds what was counted to the account, which then stands for all
// records below end. A flush takes both in one moment.
func (r *replayer) settleCounts(end uint64) {
	s := r.s
	s.commit.RLock()
	defer s.commit.RUnlock()
	for k, c := range r.tally.rows {
		s.account.Add(s.accountID(k.bucket), k.minute, c)
	}
	clear(r.tally.rows)
	r.tally.row = nil
	s.counted.Store(end)
}

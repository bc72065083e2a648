package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/write/backpressure"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/logrecord"
)

// closeEvery is how many records of one group are applied under its lock at a time. Then its blocks
// that no later record fills are looked at. The caller that replays them also looks whether there
// is room for more, and whether anybody still wants it.
const closeEvery = 32

// ErrNoRoom is wrapped by what ends the replay of a log whose points do not fit into memory while
// the node is to end and no flush makes room.
var ErrNoRoom = errors.New("not all of the log came into memory, because no flush makes room; " +
	"nothing is lost: the log keeps its points for the next start")

// replayer applies the log on top of what the last flush left. A start reads it
// once for all that is no point, and for the account; what it has of points is
// noted by group. Then the store is in use, and a second reading puts the points
// into the head, but for those of groups that somebody wants before.
type replayer struct {
	o      *Options
	p      *progress
	from   uint64 // it begins here
	target *target

	pending pendingTable
	gate    sync.RWMutex // held shared by those who replay a group on demand
	later   goneRecords
	unknown bool // damage took records of which nothing is known
}

// stopping reports whether the store is being closed.
func (r *replayer) stopping() bool {
	select {
	case <-r.o.Stop:
		return true
	default:
		return false
	}
}

// full reports whether points of the log have to wait for a flush. They do on a
// full disk as well, where senders are refused: a log may hold more than there is
// memory for.
func (r *replayer) full() bool { return r.o.Pressure.IsFull() || r.o.Pressure.UnderPressure() }

// awaitRoom holds back who replays something, as Control.Wait does a sender. It goes
// on while the node is to end, as long as flushes make room: what is not in memory
// by then stays in the log.
func (r *replayer) awaitRoom(ctx context.Context) error {
	switch {
	case r.stopping():
		return version.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case !r.full():
		return nil
	}
	c := r.o.Pressure
	err := c.Hold(ctx, r.full, true)
	if !errors.Is(err, backpressure.ErrUrgent) {
		return err
	}
	if err = c.Hold(ctx, func() bool {
		return r.full() && !c.FlushFailed()
	}, false); err == nil && r.full() {
		err = ErrNoRoom
	}
	return err
}

// stop waits for those who replay something. The store is being closed: nobody
// begins behind them.
func (r *replayer) stop() {
	r.gate.Lock()
	defer r.gate.Unlock()
}

// group puts what the log has of a group into the head now. The caller holds no
// lock: it may wait for a flush. Who wants it no more, by ctx, leaves what is left
// of the pending records to the next one.
func (r *replayer) group(ctx context.Context, group uint32) error {
	l := r.pending.of(group)
	if l == nil || l.empty.Load() {
		return nil
	}
	r.gate.RLock()
	defer r.gate.RUnlock()
	in, a := r.o.Log.NewReader(), newApplier(r.target)
	defer in.Close()
	for !l.empty.Load() {
		if err := r.awaitRoom(ctx); err != nil {
			return err
		}
		gone, err := r.some(a, l, in)
		if err == nil && gone != 0 {
			err = r.hideGone(l, gone)
		}
		if errors.Is(err, version.ErrClosed) {
			return err
		}
		if err != nil {
			err = fmt.Errorf("replaying the log for group %d: %w", group, err)
			r.o.Pressure.Fail(err) // as where the second reading meets it
			return err
		}
	}
	return nil
}

// some applies the next pending records of a group, up to one that is gone: its position
// is returned.
func (r *replayer) some(a *applier, l *pendingRecords, in *wal.Reader) (gone uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == 0 { // somebody was faster
		r.finishGroup(l)
		return 0, nil
	}
	g := r.target.groups.Get(l.group)
	for n := 0; l.next != 0 && gone == 0 && n < closeEvery; n++ {
		if gone, err = r.next(a, l, g, in); err != nil {
			return 0, err
		}
	}
	a.closeBehind(g)
	r.finishGroup(l)
	return gone, nil
}

// next applies the next pending record of a group, or returns the position of it where it is
// gone.
func (r *replayer) next(a *applier, l *pendingRecords, g *head.Group,
	in *wal.Reader) (gone uint64, err error) {
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
	if b := r.o.Buckets.ID(p.Bucket); b != nil {
		n := newRun(l.next, b, &p)
		a.record(g, &n, p.Runs, p.Cells)
	}
	l.done(p.Copies, p.Counts.StoredPoints())
	return 0, nil
}

// chain applies what a round has of a group, but for what somebody who could not
// wait has replayed already.
func (r *replayer) chain(a *applier, q *round, c chain) error {
	for done := false; !done; {
		if err := r.awaitRoom(context.Background()); err != nil {
			return err
		}
		var gone uint64
		if done, gone = r.links(a, q, &c); gone != 0 {
			if err := r.hideGone(c.l, gone); err != nil {
				return err
			}
		}
	}
	return nil
}

// links applies the next records of a chain, up to one that is gone, whose position it
// returns, and reports whether they were its last.
func (r *replayer) links(a *applier, q *round, c *chain) (done bool, gone uint64) {
	l := c.l
	l.mu.Lock()
	defer l.mu.Unlock()
	g, applied := r.target.groups.Get(l.group), 0
	for !done && applied < closeEvery {
		n := &q.runs[c.first]
		if l.next != 0 && l.next < n.lsn {
			gone = l.next
			break
		}
		if l.next == n.lsn {
			cells := n.from + n.runs
			a.record(g, n, q.cells[n.from:cells], q.cells[cells:n.past])
			l.done(n.copies, n.stored)
			applied++
		}
		done, c.first = c.first == c.last, n.next
	}
	if applied > 0 {
		a.closeBehind(g)
	}
	r.finishGroup(l)
	return done, gone
}

// finishGroups is finishGroup for all.
func (r *replayer) finishGroups() {
	for _, l := range r.pending.groups {
		if l != nil {
			l.mu.Lock()
			r.finishGroup(l)
			l.mu.Unlock()
		}
	}
}

// finishGroup notes that all pending records of a group are in the head. Only the points of records
// that are gone are missing, where it is not known how many they had.
func (r *replayer) finishGroup(l *pendingRecords) {
	if l.next != 0 {
		return
	}
	for _, ofCopies := range []bool{false, true} {
		if n := l.left.take(ofCopies, math.MaxUint64); n > 0 {
			r.o.Lost.CountOnce(ofCopies, n)
		}
	}
	r.pending.giveBack(l)
}

package store

import (
	"encoding/binary"
	"sync"

	"dalmatiner/internal/account"
	"dalmatiner/internal/flush"
)

// uncommittedLosses are the losses in the account whose records the next start would read
// again, and count again: those that are not below the replay position of their group. The
// snapshot of the account that a flush commits leaves them out.
type uncommittedLosses struct {
	cause  string
	mu     sync.Mutex
	groups map[uint32]*lossList
}

// lossList is the losses of a group.
type lossList struct {
	first, last uint64 // records, 0 = none
	points      uint64 // of the first one
	rest        []byte // of the others: distance to the one before, points
}

// count counts points of a record of a group that are of no series, or lost.
func (r *uncommittedLosses) count(a *account.Account, group uint32, lsn, points uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.groups == nil {
		r.groups = make(map[uint32]*lossList)
	}
	l := r.groups[group]
	if l == nil {
		l = &lossList{first: lsn, last: lsn, points: points}
		r.groups[group] = l
	} else if lsn < l.last {
		l.insert(lsn, points)
	} else {
		l.add(lsn, points)
	}
	a.Lose(r.cause, points)
}

// add appends a loss.
func (l *lossList) add(lsn, points uint64) {
	l.rest = binary.AppendUvarint(binary.AppendUvarint(l.rest, lsn-l.last), points)
	l.last = lsn
}

// insert puts a loss in its place. Those that are found between the readings of a log
// may lie before others.
func (l *lossList) insert(lsn, points uint64) {
	at, n, rest := l.first, l.points, l.rest
	if lsn < at {
		l.first, l.points = lsn, points
	}
	l.last, l.rest = l.first, nil
	for taken := lsn == l.first; ; at, n, rest = nextLoss(at, rest) {
		if !taken && lsn < at {
			l.add(lsn, points)
			taken = true
		}
		if at != l.first {
			l.add(at, n)
		}
		if len(rest) == 0 {
			return
		}
	}
}

// snapshot returns the account without the losses that a start counts which has
// these replay positions. The others are settled: replay positions only grow.
func (r *uncommittedLosses) snapshot(a *account.Account, f *flush.Positions, without ...account.Loss) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.Snapshot(append(without, r.again(f))...)
}

// settled returns the losses that a start counts again which has these replay positions.
func (r *uncommittedLosses) settled(f *flush.Positions) account.Loss {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.again(f)
}

func (r *uncommittedLosses) again(f *flush.Positions) account.Loss {
	var again uint64
	for group, l := range r.groups {
		if !l.settle(f.Of(group)) {
			delete(r.groups, group)
			continue
		}
		again += l.sum()
	}
	return account.Loss{Cause: r.cause, Points: again}
}

// any reports whether there are any.
func (r *uncommittedLosses) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.groups) > 0
}

// bytes returns their memory.
func (r *uncommittedLosses) bytes() (n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.groups {
		n += int64(cap(l.rest))
	}
	return n
}

// settle drops the losses below a replay position and reports whether any are left.
func (l *lossList) settle(floor uint64) bool {
	for l.first < floor {
		if len(l.rest) == 0 {
			return false
		}
		l.first, l.points, l.rest = nextLoss(l.first, l.rest)
	}
	return true
}

// nextLoss decodes the loss behind that of the record at lsn.
func nextLoss(lsn uint64, src []byte) (at, points uint64, rest []byte) {
	distance, n := binary.Uvarint(src)
	points, m := binary.Uvarint(src[n:])
	return lsn + distance, points, src[n+m:]
}

func (l *lossList) sum() uint64 {
	sum := l.points
	for src := l.rest; len(src) > 0; {
		var points uint64
		_, points, src = nextLoss(0, src)
		sum += points
	}
	return sum
}

package flush

import (
	"encoding/binary"
	"sync"

	"dalmatiner/internal/account"
)

// Losses are the losses of one cause in the account whose records the next start would read
// again, and count again: those that are not below the replay position of their group. The
// snapshot of the account that a flush commits leaves them out. A replay counts into them
// beside flushes; their methods may be called concurrently.
type Losses struct {
	account *account.Account
	cause   string

	mu     sync.Mutex
	groups map[uint32]*lossList
}

// NewLosses returns losses that are counted in the account under a cause.
func NewLosses(a *account.Account, cause string) *Losses {
	return &Losses{account: a, cause: cause, groups: make(map[uint32]*lossList)}
}

// lossList is the losses of a group.
type lossList struct {
	first, last uint64 // records, 0 = none
	points      uint64 // of the first one
	rest        []byte // of the others: distance to the one before, points
}

// Count counts points of a record of a group as lost. Records may come in any order.
func (r *Losses) Count(group uint32, lsn, points uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.groups[group]
	if l == nil {
		l = &lossList{first: lsn, last: lsn, points: points}
		r.groups[group] = l
	} else if lsn < l.last {
		l.insert(lsn, points)
	} else {
		l.add(lsn, points)
	}
	r.account.Lose(r.cause, points)
}

// CountOnce counts points as lost whose records no start reads again.
func (r *Losses) CountOnce(points uint64) { r.account.Lose(r.cause, points) }

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

// Snapshot returns a snapshot of the account without the losses that a start counts which
// has these replay positions, and without those of other causes. Losses below the replay
// positions are dropped: these only grow.
func (r *Losses) Snapshot(f *Positions, without ...account.Loss) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.account.Snapshot(append(without, r.again(f))...)
}

// CountedAgain returns the losses that a start counts which has these replay positions, for
// the Snapshot of others, and drops those below.
func (r *Losses) CountedAgain(f *Positions) account.Loss {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.again(f)
}

func (r *Losses) again(f *Positions) account.Loss {
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

// Any reports whether there are any.
func (r *Losses) Any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.groups) > 0
}

// Bytes returns their memory.
func (r *Losses) Bytes() (n int64) {
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

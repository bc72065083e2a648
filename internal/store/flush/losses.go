package flush

import (
	"encoding/binary"
	"sync"

	"dalmatiner/internal/model/account"
)

// Losses are the losses of one cause in an account whose records the next start would read
// again, and count again: those that are not below the replay position of their group. The
// snapshot of the account that a flush commits leaves them out. A replay counts into them
// beside flushes; their methods may be called concurrently.
type Losses struct {
	cause string

	mu     sync.Mutex
	points lossesOf
	copies lossesOf
}

// lossesOf are those in the account of points, or in the ledger of copies.
type lossesOf struct {
	account *account.Account
	groups  map[uint32]*lossList
}

// NewLosses returns losses that are counted under a cause, in the account of points or in the
// ledger of copies.
func NewLosses(points, copies *account.Account, cause string) *Losses {
	return &Losses{
		cause:  cause,
		points: lossesOf{points, make(map[uint32]*lossList)},
		copies: lossesOf{copies, make(map[uint32]*lossList)},
	}
}

func (r *Losses) of(ofCopies bool) *lossesOf {
	if ofCopies {
		return &r.copies
	}
	return &r.points
}

// lossList is the losses of a group.
type lossList struct {
	first, last uint64 // records, 0 = none
	points      uint64 // of the first one
	rest        []byte // of the others: distance to the one before, points
}

// Count counts points of a record of a group as lost, ofCopies where its counts are those of
// copies. Records may come in any order.
func (r *Losses) Count(group uint32, ofCopies bool, lsn, points uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.of(ofCopies)
	l := of.groups[group]
	if l == nil {
		l = &lossList{first: lsn, last: lsn, points: points}
		of.groups[group] = l
	} else if lsn < l.last {
		l.insert(lsn, points)
	} else {
		l.add(lsn, points)
	}
	of.account.Lose(r.cause, points)
}

// CountOnce counts points as lost whose records no start reads again.
func (r *Losses) CountOnce(ofCopies bool, points uint64) {
	r.of(ofCopies).account.Lose(r.cause, points)
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

// snapshot returns snapshots of the account of points and of the ledger of copies, without the
// losses that a start counts which has these replay positions. Losses below the replay positions
// are dropped: these only grow. A ledger of copies in which nothing was ever counted is nil.
func snapshot(f *Positions, all ...*Losses) (points, copies []byte) {
	var again, copiesAgain []account.Loss
	for _, r := range all {
		r.mu.Lock()
		defer r.mu.Unlock() // what is counted meanwhile is not in the snapshots
		again = append(again, account.Loss{Cause: r.cause, Points: r.points.again(f)})
		copiesAgain = append(copiesAgain, account.Loss{Cause: r.cause, Points: r.copies.again(f)})
	}
	if points = all[0].points.account.Snapshot(again...); !all[0].copies.account.Empty() {
		copies = all[0].copies.account.Snapshot(copiesAgain...)
	}
	return points, copies
}

func (r *lossesOf) again(f *Positions) (points uint64) {
	for group, l := range r.groups {
		if !l.settle(f.Of(group)) {
			delete(r.groups, group)
			continue
		}
		points += l.sum()
	}
	return points
}

// Any reports whether there are any.
func (r *Losses) Any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.points.groups)+len(r.copies.groups) > 0
}

// Bytes returns their memory.
func (r *Losses) Bytes() (n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, groups := range []map[uint32]*lossList{r.points.groups, r.copies.groups} {
		for _, l := range groups {
			n += int64(cap(l.rest))
		}
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

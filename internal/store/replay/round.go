package replay

import (
	"sync"
	"sync/atomic"

	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/logrecord"
)

// round is a part of the log on its way into the head. Records of one group
// stay in their order, groups are applied side by side.
type round struct {
	runs   []run
	cells  []byte // of all runs
	chains []chain
	of     map[uint32]int // chain of a group
	end    uint64         // all records below are in this round or were before it

	taken   atomic.Int64 // chains
	applied sync.WaitGroup
	failure atomic.Pointer[error] // why some of it was not applied
}

// chain is what a round has of one group.
type chain struct {
	l           *pendingRecords
	first, last uint32 // of runs
}

// run is a record with points.
type run struct {
	lsn        uint64
	b          *columns.Bucket
	slot       int64
	stored     uint64 // points, as the record counts them
	from, past uint32 // of cells, behind the runs of those with several
	runs       uint32 // their bytes
	next       uint32 // of the chain, but for its last
	group      uint32
	column     uint8
	kind       logrecord.Kind
	copies     bool // stored are copies
}

const runSize = 56 // bytes

func newRound() *round { return &round{of: make(map[uint32]int)} }

// newRun returns the run of a record with points, without its place in a round.
func newRun(lsn uint64, b *columns.Bucket, p *logrecord.Record) run {
	return run{
		lsn:    lsn,
		b:      b,
		group:  p.Group,
		slot:   p.Slot,
		stored: p.Counts.StoredPoints(),
		column: uint8(p.Column),
		kind:   p.Kind,
		copies: p.Copies,
	}
}

// add takes a record with points in, which is pending, and returns by how
// much the memory of the round grew.
func (q *round) add(lsn uint64, b *columns.Bucket, l *pendingRecords,
	p *logrecord.Record) (grown int64) {
	was := q.memory()
	at := uint32(len(q.runs))
	n := newRun(lsn, b, p)
	n.runs, n.from = uint32(len(p.Runs)), uint32(len(q.cells))
	n.past = n.from + n.runs + uint32(len(p.Cells))
	q.runs = append(q.runs, n)
	q.cells = append(append(q.cells, p.Runs...), p.Cells...)
	if i, ok := q.of[p.Group]; ok {
		c := &q.chains[i]
		q.runs[c.last].next = at
		c.last = at
	} else {
		q.of[p.Group] = len(q.chains)
		q.chains = append(q.chains, chain{l: l, first: at, last: at})
	}
	return q.memory() - was
}

// size is the memory that is used of a round, memory what it holds.
func (q *round) size() int     { return len(q.cells) + len(q.runs)*runSize }
func (q *round) memory() int64 { return int64(cap(q.cells) + cap(q.runs)*runSize) }

// reset empties a round and keeps its memory.
func (q *round) reset() {
	clear(q.of)
	clear(q.chains)
	clear(q.runs)
	q.runs, q.cells, q.chains = q.runs[:0], q.cells[:0], q.chains[:0]
	q.taken.Store(0)
}

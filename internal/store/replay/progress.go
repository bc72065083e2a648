package replay

import (
	"sync/atomic"

	"dalmatiner/internal/disk/wal"
)

// progress is how far a replay has come. Flushes and statistics ask for it beside the replay,
// and when it is over.
type progress struct {
	log      *wal.Log
	end      wal.LSN // of the log when it was opened
	snapshot wal.LSN // of the account that the start found

	head    atomic.Uint64 // records below are in the head; 0 when all of the log is
	counted atomic.Uint64 // records below are in the account; 0 when all of the log is
	records atomic.Int64  // of the log, as the first reading found them

	bytes     atomic.Int64 // memory of records and rounds, and in it
	positions atomic.Int64 // that of the positions of records
}

// HeadEnd returns the position below which every record is in the head: the end
// of the log, or how far its replay has come, where that is behind.
func (p *progress) HeadEnd() (end wal.LSN, behind bool) {
	behind = p.HasPending()
	return p.endOr(&p.head), behind
}

// AccountEnd returns the position below which every record is in the account: the
// end of the log, or how far a start has come with counting. What is replayed for its
// points alone was in the account before. It changes under the commit lock.
func (p *progress) AccountEnd() wal.LSN { return max(p.endOr(&p.counted), p.snapshot) }

func (p *progress) endOr(position *atomic.Uint64) wal.LSN {
	if lsn := position.Load(); lsn != 0 {
		return wal.LSN(lsn)
	}
	return p.log.End()
}

// HasPending reports whether a part of the log is not in the head yet.
func (p *progress) HasPending() bool { return p.head.Load() != 0 }

// Left returns how many bytes of the log are still to be read into the head.
func (p *progress) Left() int64 {
	if lsn := p.head.Load(); lsn != 0 {
		return int64(p.end) - int64(lsn)
	}
	return 0
}

// Records returns how many records the log had.
func (p *progress) Records() int64 { return p.records.Load() }

// PositionBytes returns the memory of the positions of records that are not in the head yet.
func (p *progress) PositionBytes() int64 { return p.positions.Load() }

// raise notes that all records below a position are in the head.
func (p *progress) raise(lsn uint64) { p.head.Store(max(p.head.Load(), lsn)) }

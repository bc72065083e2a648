package store

import (
	"context"
	"errors"

	"dalmatiner/internal/account"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/columns"
)

var errDiskFull = errors.New("the disk is nearly full")

// errReplaying is for senders that cannot be made to wait.
var errReplaying = errors.New("new series wait until the log is in memory")

// assign returns the column of a series, which it creates when there is none and
// gives a column when it has none. The error says why it has none.
func (x *Session) assign(key []byte) (columns.Position, error) {
	id := x.b.SeriesID(key)
	if p, ok := x.s.columns.Locate(id, key); ok {
		return p, nil
	}
	if x.s.pressure.DiskFull() {
		return columns.Position{}, errDiskFull
	}
	if x.neverWait && x.s.behind.Load() != nil {
		return columns.Position{}, errReplaying
	}
	if err := x.s.awaitReplay(context.Background()); err != nil {
		return columns.Position{}, err
	}
	p, lsn, err := x.filler.Define(id, key)
	x.writer.Defined(lsn)
	return p, err
}

func (x *Session) notAssigned(err error, n uint64) {
	switch {
	case errors.Is(err, buckets.ErrUnknown):
		x.refuse(account.BucketDeleted, n)
	case errors.Is(err, columns.ErrSeriesLimit):
		x.refuse(account.SeriesLimit, n)
	case errors.Is(err, columns.ErrNoMemory):
		x.refuse(account.Memory, n)
	case errors.Is(err, errDiskFull):
		x.refuse(account.DiskFull, n)
	case errors.Is(err, columns.ErrSameHash):
		x.refuse(account.SameHash, n)
	case errors.Is(err, errReplaying):
		x.refuse(account.Overload, n)
	default:
		x.err = err
	}
}

package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"dalmatiner/internal/fsck"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/version"
)

// Operations are what an operator asks of a running store. Its methods may be
// called concurrently.
type Operations struct {
	s         *Store
	checking  sync.Mutex // one check at a time
	snapshots sync.Mutex // one change of the snapshots at a time; taken before flushMu
}

// NewOperations returns the operations of a store. There should be one.
func NewOperations(s *Store) *Operations { return &Operations{s: s} }

// ErrBusy is returned while another call of the same kind is under way.
var ErrBusy = errors.New("another one is under way")

// Check verifies every committed file of the running store: every block, every
// chunk with its aggregates against recomputation (I4), the MANIFEST, the log
// and the catalogue. It holds no lock while it reads. Damage is in the report
// and counted like damage met by a reader. The error is that of ctx, or ErrBusy.
func (op *Operations) Check(ctx context.Context, o fsck.Options) (fsck.Report, error) {
	if !op.checking.TryLock() {
		return fsck.Report{}, fmt.Errorf("check: %w", ErrBusy)
	}
	defer op.checking.Unlock()
	s := op.s
	r, err := fsck.CheckRunning(ctx, s.o.FS, s.o.Dir, inUse{s}, o)
	for _, d := range r.Damages {
		s.reportDamage("check", errors.New(d.String()))
	}
	return r, err
}

// inUse is the store as a check sees it beside its files.
type inUse struct{ s *Store }

func (u inUse) Names(take func(segment.Series) error) error { return u.s.catalogue.Load(take) }

func (u inUse) Tombstones(bucket uint64) version.Tombstones { return u.s.tombs(bucket) }

func (u inUse) HasBucket(id uint64) bool { return u.s.buckets.ID(id) != nil }

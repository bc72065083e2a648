package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/inventory"
	"dalmatiner/internal/store/snapshot"
)

// Operations are what an operator asks of a running store. Its methods may be
// called concurrently.
type Operations struct {
	s         *Store
	checking  sync.Mutex // one check at a time
	snapshots *snapshot.Dir
}

// NewOperations returns the operations of a store. There should be one.
func NewOperations(s *Store) *Operations {
	return &Operations{s: s, snapshots: snapshot.New(s.o.FS, s.o.Dir)}
}

// ErrBusy is returned while another call of the same kind is under way.
var ErrBusy = errors.New("another one is under way")

// Check verifies every committed file of the running store: every block, every
// chunk with its aggregates against recomputation (I4), the MANIFEST, the log
// and the catalogue. It holds no lock while it reads. Damage is in the report
// and counted like damage met by a reader. Damaged files of tags are written again behind it.
// The error is that of ctx, or ErrBusy.
func (op *Operations) Check(ctx context.Context, o fsck.Options) (fsck.Report, error) {
	if !op.checking.TryLock() {
		return fsck.Report{}, fmt.Errorf("check: %w", ErrBusy)
	}
	defer op.checking.Unlock()
	s := op.s
	r, err := fsck.CheckRunning(ctx, s.o.FS, s.o.Dir, inUse{s}, o)
	for _, d := range r.Damages {
		s.damage.Report("check", errors.New(d.String()))
	}
	if err != nil || !r.TagsDamaged {
		return r, err
	}
	rewritten, failed := s.tags.Rewrite(ctx)
	if r.Rewritten = rewritten; failed != nil {
		r.NotRewritten = failed.Error()
	}
	return r, ctx.Err()
}

// Snapshot takes a snapshot, as snapshot.Dir.Take says.
func (op *Operations) Snapshot(ctx context.Context, name string) (snapshot.Info, error) {
	return op.snapshots.Take(ctx, name, inUse{op.s})
}

// Snapshots lists the snapshots by name.
func (op *Operations) Snapshots() ([]snapshot.Info, error) { return op.snapshots.List() }

// DeleteSnapshot deletes a snapshot. The error wraps snapshot.ErrName or snapshot.ErrUnknown.
func (op *Operations) DeleteSnapshot(name string) error { return op.snapshots.Delete(name) }

// Segments lists the committed segments in the order of their numbers. With
// a bucket it lists those that hold something of it, and counts that only.
func (op *Operations) Segments(ctx context.Context, bucket string) ([]inventory.Segment, error) {
	s := op.s
	if bucket == "" {
		return inventory.List(ctx, s.o.FS, s.o.Dir, s.Buckets)
	}
	b, err := s.buckets.ByName(bucket)
	if err != nil {
		return nil, err
	}
	return inventory.Of(ctx, s.o.FS, s.o.Dir, b.Info())
}

// Cache is a pool of the process's memory.
type Cache struct {
	Name  string `json:"name"`
	Holds string `json:"holds"`
	Bytes int64  `json:"bytes"`
	Limit int64  `json:"limit"` // 0 = only that of the process

	// Unit is what Bytes and Limit count where that is not bytes.
	Unit string `json:"unit,omitempty"`
}

// Caches lists all pools of the process's memory, and the open files.
func (op *Operations) Caches() []Cache {
	op.s.upkeep.WatchIndexes()
	list := []Cache{}
	for _, p := range op.s.o.Memory.Pools() {
		list = append(list, Cache{Name: p.Name, Holds: p.Holds, Bytes: p.Use, Limit: p.Limit})
	}
	f := op.s.files.Stats()
	list = append(list,
		Cache{Name: "segment-files",
			Holds: "open files of segments; the one not read for longest is closed at the limit",
			Bytes: f.Open, Limit: f.Limit, Unit: "files"})
	return list
}

// inUse is the store as checks and snapshots see it beside its files.
type inUse struct{ s *Store }

func (u inUse) Names(take func(segment.Series) error) error { return u.s.disk.Catalogue.Load(take) }

func (u inUse) Tombstones(bucket uint64) version.Tombstones {
	return u.s.columns.Tombstones(bucket)
}

func (u inUse) HasBucket(id uint64) bool { return u.s.buckets.ID(id) != nil }

func (u inUse) Flush(ctx context.Context) error {
	_, err := u.s.Flush(ctx)
	return err
}

func (u inUse) Still(fill func(snapshot.Parts) error) error {
	u.s.flusher.Gate().Lock()
	defer u.s.flusher.Gate().Unlock()
	if err := u.s.pressure.Failure(); err != nil {
		return err
	}
	return fill(snapshot.Parts{
		Manifest:  u.s.disk.Manifest,
		Catalogue: u.s.disk.Catalogue,
		Log:       u.s.disk.Log,
	})
}

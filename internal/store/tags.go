package store

import (
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/store/tagstore"
)

// Tags returns the tags of series. Changes of them are acknowledged as points are: the token of a
// change is one of the intake.
func (s *Store) Tags() *tagstore.Store { return s.tags }

// newTags returns the tags of a store, empty until the files of the directory are known.
func newTags(s *Store) *tagstore.Store {
	return tagstore.New(tagstore.Options{
		FS: s.o.FS, Dir: s.o.Dir, Logger: s.o.Logger, Now: s.o.Now, Shared: s.o.SharedTags,
		Of: s.dir.Origin, Ledger: s.ledger, Pressure: s.pressure, Memory: s.o.Memory, Damage: &s.damage,
		Deletions: &s.columns.Deletions,
		Incarnation: func(bucket uint64, key []byte) (n uint64, ok bool) {
			b := s.buckets.ID(bucket)
			if b != nil && b.Incarnations.Len() > 0 {
				n = b.Incarnations.Get(b.SeriesID(key))
			}
			return n, b != nil
		},
		Deleted:    s.buckets.WasDeleted,
		Gate:       func() *version.Gate { return s.flusher.Gate() },
		Commit:     func(e manifest.Edit) error { return s.flusher.Commit(e) },
		Sync:       func() error { return s.disk.Log.Sync() },
		TakeNumber: s.dir.TakeNumber, FlushBytes: s.o.FlushBytes, MergeFrom: s.o.mergeTags,
	})
}

// tagPool is the memory of tags.
func tagPool(t *tagstore.Store) memory.Pool {
	return memory.Pool{
		Name: "tags", Holds: "tags of series with their index, and changes of them not yet flushed",
		Use: func() int64 { return t.Index().Bytes() + t.Unflushed() }}
}

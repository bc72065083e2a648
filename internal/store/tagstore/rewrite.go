package tagstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/mirror"
	"dalmatiner/internal/host/durable"
)

// ErrUnread says that nothing can stand for a damaged file: the start could not read all of it, so
// that the index does not have what it had.
var ErrUnread = errors.New("the start could not read all tags: no file of them is replaced " +
	"before one can")

// Rewrite reads all committed files. Whoever asks for it has named the damage. A damaged copy is
// written again from the other one; what both copies lack is in memory, and a new base is written
// in place of the files. Damaged files are kept in lost+found. It returns the paths of the copies
// that were written again or replaced. Those that find the disk full are written again behind a
// later flush.
func (s *Store) Rewrite(ctx context.Context) (rewritten []string, err error) {
	<-s.loaded
	s.merging.Lock()
	defer s.merging.Unlock()
	s.mu.Lock()
	files, unread := slices.Clone(s.files), s.unread
	s.torn = false
	s.mu.Unlock()
	var spoilt []string
	for i := range files {
		f := &files[i]
		report, err := mirror.Read(s.o.FS, s.o.Dir, s.o.Of(), f, func([]byte) error { return ctx.Err() })
		if err != nil {
			return rewritten, fmt.Errorf("tags: %w", err)
		}
		if report.Lost {
			spoilt = append(spoilt, datadir.FilePaths(f.Name())...)
			continue
		}
		mended, err := s.mend(f, &report)
		rewritten = append(rewritten, mended...)
		if err != nil {
			return rewritten, err
		}
	}
	if len(spoilt) == 0 {
		return rewritten, nil
	}
	if unread {
		return rewritten, ErrUnread
	}
	s.mu.Lock()
	s.spoilt = true
	s.mu.Unlock()
	if err := s.merge(ctx, true); err != nil {
		return rewritten, err
	}
	s.counters.rewritten.Add(int64(len(spoilt)))
	s.o.Logger.Warn("both copies of a file of tags were damaged: a new base was written from "+
		"memory, nothing is lost; what there was of them is in "+datadir.LostFound, "files", spoilt)
	return append(rewritten, spoilt...), nil
}

// name names and counts the damage of single copies.
func (s *Store) name(r *mirror.Report) {
	for i := range r.Bad {
		s.o.Damage.Report("tags "+r.Bad[i].File, errors.New(r.Bad[i].String()))
	}
}

// mend writes the damaged copies of a file again, of which nothing is lost. While the disk is full
// that waits for a later flush, and after an error it is tried again then.
func (s *Store) mend(f *manifest.File, r *mirror.Report) ([]string, error) {
	if len(r.Bad) == 0 {
		return nil, nil
	}
	mended, err := mirror.Mend(s.o.FS, s.o.Dir, s.o.Of(), f, r)
	s.counters.rewritten.Add(int64(len(mended)))
	if len(mended) > 0 {
		s.o.Logger.Warn("damaged copies of tags were written again from the others; what there was of "+
			"them is in "+datadir.LostFound, "files", mended)
	}
	path := datadir.FilePaths(f.Name())[0]
	if durable.IsFull(err) {
		s.o.Logger.Warn("the disk is full: a damaged copy of tags is written again behind a later flush",
			"file", path, "err", err)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.torn = true
		return mended, nil
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.torn = true
		return mended, fmt.Errorf("tags: writing %s again: %w", path, err)
	}
	return mended, nil
}

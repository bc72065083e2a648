package tagstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/mirror"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write/logrecord"
)

const (
	// mergeFrom is how many bytes changes have at least before a base is written.
	mergeFrom = 1 << 20

	// mergeFiles of changes are merged however short they are: a start reads all.
	mergeFiles = 256
)

// due reports whether changes have half as many bytes as the base. The lock is held.
func (s *Store) due() bool {
	var base, changes int64
	n := 0
	for i := range s.files {
		if f := &s.files[i]; f.Kind == manifest.TagBase {
			base += f.Bytes
		} else {
			changes += f.Bytes
			n++
		}
	}
	return !s.unread && n > 0 && (s.spoilt || n >= mergeFiles || changes >= max(base/2, s.o.MergeFrom))
}

func (s *Store) wantMerge() {
	select {
	case s.want <- struct{}{}:
	default: // one is wanted already
	}
}

// Run does what is due whenever something is, until stop is closed.
func (s *Store) Run(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-s.want:
		}
		if err := s.Maintain(context.Background()); err != nil && !errors.Is(err, version.ErrClosed) {
			s.o.Logger.Warn("the files of tags stay as they are until the next flush", "err", err)
		}
	}
}

// Maintain writes copies again that are still to be written, and merges if that is due.
func (s *Store) Maintain(ctx context.Context) error {
	s.mu.Lock()
	torn := s.torn
	s.mu.Unlock()
	if torn {
		if _, err := s.Rewrite(ctx); err != nil {
			return err
		}
	}
	return s.Merge(ctx, false)
}

// Merge writes the present state into a base in place of all files that are committed, if that is
// due, or always. Flushes and changes go on beside it. After an error all is as it was, but for
// one that ends the store.
func (s *Store) Merge(ctx context.Context, always bool) error {
	<-s.loaded
	s.merging.Lock()
	defer s.merging.Unlock()
	return s.merge(ctx, always)
}

// merge is Merge behind its lock.
func (s *Store) merge(ctx context.Context, always bool) error {
	s.mu.Lock()
	old, past := slices.Clone(s.files), s.past
	due := s.due() || s.spoilt && !s.unread || always && !s.unread && len(old) > 0
	s.mu.Unlock()
	if !due {
		return nil
	}
	s.Forget()
	f := manifest.File{Kind: manifest.TagBase, Seq: s.o.TakeNumber(), Past: past}
	for i := range old {
		f.Replaces = max(f.Replaces, old[i].Seq)
	}
	f, err := s.writeBase(ctx, f)
	if err != nil {
		return err
	}
	// The base may have what the log has only in memory, and not all that is in front of it.
	if err = s.o.Sync(); err != nil {
		return errors.Join(err, mirror.Remove(s.o.FS, s.o.Dir, f.Name()))
	}
	if err := s.replace(f, old); err != nil {
		return err
	}
	s.counters.merges.Add(1)
	s.remove(old)
	return nil
}

// writeBase writes the state of the index. What changes meanwhile may be in it or not: it is in
// a file behind it.
func (s *Store) writeBase(ctx context.Context, f manifest.File) (manifest.File, error) {
	w, err := mirror.Create(s.o.FS, s.o.Dir, s.o.Of(), f)
	if err != nil {
		return f, err
	}
	err = s.index.Blocks(func(block []byte, rows int) error {
		return errors.Join(ctx.Err(), w.Add(block, rows))
	}, func(c *tags.Change) error {
		return w.Add(tags.AppendChange(logrecord.AppendTags(nil, c.Bucket), c), 1)
	})
	if err != nil {
		return f, errors.Join(err, w.Abort())
	}
	return w.Finish()
}

// replace commits the base in place of the files.
func (s *Store) replace(f manifest.File, old []manifest.File) error {
	gate := s.o.Gate()
	gate.Lock()
	defer gate.Unlock()
	if gate.IsClosed() {
		return errors.Join(version.ErrClosed, mirror.Remove(s.o.FS, s.o.Dir, f.Name()))
	}
	e := manifest.Edit{Files: manifest.FileChanges{Add: []manifest.File{f}}, NextSeq: f.Seq + 1}
	for i := range old {
		e.Files.Remove = append(e.Files.Remove, old[i].Name())
	}
	s.mu.Lock()
	e.Files.Lost = s.lacking.losses
	s.mu.Unlock()
	if err := s.o.Commit(e); err != nil {
		if errors.Is(err, manifest.ErrUnwritten) {
			err = errors.Join(err, mirror.Remove(s.o.FS, s.o.Dir, f.Name()))
		}
		return fmt.Errorf("merging the files of tags: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lacking.losses = nil
	s.files = append([]manifest.File{f}, slices.DeleteFunc(s.files, func(f manifest.File) bool {
		return slices.Contains(e.Files.Remove, f.Name())
	})...)
	return nil
}

// remove removes files that do not count any more. Where something was lost, they are kept in
// lost+found.
func (s *Store) remove(old []manifest.File) {
	s.mu.Lock()
	spoilt := s.spoilt
	s.spoilt = false
	s.mu.Unlock()
	for i := range old {
		var err error
		if spoilt {
			for _, path := range datadir.FilePaths(old[i].Name()) {
				err = errors.Join(err, mirror.SetAside(s.o.FS, s.o.Dir, path))
			}
		}
		if err == nil {
			err = mirror.Remove(s.o.FS, s.o.Dir, old[i].Name())
		}
		if err != nil {
			s.o.Logger.Warn("a merged file of tags stays until the next start", "number", old[i].Seq, "err",
				err)
		}
	}
}

package flush

import (
	"errors"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
)

// Side is something that a node keeps beside points. Its records stand in the log between those
// of points, and each flush writes what came since the one before into files of its own, which
// the MANIFEST names. DESIGN.md says what a side has to do, and what is done for it. But for
// Unflushed, one goroutine at a time calls, with the gate held.
type Side interface {
	// Take takes what the records of the log below end said since the last Take that was
	// committed. The commit lock of the ledger is held alone, so that nothing is written here.
	Take(end wal.LSN)
	// Write writes what was taken into files, of the number seq, makes them durable with their
	// names, and adds them to e. It does nothing where nothing was taken.
	Write(seq uint64, e *manifest.FileChanges) error
	// Committed says that the edit with what Write added is permanent.
	Committed()
	// PutBack gives back what was taken, and removes what Write wrote.
	PutBack()
	// Unflushed returns the bytes of memory that a flush would free.
	Unflushed() int64
}

// writeSides does step 2 for what is kept beside points.
func (f *Flusher) writeSides(u *unit, seq uint64) error {
	for _, s := range f.o.Sides {
		if err := s.Write(seq, &u.files); err != nil {
			return err
		}
	}
	if len(u.files.Add)+len(u.files.Remove) > 0 {
		f.o.Step(StepSidesSynced)
	}
	return nil
}

// writeAll writes the segment, the files of the sides, and the catalogue. After an error the
// segment is discarded.
func (f *Flusher) writeAll(u *unit, seq uint64) (seg *version.Segment, err error) {
	seg, err = f.write(u, seq)
	if err == nil {
		err = f.writeSides(u, seq)
	}
	if err == nil {
		err = f.putCatalogue(u)
	}
	if err != nil && seg != nil {
		err = errors.Join(err, seg.Reader.Close(), f.o.Dir.Discard(&seg.Meta))
	}
	return seg, err
}

func (f *Flusher) takeSides(end wal.LSN) {
	for _, s := range f.o.Sides {
		s.Take(end)
	}
}

func (f *Flusher) putBackSides() {
	for _, s := range f.o.Sides {
		s.PutBack()
	}
}

func (f *Flusher) committedSides() {
	for _, s := range f.o.Sides {
		s.Committed()
	}
}

// unflushedSides returns the bytes of memory of what is kept beside points that a flush would free.
func (f *Flusher) unflushedSides() (n int64) {
	for _, s := range f.o.Sides {
		n += s.Unflushed()
	}
	return n
}

package events

import (
	"errors"
	"slices"

	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/model/buckets"
)

// flushing is what one flush takes, from Take to Committed or PutBack.
type flushing struct {
	tables   []*table
	account  []byte
	position wal.LSN
	missing  []manifest.LostFile
	back     []manifest.FileName
	file     *file
}

// Take takes everything that is in memory for a flush. It is called in a moment in which nothing
// is in the log and not in the tables, or the other way round. Readers see the same events as
// before. This and the next methods are those of flush.Side.
func (s *Local) Take(end wal.LSN) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.active.empty() {
		s.frozen = append(s.frozen, s.active)
		s.active = newTable()
	}
	s.flushing = flushing{
		tables:   slices.Clone(s.frozen),
		account:  s.o.Account.Snapshot(),
		position: end,
		missing:  s.missing,
		back:     s.back,
	}
}

// WriteFile writes what was taken into a durable file of a number, and adds it and the account to
// an edit of the MANIFEST. After an error PutBack must follow.
func (s *Local) WriteFile(seq uint64, e *manifest.FileChanges) error {
	f := &s.flushing
	e.EventAccount, e.EventAccountLSN = f.account, uint64(f.position)
	for _, lost := range f.missing {
		lost.Noted = true
		e.Lost = append(e.Lost, lost)
	}
	e.Found = append(e.Found, f.back...)
	if !slices.ContainsFunc(f.tables, func(t *table) bool { return !t.empty() }) {
		return nil
	}
	w, err := s.create(seq)
	if err != nil {
		return err
	}
	meta := eventfile.Meta{Position: uint64(f.position), Account: f.account}
	if err := s.fill(w, &meta, f.tables); err != nil {
		return errors.Join(err, w.Abort())
	}
	if f.file, err = s.finish(w, &meta); f.file != nil {
		e.Add = append(e.Add, f.file.File)
	}
	return err
}

// fill writes the events of all tables.
func (s *Local) fill(w *eventfile.Writer, meta *eventfile.Meta, tables []*table) error {
	s.mu.RLock()
	all := ids(tables)
	s.mu.RUnlock()
	for _, id := range all {
		info, ok := s.o.ByID(id)
		if !ok {
			continue
		}
		written, err := s.copyTo(w, &info, tables, nil, func(int64) error { return nil })
		if err != nil {
			return err
		}
		if written {
			meta.Buckets = append(meta.Buckets, info)
		}
	}
	for _, t := range tables {
		for _, l := range t.lost {
			s.addLost(w, l)
		}
	}
	return nil
}

// yieldEvery is after how many events copyTo says that it is a good moment to yield.
const yieldEvery = 64

// copyTo writes the events of a bucket that have not expired, and reports whether there were any.
// yield is called often, with the memory that this takes, and its error ends it.
func (s *Local) copyTo(w *eventfile.Writer, info *buckets.Info, tables []*table, files []*file,
	yield func(held int64) error) (written bool, err error) {
	m := newMerged(s, info.ID, s.o.livesFrom(info), maxTime, tables, files, false)
	lives := s.o.livesFrom(info)
	var unread error
	m.damaged = func(f *file, block int, err error) {
		s.o.Damage(s.o.name(f.Seq), err)
		var d *eventfile.DamageError
		if errors.As(err, &d) && d.Read {
			unread = errors.Join(unread, err) // it may be read the next time
			return
		}
		b := &f.reader.Blocks[block]
		s.addLost(w, eventfile.LostRange{Bucket: info.ID, First: b.First, Last: b.Last, Events: b.Events})
	}
	n := 0
	for e := m.next(); e != nil; e = m.next() {
		if n++; n%yieldEvery == 0 {
			if err := yield(m.memory() + w.MemoryBytes()); err != nil {
				return written, err
			}
		}
		if e.Time >= lives {
			written = true
			if err := w.Add(info.ID, e); err != nil {
				return written, err
			}
		}
		m.done()
	}
	return written, unread
}

// addLost notes lost events in a file, unless they would have expired or their bucket is gone.
func (s *Local) addLost(w *eventfile.Writer, l eventfile.LostRange) {
	if info, ok := s.o.ByID(l.Bucket); ok && l.Last >= s.o.livesFrom(&info) {
		w.AddLost(l)
	}
}

// create begins a file. Its number is never used again.
func (s *Local) create(number uint64) (*eventfile.Writer, error) {
	return eventfile.Create(s.o.FS, s.o.path(number)+tempSuffix, s.o.file(number))
}

const tempSuffix = ".tmp"

// finish makes a file durable under its name and opens it. It is nil where nothing is in it.
func (s *Local) finish(w *eventfile.Writer, meta *eventfile.Meta) (*file, error) {
	path := s.o.path(w.Number())
	info, err := w.Finish(meta)
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	if len(info.Blocks) == 0 && len(info.Lost) == 0 {
		return nil, s.o.FS.Remove(path + tempSuffix)
	}
	if err = s.o.FS.Rename(path+tempSuffix, path); err == nil {
		err = durable.SyncDir(s.o.FS, s.o.FS.PathDir(path))
	}
	if err != nil {
		return nil, errors.Join(err, s.o.FS.Remove(path+tempSuffix))
	}
	r, _, err := eventfile.Open(s.o.FS, path, s.o.file(w.Number()))
	if err != nil {
		return nil, errors.Join(err, s.o.FS.Remove(path))
	}
	return &file{File: r.File(), reader: r}, nil
}

// Committed moves readers from the tables to the file.
func (s *Local) Committed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.flushing
	s.flushing = flushing{}
	if f.file != nil {
		s.add(f.file)
	}
	s.epoch++
	s.Merger.Want()
	for _, t := range f.tables {
		s.o.Pending(-t.bytes)
	}
	s.frozen = s.frozen[len(f.tables):]
	if len(f.missing)+len(f.back) > 0 {
		s.missing, s.back = nil, nil
	}
}

// PutBack gives a flush up that is not committed: the next one takes what this one would have
// written.
func (s *Local) PutBack() {
	if f := s.flushing.file; f != nil {
		s.remove([]*file{f})
	}
	s.flushing = flushing{}
}

// Unflushed returns the bytes of events in memory, which a flush would free.
func (s *Local) Unflushed() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := s.active.bytes
	for _, t := range s.frozen {
		n += t.bytes
	}
	return n
}

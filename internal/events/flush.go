package events

import (
	"cmp"
	"errors"
	"slices"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/durable"
	"dalmatiner/internal/eventfile"
)

// Flush is what one flush takes, from Capture to Publish or Abort.
type Flush struct {
	s       *Local
	tables  []*table
	account []byte
	file    *file
}

// Capture takes everything that is in memory for a flush. It is called in a moment in which nothing
// is in the log and not in the tables, or the other way round. Readers see the same events as before.
func (s *Local) Capture() *Flush {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.active.empty() {
		s.frozen = append(s.frozen, s.active)
		s.active = newTable()
	}
	return &Flush{s: s, tables: slices.Clone(s.frozen), account: s.o.Account.Snapshot()}
}

// Account returns the account of events as it was at the Capture.
func (f *Flush) Account() []byte { return f.account }

// Write writes what was captured into a durable file, and returns what the MANIFEST has to say of
// it: nil where there is nothing to write. number is that of the file, position that of the log at
// the Capture. After an error, Abort must follow.
func (f *Flush) Write(number, position uint64) (*File, error) {
	s := f.s
	if !slices.ContainsFunc(f.tables, func(t *table) bool { return !t.empty() }) {
		return nil, nil
	}
	w, err := s.create(number)
	if err != nil {
		return nil, err
	}
	meta := eventfile.Meta{Position: position, Account: f.account}
	if err := f.fill(w, &meta); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	f.file, err = s.finish(w, &meta)
	if f.file == nil {
		return nil, err
	}
	return &f.file.File, err
}

// fill writes the events of all tables.
func (f *Flush) fill(w *eventfile.Writer, meta *eventfile.Meta) error {
	s := f.s
	s.mu.RLock()
	all := ids(f.tables)
	s.mu.RUnlock()
	for _, id := range all {
		info, ok := s.o.ByID(id)
		if !ok {
			continue
		}
		written, err := s.copyTo(w, &info, f.tables, nil)
		if err != nil {
			return err
		}
		if written {
			meta.Buckets = append(meta.Buckets, info)
		}
	}
	for _, t := range f.tables {
		for _, l := range t.lost {
			s.addLost(w, l)
		}
	}
	return nil
}

// copyTo writes the events of a bucket that have not expired, and reports whether there were any.
func (s *Local) copyTo(w *eventfile.Writer, info *buckets.Info, tables []*table, files []*file) (written bool, err error) {
	m := newMerged(s, info.ID, s.livesFrom(info), maxTime, tables, files)
	lives := s.livesFrom(info)
	var unread error
	m.damaged = func(f *file, block int, err error) {
		s.o.Damage(s.o.name(f.Number), err)
		var d *eventfile.DamageError
		if errors.As(err, &d) && d.Read {
			unread = errors.Join(unread, err) // it may be read the next time
			return
		}
		b := &f.reader.Blocks[block]
		s.addLost(w, eventfile.Lost{Bucket: info.ID, First: b.First, Last: b.Last, Events: b.Events})
	}
	for e := m.next(); e != nil; e = m.next() {
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
func (s *Local) addLost(w *eventfile.Writer, l eventfile.Lost) {
	if info, ok := s.o.ByID(l.Bucket); ok && l.Last >= s.livesFrom(&info) {
		w.AddLost(l)
	}
}

// create begins a file. Its number is never used again.
func (s *Local) create(number uint64) (*eventfile.Writer, error) {
	return eventfile.Create(s.o.FS, s.o.path(number)+tempSuffix, number)
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
		err = durable.SyncDir(s.o.FS, s.o.Dir)
	}
	if err != nil {
		return nil, errors.Join(err, s.o.FS.Remove(path+tempSuffix))
	}
	r, _, err := eventfile.Open(s.o.FS, path, w.Number())
	if err != nil {
		return nil, errors.Join(err, s.o.FS.Remove(path))
	}
	return &file{File: File{Number: w.Number(), Bytes: info.Bytes, Ranges: rangesOf(info.Blocks, info.Lost)}, reader: r}, nil
}

// Publish moves readers from the tables to the file, which is committed.
func (f *Flush) Publish() {
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.file != nil {
		s.add(f.file)
		slices.SortFunc(s.files, func(a, b *file) int { return cmp.Compare(a.Number, b.Number) })
	}
	s.epoch++
	for _, t := range f.tables {
		s.o.Pending(-t.bytes)
	}
	s.frozen = s.frozen[len(f.tables):]
}

// Abort gives a flush up that is not committed: the next one takes what this one would have
// written. The file goes, unless it may have been committed.
func (f *Flush) Abort(committed bool) error {
	if f.file == nil || committed {
		return nil
	}
	return f.s.o.FS.Remove(f.s.o.path(f.file.Number))
}

package store

import (
	"errors"
	"fmt"

	"dalmatiner/internal/account"
	"dalmatiner/internal/backpressure"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/catalogue"
	"dalmatiner/internal/clock"
	"dalmatiner/internal/columns"
	"dalmatiner/internal/damage"
	"dalmatiner/internal/datadir"
	"dalmatiner/internal/flush"
	"dalmatiner/internal/ledger"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/reader"
	"dalmatiner/internal/recovery"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/version"
	"dalmatiner/internal/wal"
)

const minLogFile = 2 << 10 // less is not worth a file

func (s *Store) path(elem ...string) string {
	return s.o.FS.PathJoin(append([]string{s.o.Dir}, elem...)...)
}

// Open opens the data directory and makes it where there is none. The points of
// the log come into memory while the store is in use already: who wants to write
// to a group of series or to read it waits for its part; new series, deletions and
// flushes by hand wait for all. It fails on
// a directory that another process has open or that a newer version wrote, and
// on failing I/O; torn, damaged and missing files are named, counted and set
// aside, and the rest is served (I6).
func Open(o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	s, err := open(o, nil)
	for again := (*startAgain)(nil); errors.As(err, &again); {
		s, err = open(o, again)
	}
	return s, err
}

// open opens the data directory, if need be behind a start that found records of the
// log lost; that one's directory is closed.
func open(o Options, again *startAgain) (*Store, error) {
	s := &Store{
		o: o, clock: clock.New(o.Now), damage: damage.Notes{Logger: o.Logger}, buckets: buckets.NewRegistry[*columns.Bucket](), account: account.New(),
		replayOver: make(chan struct{}), stop: make(chan struct{}),
		maxTombstones: maxTombstones, deleteSlice: deleteSlice,
		mergeWant: make(chan struct{}, 1),
	}
	s.ownerless, s.lostLog = flush.NewLosses(s.account, LostRecord), flush.NewLosses(s.account, LostInReplay)
	if again != nil {
		for _, name := range again.damage {
			s.damage.Add(name, false)
		}
	}
	s.takeShares()
	s.pressure = backpressure.New(backpressure.Options{
		FS: o.FS, Dir: o.Dir, Logger: o.Logger, FlushBytes: s.o.FlushBytes, LateMemory: s.o.LateMemory, MinFree: o.MinFree,
		Memory: s.memory, HeadBytes: s.headBytes, NewSeries: func() int64 { return int64(s.columns.Unflushed.Len()) },
		Stop: s.stop, OnFatal: o.OnFatal,
	})
	s.sealers = backpressure.NewSealers(s.pressure)
	s.dir = version.NewDir(o.FS, o.Dir, s.files, o.Logger)
	s.versions = version.New(s.dir.Retire)
	s.ledger = ledger.New(ledger.Options{
		Account: s.account, Clock: s.clock, Exists: func(id uint64) bool { return s.buckets.ID(id) != nil },
		DiskFull: s.pressure.DiskFull, FreeSpace: s.pressure.Free,
	})
	s.columns = columns.New(columns.Options{
		Buckets: s.buckets, Log: s.ledger, Clock: s.clock, Versions: s.versions,
		ChunkNeed: firstChunkNeed, NewSeries: s.newSeries,
	})
	s.reader = reader.New(reader.Options{Versions: s.versions, Index: &s.columns.Index, Groups: &s.columns.Groups, Damage: &s.damage, Replay: s.replaySeries})
	s.lastFlush.Store(s.clock.Steady())
	lock, err := datadir.Acquire(o.FS, o.Dir, s.damage.Report)
	if err != nil {
		return nil, err
	}
	s.lock = lock
	state, err := s.openManifest()
	if err != nil {
		return nil, errors.Join(formatError(err), s.lock.Close())
	}
	known := s.columns.NewOwnership(recovery.ReplayFrom(state), &s.damage, func(bytes int64) { s.replayBytes.Add(bytes) })
	if err := s.openFiles(state, known); err != nil {
		return nil, errors.Join(formatError(err), s.closeFiles())
	}
	s.merges = s.newCompactor()
	s.addPools()
	s.columns.Use(s.nameStock)
	if err := s.replay(state, known, again); err != nil {
		s.Crash()
		return nil, err
	}
	s.pressure.CheckDisk()
	s.countNames()
	s.memory.Look() // or what is taken before the first one would have all the memory
	return s, nil
}

// formatError says what to do about a file that another version of the program
// wrote.
func formatError(err error) error {
	for _, format := range []error{manifest.ErrFormat, segment.ErrFormat, wal.ErrFormat} {
		if errors.Is(err, format) {
			return fmt.Errorf("%w: use the program that wrote it, or move the data directory away and send the points again", err)
		}
	}
	return err
}

// openManifest reads the MANIFEST and what lies beside it, and returns the state to
// go on with.
func (s *Store) openManifest() (*manifest.State, error) {
	m, state, report, err := manifest.Open(s.o.FS, s.o.Dir, s.o.Logger)
	if err != nil {
		return nil, err
	}
	s.manifest = m
	for _, d := range report.Damaged {
		s.damage.Report("MANIFEST", errors.New(d.String()))
	}
	for _, what := range report.Lost {
		s.damage.Report("MANIFEST", errors.New("lost in both copies: "+what))
	}
	if report.Deferred != nil {
		s.o.Logger.Warn("the copies of the MANIFEST wait for room on the disk", "err", report.Deferred)
	}
	return s.planFiles(state, report.Created)
}

// openFiles opens everything that state names.
func (s *Store) openFiles(state *manifest.State, known *columns.Ownership) error {
	for _, b := range state.Buckets {
		bucket := s.newBucket(b)
		s.restoreIncarnations(bucket, state.Tombstones)
		s.restoreIncarnations(bucket, state.Remembered)
		s.buckets.Add(bucket)
	}
	s.versions.Publish(func(v *version.Version) {
		for _, b := range state.Buckets {
			v.Hide(b.ID, version.FromManifest(b.ID, state.Tombstones))
		}
	})
	s.raiseHighest(state.Highest)
	for _, d := range state.DeletedBuckets {
		s.buckets.NoteDeleted(d)
	}
	s.buckets.RaiseDeletionsFrom(state.DeletionsFrom)
	s.columns.Deletions.Forget(state.RememberAfter)
	s.columns.Deletions.Saw(max(state.Incarnation, s.buckets.DeletionsFrom()))
	s.columns.Groups.Skip(state.NextGroup)
	s.dir.RaiseNumber(max(state.NextSeq, 1))
	if state.Account != nil {
		if err := s.account.Restore(state.Account); err != nil {
			s.damage.Report("account in the MANIFEST", err)
		}
	}
	if err := s.openSegments(state); err != nil {
		return err
	}
	s.versions.Publish(s.showHoles)
	if err := s.openCatalogue(state, known); err != nil {
		return err
	}
	log, err := wal.Open(wal.Options{
		FS: s.o.FS, Dir: s.path(datadir.WAL), Sync: s.o.WALSync, Interval: s.o.WALInterval,
		MinLSN: wal.LSN(max(state.AccountLSN, known.Highest()+1)), Logger: s.o.Logger, OnFailure: s.pressure.Fail,
		// A log is trimmed file by file: a few of them must fit its limit.
		FileSize: min(wal.DefaultFileSize, max(s.o.WALMaxSize/8, minLogFile)),
	})
	s.log = log
	s.ledger.Use(log)
	return err
}

// closeFiles closes what a failed Open had opened.
func (s *Store) closeFiles() error {
	errs := []error{s.manifest.Close()}
	if s.catalogue != nil {
		errs = append(errs, s.catalogue.Close())
	}
	for _, seg := range s.versions.Close() {
		errs = append(errs, seg.Reader.Close())
	}
	return errors.Join(append(errs, s.lock.Close())...)
}

// catalogueMark is what a commit says of the catalogue.
func (s *Store) catalogueMark() uint64 {
	switch {
	case s.catalogue.Failed() != nil:
		return catalogue.MarkLost
	case s.namesUnread:
		return s.catalogue.Mark() | catalogue.NamesUnread
	}
	return s.catalogue.Mark()
}

// openCatalogue loads the series. A catalogue that does not open, that is older
// than the MANIFEST knows it to be, or that nothing was ever written to, beside
// segments, is rebuilt from them: one that is empty because all series have gone has
// a generation. One that was rebuilt without names that could not be read gets those.
func (s *Store) openCatalogue(state *manifest.State, known *columns.Ownership) error {
	dir := s.path(datadir.Catalogue)
	cat, err := catalogue.Open(s.o.FS, dir, s.o.Logger)
	segments := len(s.versions.Latest().Segments) > 0
	if at := catalogue.AtLeast(state.Catalogue, segments); err == nil && cat.Found() < at {
		err = errors.Join(cat.Close(), fmt.Errorf("%w: it opens in state %d, the MANIFEST knows state %d",
			catalogue.ErrDamaged, cat.Found(), at))
	}
	loaded, written := 0, false
	if err == nil {
		s.catalogue, written = cat, cat.Generation() > 0
		if loaded, err = s.loadCatalogue(known); errors.Is(err, catalogue.ErrDamaged) {
			err = errors.Join(err, cat.Close())
			s.catalogue = nil
		}
	}
	if errors.Is(err, catalogue.ErrDamaged) {
		s.damage.Report(datadir.Catalogue, err)
		where, err := catalogue.SetAside(s.o.FS, dir, s.path(datadir.LostFound))
		if err != nil {
			return err
		}
		s.o.Logger.Warn("the catalogue was set aside and is rebuilt from the segments and the log", "where", where)
		cat, err = catalogue.Open(s.o.FS, dir, s.o.Logger)
		if err != nil {
			return err
		}
		s.catalogue = cat
		return s.rebuildCatalogue(known, false)
	}
	switch {
	case err != nil:
		return err
	case state.Catalogue&catalogue.NamesUnread != 0 || segments && !written:
		return s.rebuildCatalogue(known, loaded > 0)
	case state.Catalogue == 0 && cat.Mark() > 0:
		return s.commitCatalogue() // from now on it is missed
	}
	return nil
}

func (s *Store) loadCatalogue(known *columns.Ownership) (n int, err error) {
	err = s.catalogue.Load(func(e segment.Series) error {
		n++
		return known.Restore(e)
	})
	known.Settle()
	return n, err
}

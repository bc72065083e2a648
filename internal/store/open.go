package store

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/account"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/catalogue"
	"dalmatiner/internal/clock"
	"dalmatiner/internal/damage"
	"dalmatiner/internal/durable"
	"dalmatiner/internal/head"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/recovery"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/version"
	"dalmatiner/internal/wal"
)

// The parts of a data directory.
const (
	walDir       = "wal"
	flushDir     = "flush"
	catalogueDir = "catalogue"
	lostDir      = recovery.LostDir
	lockFile     = "LOCK"
	versionFile  = "VERSION"
	manifestFile = manifest.FirstName

	tempSuffix = recovery.TempSuffix // of what does not count yet

	versionPrefix = "dalmatiner "
	formatNumber  = 2

	minLogFile = 2 << 10 // less is not worth a file
)

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
		o: o, clock: clock.New(o.Now), damage: damage.Notes{Logger: o.Logger}, buckets: buckets.NewRegistry[*bucket](), account: account.New(), relost: relost{cause: LostRecord}, lostLog: relost{cause: LostInReplay}, nameless: make(map[formerPlace]uint64),
		room: make(chan struct{}), replayOver: make(chan struct{}), stop: make(chan struct{}), urgent: make(chan struct{}),
		maxMergedFile: maxMergedFile, maxTombstones: maxTombstones, deleteSlice: deleteSlice,
		sealQueue: make(chan *head.Group, sealQueueLen), flushWant: make(chan struct{}, 1), mergeWant: make(chan struct{}, 1),
	}
	if again != nil {
		for _, name := range again.damage {
			s.damage.Add(name, false)
		}
	}
	s.budget()
	s.dir = version.NewDir(o.FS, o.Dir, s.files, o.Logger)
	s.versions = version.New(s.dir.Retire)
	s.lastFlush.Store(s.clock.Steady())
	if err := s.openDir(); err != nil {
		return nil, err
	}
	state, err := s.openManifest()
	if err != nil {
		return nil, errors.Join(formatError(err), s.lock.Close())
	}
	known := newBindings(s, state)
	if err := s.openFiles(state, known); err != nil {
		return nil, errors.Join(formatError(err), s.closeFiles())
	}
	if err := s.replay(state, known, again); err != nil {
		s.Crash()
		return nil, err
	}
	s.checkDisk()
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

// refuseForeign refuses a directory that holds something, and nothing of ours:
// most likely it is another program's, or that of the original.
func (s *Store) refuseForeign() error {
	names, err := s.o.FS.List(s.o.Dir)
	if err != nil || len(names) == 0 {
		return nil // there is no directory yet, or nothing in it
	}
	if slices.Contains(names, restoreTemp) {
		return fmt.Errorf("data directory %s holds a restore that was cut off (%s): remove the directory and restore again", s.o.Dir, restoreTemp)
	}
	// Of a first start that was broken off there may be the lock alone.
	if slices.ContainsFunc(names, ours) || slices.Contains(names, lockFile) {
		return nil
	}
	return fmt.Errorf("data directory %s holds %s and nothing of a Dalmatiner store: name an empty directory or one that does not exist yet",
		s.o.Dir, names[0])
}

// dirError says what to do where the system does not let the process write.
func (s *Store) dirError(err error) error {
	if oserror.IsPermission(err) {
		err = fmt.Errorf("%w: give it to the user that runs ddb, or name another one", err)
	}
	return fmt.Errorf("data directory %s: %w", s.o.Dir, err)
}

// openDir makes the directories, takes the lock and checks the version.
func (s *Store) openDir() error {
	fs := s.o.FS
	if err := s.refuseForeign(); err != nil {
		return err
	}
	for _, dir := range append([]string{walDir, lostDir}, segmentDirs[:]...) {
		if err := fs.MkdirAll(s.path(dir), 0o750); err != nil {
			return s.dirError(err)
		}
	}
	// The new entries must survive before anything inside them is promised.
	for _, dir := range []string{s.o.Dir, fs.PathDir(s.o.Dir)} {
		if err := durable.SyncDir(fs, dir); err != nil {
			return s.dirError(err)
		}
	}
	lock, err := fs.Lock(s.path(lockFile))
	if oserror.IsPermission(err) {
		return s.dirError(err)
	}
	if err != nil {
		return fmt.Errorf("data directory %s is in use by %s (or its LOCK cannot be taken): stop that one, or name another directory: %w",
			s.o.Dir, durable.HolderOf(s.path(lockFile)), err)
	}
	s.lock = lock
	if err := s.checkVersion(); err != nil {
		return errors.Join(err, lock.Close())
	}
	return nil
}

// Holder returns the process that has a data directory in use, or 0 when none is
// known.
func Holder(dir string) (pid int) { return durable.LockHolder(filepath.Join(dir, lockFile)) }

func (s *Store) checkVersion() error {
	text, err := readFile(s.o.FS, s.path(versionFile))
	if err != nil && !oserror.IsNotExist(err) {
		return err
	}
	fields, found := strings.CutPrefix(strings.TrimSpace(string(text)), versionPrefix)
	if found {
		n, err := strconv.Atoi(fields)
		if err == nil && n != formatNumber {
			return fmt.Errorf("data directory %s has format %d; this program reads format %d: use the ddb that wrote it, or name another directory; if no other ddb ever ran here, its file VERSION is damaged: write %q into it",
				s.o.Dir, n, formatNumber, versionPrefix+strconv.Itoa(formatNumber))
		}
		if err == nil {
			return nil
		}
	}
	if len(text) > 0 {
		s.reportDamage(versionFile, fmt.Errorf("%q is no version; taken as %d", text, formatNumber))
	}
	return writeFileSynced(s.o.FS, s.o.Dir, versionFile, []byte(fmt.Sprintf("%s%d\n", versionPrefix, formatNumber)))
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
		s.reportDamage("MANIFEST", errors.New(d.String()))
	}
	for _, what := range report.Lost {
		s.reportDamage("MANIFEST", errors.New("lost in both copies: "+what))
	}
	if report.Deferred != nil {
		s.o.Logger.Warn("the copies of the MANIFEST wait for room on the disk", "err", report.Deferred)
	}
	return s.planFiles(state, report.Created)
}

// openFiles opens everything that state names.
func (s *Store) openFiles(state *manifest.State, known *bindings) error {
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
	s.rememberAfter.Store(state.RememberAfter)
	s.sawIncarnation(max(state.Incarnation, s.buckets.DeletionsFrom()))
	s.groups.Skip(state.NextGroup)
	s.dir.RaiseNumber(max(state.NextSeq, 1))
	if state.Account != nil {
		if err := s.account.Restore(state.Account); err != nil {
			s.reportDamage("account in the MANIFEST", err)
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
		FS: s.o.FS, Dir: s.path(walDir), Sync: s.o.WALSync, Interval: s.o.WALInterval,
		MinLSN: wal.LSN(max(state.AccountLSN, known.highest+1)), Logger: s.o.Logger, OnFailure: s.fail,
		// A log is trimmed file by file: a few of them must fit its limit.
		FileSize: min(wal.DefaultFileSize, max(s.o.WALMaxSize/8, minLogFile)),
	})
	s.log = log
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

// catalogueState is the catalogue's generation as the MANIFEST keeps it; 0
// stands for none.
func catalogueState(c *catalogue.Catalogue) uint64 { return c.Generation() + 1 }

// catalogueMark is what a commit says of the catalogue.
func (s *Store) catalogueMark() uint64 {
	switch {
	case s.catalogue.Failed() != nil:
		return lostCatalogue
	case s.namesUnread:
		return catalogueState(s.catalogue) | unreadNames
	}
	return catalogueState(s.catalogue)
}

// lostCatalogue is a state that no catalogue reaches: the next start rebuilds it.
const lostCatalogue = unreadNames - 1

// openCatalogue loads the series. A catalogue that does not open, that is older
// than the MANIFEST knows it to be, or that nothing was ever written to, beside
// segments, is rebuilt from them: one that is empty because all series have gone has
// a generation. One that was rebuilt without names that could not be read gets those.
func (s *Store) openCatalogue(state *manifest.State, known *bindings) error {
	dir := s.path(catalogueDir)
	cat, err := catalogue.Open(s.o.FS, dir, s.o.Logger)
	if at := state.Catalogue &^ unreadNames; err == nil && catalogueState(cat) < at {
		err = errors.Join(cat.Close(), fmt.Errorf("%w: it opens in state %d, the MANIFEST knows state %d",
			catalogue.ErrDamaged, catalogueState(cat), at))
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
		s.reportDamage(catalogueDir, err)
		where, err := catalogue.SetAside(s.o.FS, dir, s.path(lostDir))
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
	if err != nil || state.Catalogue&unreadNames == 0 && (written || len(s.versions.Latest().Segments) == 0) {
		return err
	}
	return s.rebuildCatalogue(known, loaded > 0)
}

func (s *Store) loadCatalogue(known *bindings) (n int, err error) {
	err = s.catalogue.Load(func(e segment.Series) error {
		n++
		return known.restore(e)
	})
	known.settle()
	return n, err
}

func readFile(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	return text, errors.Join(err, f.Close())
}

// writeFileSynced replaces a small file atomically.
func writeFileSynced(fs vfs.FS, dir, name string, data []byte) error {
	path := fs.PathJoin(dir, name)
	f, err := fs.Create(path+tempSuffix, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(path+tempSuffix, path); err != nil {
		return err
	}
	return durable.SyncDir(fs, dir)
}

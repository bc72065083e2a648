package store

import (
	"errors"

	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/store/reader"
	"dalmatiner/internal/store/replay"
	"dalmatiner/internal/store/startup"
	"dalmatiner/internal/store/upkeep"
	"dalmatiner/internal/write/backpressure"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/intake"
	"dalmatiner/internal/write/ledger"
)

const minLogFile = 2 << 10 // less is not worth a file

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
	for again := (*replay.Again)(nil); errors.As(err, &again); {
		s, err = open(o, again)
	}
	return s, err
}

// newStore returns a store whose rooms are empty.
func newStore(o Options) *Store {
	s := &Store{
		o: o, clock: clock.New(o.Now), damage: damage.Notes{Logger: o.Logger},
		buckets: buckets.NewRegistry[*columns.Bucket](),
		stop:    make(chan struct{}),
	}
	s.Member = Member{s}
	takeShares(s)
	s.pressure = backpressure.New(backpressure.Options{
		FS: o.FS, Dir: o.Dir, Logger: o.Logger, FlushBytes: s.o.FlushBytes, LateMemory: s.o.LateMemory,
		MinFree: o.MinFree,
		Memory:  s.o.Memory, HeadBytes: s.arenas.InUse, NewSeries: func() int64 {
			return int64(s.columns.Unflushed.Len())
		},
		Stop: s.stop, OnFatal: o.OnFatal,
	})
	s.sealers = backpressure.NewSealers(s.pressure)
	s.dir = version.NewDir(o.FS, o.Dir, s.files, o.Logger)
	s.versions = version.New(s.dir.Retire)
	s.ledger = ledger.New(ledger.Options{
		Account: account.New(), Clock: s.clock, Exists: func(id uint64) bool {
			return s.buckets.ID(id) != nil
		},
		DiskFull: s.pressure.DiskFull, FreeSpace: s.pressure.Free,
	})
	s.columns = columns.New(columns.Options{
		Buckets: s.buckets, Log: s.ledger, Clock: s.clock, Versions: s.versions,
		MaxFuture: o.MaxFuture, ChunkNeed: flush.FirstChunkNeed, NewSeries: func() {
			s.flusher.AddSeries()
		},
	})
	s.tags = newTags(s)
	return s
}

// open opens the data directory, if need be behind a start that found records of the
// log lost; that one's directory is closed.
func open(o Options, again *replay.Again) (*Store, error) {
	s := newStore(o)
	if again != nil {
		for _, name := range again.Damage() {
			s.damage.Add(name, false)
		}
	}
	d, found, err := s.openDirectory()
	if err != nil {
		s.workers.Wait() // for the files of tags
		return nil, err
	}
	s.disk = d
	s.ledger.Use(s.disk.Log)
	if s.events, err = newEvents(s); err == nil {
		err = s.events.Load(found.State, found.FilesTaken)
	}
	if err != nil {
		return nil, errors.Join(err, s.disk.Close())
	}
	points, copies := s.ledger.Points(), s.ledger.Copies()
	ownerless, lost := flush.NewLosses(points, copies, replay.LostRecord),
		flush.NewLosses(points, copies, replay.LostInReplay)
	s.flusher = s.newFlusher(ownerless, lost)
	s.replay = s.newReplay(replay.Found{
		State:  found.State,
		Owners: found.Ownership,
		Again:  again,
	}, ownerless, lost)
	s.intake = intake.New(intake.Options{
		Buckets: s.buckets, Columns: s.columns, Ledger: s.ledger, Pressure: s.pressure,
		Sealers: s.sealers,
		Replay:  s.replay, Durable: o.WALSync != wal.Off, EnsureBucket: s.ensureBucket,
		NoteLate: s.flusher.Reach.Note,
	})
	s.reader = reader.New(reader.Options{
		Versions: s.versions, Index: &s.columns.Index, Groups: &s.columns.Groups, Damage: &s.damage,
		Replay: s.replay.Series,
	})
	s.upkeep = upkeep.New(upkeep.Options{
		Logger: o.Logger, Clock: s.clock, HeadGrace: o.HeadGrace, HeadMaxAge: o.HeadMaxAge,
		MaxLog: o.WALMaxSize, FlushInterval: o.FlushInterval,
		Log: s.disk.Log, Ledger: s.ledger, Memory: s.o.Memory, Arenas: &s.arenas, Buckets: s.buckets,
		Columns: s.columns, Files: s.files, Versions: s.versions,
		Flusher: s.flusher, Pressure: s.pressure, Sealers: s.sealers,
	})
	s.deletions = deletion.New(deletion.Options{
		Now: o.Now, Buckets: s.buckets, Columns: s.columns, Versions: s.versions, Dir: s.dir,
		Manifest: s.disk.Manifest, Log: s.disk.Log,
		Gate: s.flusher.Gate(), Pressure: s.pressure, Replayed: s.replay.All,
		Deleting: s.tags.Deleting,
		Max:      func() int64 { return s.o.maxTombstones }, Slice: func() int { return s.o.deleteSlice },
	})
	s.merges = s.newCompactor()
	s.addPools()
	state := found.State
	s.flusher.Begin(flush.Positions{Base: state.ReplayPosition, Own: state.ReplayPositions()},
		state.ReplayFrom())
	s.startWorkers() // the replay may wait for flushes
	if err := errors.Join(s.replay.Run(), s.tags.Loaded()); err != nil {
		_ = s.shutdown(false) // nothing was promised yet
		return nil, err
	}
	s.tags.Settle()
	s.pressure.CheckDisk()
	s.columns.CountNames()
	s.o.Memory.Look() // or what is taken before the first one would have all the memory
	return s, nil
}

// openDirectory opens the directory and takes what it says into memory, but for what the log says.
func (s *Store) openDirectory() (*startup.Directory, startup.Found, error) {
	return startup.Open(startup.Options{
		FS: s.o.FS, Dir: s.o.Dir, Logger: s.o.Logger, Now: s.o.Now,
		Log: wal.Options{
			Sync: s.o.WALSync, Interval: s.o.WALInterval, OnFailure: s.pressure.Fail,
			// A log is trimmed file by file: a few of them must fit its limit.
			FileSize: min(wal.DefaultFileSize, max(s.o.WALMaxSize/8, minLogFile)),
		},
		Files: s.files, Segments: s.dir, Versions: s.versions, Buckets: s.buckets, Columns: s.columns,
		Account: s.ledger.Points(), Copies: s.ledger.Copies(), Damage: &s.damage, NewBucket: s.newBucket,
		SideFiles: func(state *manifest.State, taken bool) {
			s.tags.Missing(state.LostFiles, taken)
			files := state.Files
			s.workers.Go(func() { s.tags.Load(files) })
		},
	})
}

// Package flushtest puts together, for tests, what lies below a store: one data directory in memory
// with log, MANIFEST, catalogue, account, columns and versions, and a flusher over them. Nothing
// runs in the background but the log.
package flushtest

import (
	"log/slog"
	"strings"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/catalogue"
	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/testkit/golden"
	"dalmatiner/internal/write/backpressure"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/ledger"
	"dalmatiner/internal/write/logrecord"
)

const (
	// Epoch is the time at which the clock starts, in Unix seconds: the begin of a chunk.
	Epoch = 1_500_000_480
	// Height is how many slots a block has.
	Height = 60
	// FlushBytes is how many encoded bytes, or bytes of late points, cause a flush.
	FlushBytes = 1 << 20
	// MinFree is with how many free bytes of the disk points are refused.
	MinFree = 1000
)

// own is the id of the directory.
var own = origin.Directory{1}

// Quiet logs nothing.
var Quiet = slog.New(slog.DiscardHandler)

// Options say what differs from world to world.
type Options struct {
	Memory int64          // bytes that the process may have, 0 for any number
	Step   func(step int) // called after each step of a flush; may be nil
	Sides  []flush.Side
}

// World is a flusher, and what it works on. Results are printed to the script.
type World struct {
	*golden.Script
	Disk      *Disk
	Now       time.Time // of the clock, after it was advanced
	Clock     *clock.Clock
	Log       *wal.Log
	Account   *account.Account
	Ledger    *ledger.Ledger
	Manifest  *manifest.Manifest
	Catalogue *catalogue.Catalogue
	Damage    damage.Notes

	Memory   *memory.Budget
	Columns  *columns.Table
	Buckets  *buckets.Registry[*columns.Bucket]
	Arenas   head.Arenas
	Files    *segment.Files
	Versions *version.Versions
	Dir      *version.Dir
	Pressure *backpressure.Control
	Sealers  *backpressure.Sealers // not started: Seal does their work
	Flusher  *flush.Flusher

	Ends              []wal.LSN // of the records
	Committed, Fatals int       // how often a flush was committed, and the store was ended
	LogFailed         chan struct{}
}

// New returns a world that ends with the test.
func New(s *golden.Script, o Options) *World {
	w := &World{Script: s, LogFailed: make(chan struct{}), Disk: newDisk(), Now: time.Unix(Epoch, 0),
		Account: account.New(),
		Buckets: buckets.NewRegistry[*columns.Bucket]()}
	w.openFiles()
	w.Memory = memory.New(o.Memory, w.now, nil)
	w.Pressure = backpressure.New(backpressure.Options{
		FS: w.Disk, Dir: "/data", Logger: Quiet, FlushBytes: FlushBytes, LateMemory: FlushBytes,
		MinFree: MinFree,
		Memory:  w.Memory, HeadBytes: func() int64 {
			return 0
		}, NewSeries: func() int64 { return int64(w.Columns.Unflushed.Len()) },
		OnFatal: func(error) { w.Fatals++ },
	})
	w.Sealers = backpressure.NewSealers(w.Pressure)
	var err error
	w.Log, err = wal.Open(wal.Options{FS: w.Disk, Dir: "/data/wal", Sync: wal.Off, FileSize: 4 << 10,
		MaxRecord: 1 << 10, Logger: Quiet, OnFailure: func(err error) {
			w.Pressure.Fail(err)
			close(w.LogFailed)
		}})
	w.Must(err)
	w.Files = segment.NewFiles(w.Disk, 8, 0)
	w.Dir = version.NewDir(w.Disk, "/data", w.Files, Quiet)
	w.Dir.RaiseNumber(1)
	w.Versions = version.New(w.Dir.Retire)
	w.Ledger = ledger.New(ledger.Options{Account: w.Account, Clock: w.Clock,
		Exists: func(id uint64) bool {
			return w.Buckets.ID(id) != nil
		},
		DiskFull: w.Pressure.DiskFull, FreeSpace: w.Pressure.Free})
	w.Ledger.Use(w.Log)
	w.Columns = columns.New(columns.Options{Buckets: w.Buckets, Log: w.Ledger, Clock: w.Clock,
		Versions: w.Versions,
		Names:    w.Memory.NewStock(memory.StockOptions{Name: "names", Limit: o.Memory}),
		NewSeries: func() {
			w.Flusher.AddSeries()
		}})
	step := o.Step
	if step == nil {
		step = func(int) {}
	}
	w.Flusher = flush.New(flush.Options{
		Logger: Quiet, Clock: w.Clock, Now: w.now,
		Log: w.Log, Ledger: w.Ledger, Manifest: w.Manifest, Catalogue: w.Catalogue, Damage: &w.Damage,
		Columns: w.Columns, Buckets: w.Buckets, Arenas: &w.Arenas, Versions: w.Versions, Dir: w.Dir,
		Pressure: w.Pressure, Sealers: w.Sealers,
		HeadEnd: func() (wal.LSN, bool) {
			return w.Log.End(), false
		}, AccountEnd: w.Log.End, Ownerless: flush.NewLosses(w.Account, w.Ledger.Copies(), "ownerless"),
		Lost:  flush.NewLosses(w.Account, w.Ledger.Copies(), "lost"),
		Sides: o.Sides, Sizes: flush.Sizes{FlushBytes: FlushBytes, ShareSize: flush.DefaultShareSize},
		MaxDeletions: func() int64 {
			return 1 << 20
		},
		Step: step, Took: func(time.Duration) {}, Committed: func() { w.Committed++ },
	})
	s.T.Cleanup(w.close)
	return w
}

func (w *World) now() time.Time { return w.Now }

// openFiles opens what an empty directory has.
func (w *World) openFiles() {
	w.Damage.Logger = Quiet
	w.Clock = clock.New(w.now)
	lock, _, err := datadir.Acquire(w.Disk, "/data", func(origin.Directory, bool) origin.Directory {
		return own
	}, w.Damage.Report)
	w.Must(err)
	w.T.Cleanup(func() { _ = lock.Close() })
	w.Manifest, _, _, err = manifest.Open(w.Disk, "/data", own, Quiet)
	w.Must(err)
	w.Catalogue, err = catalogue.Open(w.Disk, "/data/catalogue", Quiet)
	w.Must(err)
}

// close ends the world, however the last flush left it.
func (w *World) close() {
	w.Disk.Mend()
	w.Flusher.Gate().Close()
	for _, seg := range w.Versions.Close() {
		w.Must(seg.Reader.Close())
	}
	_ = w.Log.Close() // it may have failed
	_ = w.Manifest.Close()
	_ = w.Catalogue.Close()
	w.Seal(0)
	for _, g := range w.Columns.Groups.All() {
		g.Kill()
	}
	w.Arenas.Release()
}

// Must ends the test at an error.
func (w *World) Must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// Run does the commands that all scripts have, and reports whether it was one of them:
//
//	bucket a                  makes a bucket
//	define a/m1               gives a series a column
//	write a/m1 0 60           stores 60 points from slot 0 on
//	drop a                    deletes a bucket
//	seal [1]                  closes the oldest blocks, or all, and encodes them
//	wait 90s                  lets the clock go on
//	fail <path> io|full|sync|rename|remove    what is written below a path of the directory fails
//	free 5                    so many bytes of the disk are free
//	mend                      the disk is as it was
//
// Slots count from the epoch.
func (w *World) Run(command string, args []string) bool {
	w.T.Helper()
	switch command {
	case "bucket":
		w.Bucket(args[0])
	case "define":
		w.Define(args[0])
	case "write":
		w.Write(args[0], w.Number(args[1]), w.Number(args[2]))
	case "drop":
		w.Drop(args[0])
	case "seal":
		blocks := int64(1 << 20)
		if len(args) > 0 {
			blocks = w.Number(args[0])
		}
		w.Seal(int(blocks))
	case "wait":
		d, err := time.ParseDuration(args[0])
		w.Must(err)
		w.Now = w.Now.Add(d)
		w.Clock.Advance()
	case "fail":
		w.Disk.Fail("/data/"+args[0], args[1])
	case "free":
		w.Disk.Free.Store(uint64(w.Number(args[0])))
	case "mend":
		w.Disk.Mend()
	default:
		return false
	}
	return true
}

// Logged notes that a record was appended, of which there may be two copies, and returns its
// number.
func (w *World) Logged() int {
	w.Ends = append(w.Ends, w.Log.End())
	return len(w.Ends)
}

// Record returns the number of the first record that is not below a position: between records the
// log has some of its own. It is 0 for none.
func (w *World) Record(position uint64) int {
	if position == 0 {
		return 0
	}
	n := 1
	for _, end := range w.Ends {
		if uint64(end) <= position {
			n++
		}
	}
	return n
}

// Bucket makes a bucket; its id is the next number.
func (w *World) Bucket(name string) {
	info := buckets.Info{
		ID:         uint64(len(w.Buckets.All()) + 1),
		Name:       name,
		Resolution: 1000,
		PPF:        604800,
	}
	w.Must(w.Ledger.Change(logrecord.AppendBucket(nil, &info), func() {
		w.Buckets.Add(columns.NewBucket(info, Height, w.Arenas.ArenaFor(Height)))
	}))
	w.Printf("  record %d\n", w.Logged())
}

// Series splits "bucket/part.part".
func (w *World) Series(text string) (b *columns.Bucket, key []byte) {
	w.T.Helper()
	bucket, name, _ := strings.Cut(text, "/")
	if b = w.Buckets.Get(bucket); b == nil {
		w.T.Fatalf("no bucket for %s", text)
	}
	for part := range strings.SplitSeq(name, ".") {
		key = metric.AppendPart(key, part)
	}
	return b, key
}

// Drop deletes a bucket.
func (w *World) Drop(name string) {
	b := w.Buckets.Get(name)
	w.Must(w.Columns.DeleteBucket(b, func() buckets.Deletion {
		return w.Buckets.Deletion(b, w.Now)
	}, func(d buckets.Deletion, apply func()) error {
		return w.Ledger.ChangeTwice(logrecord.AppendBucketDeleted(nil, &d), apply)
	}))
	sealed, late := w.Columns.DropGroups(b)
	w.Pressure.AddSealed(-sealed)
	w.Pressure.AddLate(-late)
	w.Ledger.DeleteBucket(b.ID)
	w.Printf("  record %d\n", w.Logged())
}

// Define gives a series a column where it has none.
func (w *World) Define(text string) columns.Position {
	b, key := w.Series(text)
	id := b.SeriesID(key)
	if p, ok := w.Columns.Locate(id, key); ok {
		return p
	}
	f := w.Columns.NewFiller(b)
	defer f.Close()
	p, _, err := f.Define(id, key)
	w.Must(err)
	w.Printf("  record %d defines it\n", w.Logged())
	return p
}

// Write stores points from a slot on, counted from the epoch. Those whose blocks are closed are
// late.
func (w *World) Write(text string, from, n int64) {
	b, _ := w.Series(text)
	p := w.Define(text)
	words := make([]uint64, n)
	for i := range words {
		words[i] = point.FromInt(from + int64(i))
	}
	minute := w.Clock.Unix() / int64(time.Minute)
	w.Ledger.Count(func() {
		a, err := p.Group.Apply(head.Write{
			Column: p.Column,
			Slot:   Epoch + from,
			Words:  words,
			Down:   true,
			Epoch:  p.Columns.Epoch(),
		}, w.Clock.Monotonic(),
			func(c *account.Counts) (uint64, error) {
				lsn, err := w.Log.Append([]byte("points"))
				w.Account.Add(b.ID, minute, c)
				return uint64(lsn), err
			})
		w.Must(err)
		if a.Dead || a.Stale {
			w.T.Fatalf("%+v", a)
		}
		late := ""
		if w.Pressure.AddLate(a.Late); a.Late > 0 {
			late = ", late"
		}
		w.Printf("  record %d%s\n", w.Logged(), late)
	})
	w.Seal(0)
}

// Seal closes that many open blocks, the oldest first, and encodes all that are closed.
func (w *World) Seal(blocks int) {
	var sealer head.Sealer
	for _, g := range w.Columns.Groups.All() {
		g.CloseBlocks(func(uint64, int64, int64) bool { blocks--; return blocks >= 0 })
		for n, ok := sealer.Seal(g); ok; n, ok = sealer.Seal(g) {
			w.Pressure.AddSealed(n)
		}
	}
}

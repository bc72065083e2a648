package flush

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/account"
	"dalmatiner/internal/backpressure"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/catalogue"
	"dalmatiner/internal/chunk"
	"dalmatiner/internal/clock"
	"dalmatiner/internal/columns"
	"dalmatiner/internal/damage"
	"dalmatiner/internal/datadir"
	"dalmatiner/internal/golden"
	"dalmatiner/internal/head"
	"dalmatiner/internal/ledger"
	"dalmatiner/internal/logrecord"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/memory"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/point"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/version"
	"dalmatiner/internal/wal"
)

const (
	epoch  = 1_500_000_480 // the begin of a chunk
	height = 60            // of a block
)

// disk is a file system on which operations fail while a rule says so, with so many free bytes.
type disk struct {
	vfs.FS
	free atomic.Uint64
	path string // below which something fails
	rule atomic.Pointer[func(errorfs.Op) error]
}

func newDisk() *disk {
	d := &disk{}
	d.free.Store(1 << 40)
	d.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if rule := d.rule.Load(); rule != nil {
			return (*rule)(op)
		}
		return nil
	}))
	return d
}

func (d *disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free.Load()}, nil
}

// fail makes what is written below a path fail: creating and writing files, or syncing and renaming
// them.
func (d *disk) fail(path, how string) {
	writes := []errorfs.OpKind{errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFilePreallocate}
	kinds, err := writes, error(syscall.EIO)
	switch how {
	case "full":
		err = syscall.ENOSPC
	case "sync":
		kinds = []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}
	case "rename":
		kinds = []errorfs.OpKind{errorfs.OpRename}
	case "remove":
		kinds = []errorfs.OpKind{errorfs.OpRemove}
	}
	rule := func(op errorfs.Op) error {
		if slices.Contains(kinds, op.Kind) && strings.HasPrefix(op.Path, path) {
			return err
		}
		return nil
	}
	d.path = path
	d.rule.Store(&rule)
}

// mend makes the disk as it was.
func (d *disk) mend() {
	d.path = ""
	d.rule.Store(nil)
	d.free.Store(1 << 40)
}

// world is a flusher, and what it flushes.
type world struct {
	*golden.Script
	disk    *disk
	now     time.Time
	clock   *clock.Clock
	log     *wal.Log
	account *account.Account
	ledger  *ledger.Ledger
	m       *manifest.Manifest
	cat     *catalogue.Catalogue
	damage  damage.Notes

	table    *columns.Table
	buckets  *buckets.Registry[*columns.Bucket]
	arenas   head.Arenas
	versions *version.Versions
	dir      *version.Dir
	pressure *backpressure.Control
	flusher  *Flusher

	ends              []wal.LSN // of the records
	committed, fatals int
	logFailed         chan struct{} // closed when the log has failed, and the store knows
}

func (w *world) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

func newWorld(s *golden.Script) *world {
	w := &world{Script: s, logFailed: make(chan struct{}), disk: newDisk(), now: time.Unix(epoch, 0), account: account.New(), buckets: buckets.NewRegistry[*columns.Bucket]()}
	quiet := slog.New(slog.DiscardHandler)
	w.damage.Logger = quiet
	w.clock = clock.New(func() time.Time { return w.now })
	lock, err := datadir.Acquire(w.disk, "/data", w.damage.Report)
	w.must(err)
	s.T.Cleanup(func() { _ = lock.Close() })
	w.m, _, _, err = manifest.Open(w.disk, "/data", quiet)
	w.must(err)
	w.cat, err = catalogue.Open(w.disk, "/data/catalogue", quiet)
	w.must(err)
	budget := memory.New(0, func() time.Time { return w.now }, nil)
	w.pressure = backpressure.New(backpressure.Options{
		FS: w.disk, Dir: "/data", Logger: quiet, FlushBytes: 1 << 20, LateMemory: 1 << 20, MinFree: 1000,
		Memory: budget, HeadBytes: func() int64 { return 0 }, NewSeries: func() int64 { return int64(w.table.Unflushed.Len()) },
		OnFatal: func(error) { w.fatals++ },
	})
	w.log, err = wal.Open(wal.Options{FS: w.disk, Dir: "/data/wal", Sync: wal.Off, FileSize: 4 << 10, MaxRecord: 1 << 10, Logger: quiet, OnFailure: func(err error) {
		w.pressure.Fail(err)
		close(w.logFailed)
	}})
	w.must(err)
	files := segment.NewFiles(w.disk, 8, 0)
	w.dir = version.NewDir(w.disk, "/data", files, quiet)
	w.dir.RaiseNumber(1)
	w.versions = version.New(w.dir.Retire)
	w.ledger = ledger.New(ledger.Options{Account: w.account, Clock: w.clock, Exists: func(id uint64) bool { return w.buckets.ID(id) != nil },
		DiskFull: w.pressure.DiskFull, FreeSpace: w.pressure.Free})
	w.ledger.Use(w.log)
	w.table = columns.New(columns.Options{Buckets: w.buckets, Log: w.ledger, Clock: w.clock, Versions: w.versions,
		Names: budget.NewStock(memory.StockOptions{Name: "names"}), NewSeries: func() { w.flusher.AddSeries() }})
	w.flusher = New(Options{
		Logger: quiet, Clock: w.clock, Now: func() time.Time { return w.now },
		Log: w.log, Ledger: w.ledger, Manifest: w.m, Catalogue: w.cat, Damage: &w.damage,
		Columns: w.table, Buckets: w.buckets, Arenas: &w.arenas, Versions: w.versions, Dir: w.dir,
		Pressure: w.pressure, Sealers: backpressure.NewSealers(w.pressure),
		HeadEnd: w.log.End, AccountEnd: w.log.End, Ownerless: NewLosses(w.account, "ownerless"), Lost: NewLosses(w.account, "lost"),
		FlushBytes: 1 << 20, MaxDeletions: func() int64 { return 1 << 20 },
		Step: w.step, Took: func(time.Duration) {}, Committed: func() { w.committed++ },
	})
	return w
}

// close ends the world, however the last flush left it.
func (w *world) close() {
	w.disk.mend()
	w.flusher.Gate().Close()
	for _, seg := range w.versions.Close() {
		w.must(seg.Reader.Close())
	}
	_ = w.log.Close() // it may have failed
	_ = w.m.Close()
	_ = w.cat.Close()
	for _, g := range w.table.Groups.All() {
		g.Kill()
	}
	w.arenas.Release()
}

// step prints what has happened by the end of a step: how much of the log is not synced, the files of
// segments that have their name, what the MANIFEST names and what readers see, and whether anything
// is left to flush.
func (w *world) step(step int) {
	name := [...]string{"captured", "log synced", "segment synced", "catalogue", "committed", "log trimmed"}[step]
	files, err := w.disk.List("/data/flush")
	w.must(err)
	n := 0
	for _, f := range files {
		if strings.HasSuffix(f, datadir.SegmentSuffix) {
			n++
		}
	}
	w.Printf("  step %d %s: unsynced %s, files %d, named %d, seen %d, catalogue %d, series to name %d, needed from record %d\n", step, name,
		some(w.log.Stats().Unsynced), n, len(w.m.State().Segments), len(w.versions.Latest().Segments), w.inCatalogue(), w.table.Unflushed.Len(), w.record(w.flusher.Needed()))
}

// inCatalogue returns how many series the catalogue has, -1 for one that failed or is about to: it
// writes by itself as well.
func (w *world) inCatalogue() (n int) {
	if w.cat.Failed() != nil || strings.HasPrefix(w.disk.path, "/data/catalogue") {
		return -1
	}
	w.must(w.cat.Load(func(e segment.Series) error {
		if len(e.Key) > 0 {
			n++
		}
		return nil
	}))
	return n
}

// logged notes that a record was appended, of which there may be two copies, and returns its number.
func (w *world) logged() int {
	w.ends = append(w.ends, w.log.End())
	return len(w.ends)
}

// record returns the number of the first record that is not below a position: between records the log
// has some of its own. It is 0 for none.
func (w *world) record(position uint64) int {
	if position == 0 {
		return 0
	}
	n := 1
	for _, end := range w.ends {
		if uint64(end) <= position {
			n++
		}
	}
	return n
}

func some(n int64) string {
	if n == 0 {
		return "0"
	}
	return "some"
}

// bucket makes a bucket; its id is the next number.
func (w *world) bucket(name string) {
	info := buckets.Info{ID: uint64(len(w.buckets.All()) + 1), Name: name, Resolution: 1000, PPF: 604800}
	w.must(w.ledger.Change(logrecord.AppendBucket(nil, &info), func() {
		w.buckets.Add(columns.NewBucket(info, height, w.arenas.Of(height)))
	}))
	w.Printf("  record %d\n", w.logged())
}

// series splits "bucket/name".
func (w *world) series(text string) (*columns.Bucket, []byte) {
	bucket, name, _ := strings.Cut(text, "/")
	b := w.buckets.Get(bucket)
	if b == nil {
		w.T.Fatalf("no bucket for %s", text)
	}
	return b, metric.AppendPart(nil, name)
}

// define gives a series a column where it has none.
func (w *world) define(text string) columns.Position {
	b, key := w.series(text)
	id := b.SeriesID(key)
	if p, ok := w.table.Locate(id, key); ok {
		return p
	}
	f := w.table.NewFiller(b)
	defer f.Close()
	p, _, err := f.Define(id, key)
	w.must(err)
	w.Printf("  record %d defines it\n", w.logged())
	return p
}

// write stores points from a slot on, counted from the epoch.
func (w *world) write(text string, from, n int64) {
	b, _ := w.series(text)
	p := w.define(text)
	words := make([]uint64, n)
	for i := range words {
		words[i] = point.FromInt(from + int64(i))
	}
	minute := w.clock.Unix() / int64(time.Minute)
	w.ledger.Count(func() {
		a, err := p.Group.Apply(head.Write{Column: p.Column, Slot: epoch + from, Words: words, Down: true, Epoch: p.Columns.Epoch()}, w.clock.Steady(),
			func(c *account.Counts) (uint64, error) {
				lsn, err := w.log.Append([]byte("points"))
				w.account.Add(b.ID, minute, c)
				return uint64(lsn), err
			})
		w.must(err)
		if a.Dead || a.Stale {
			w.T.Fatalf("%+v", a)
		}
		late := ""
		if w.pressure.AddLate(a.Late); a.Late > 0 {
			late = ", late"
		}
		w.Printf("  record %d%s\n", w.logged(), late)
	})
	w.seal(0)
}

// seal encodes what is closed, and the open blocks down to a slot before that.
func (w *world) seal(blocks int) {
	var sealer head.Sealer
	for _, g := range w.table.Groups.All() {
		g.CloseBlocks(func(uint64, int64, int64) bool { blocks--; return blocks >= 0 })
		for n, ok := sealer.Seal(g); ok; n, ok = sealer.Seal(g) {
			w.pressure.AddSealed(n)
		}
	}
}

// delete deletes a series.
func (w *world) delete(text string) {
	b, key := w.series(text)
	w.flusher.Gate().Lock()
	defer w.flusher.Gate().Unlock()
	d := columns.Deletion{Bucket: b, DeleteSequence: w.dir.TakeDeletion(), Why: logrecord.Deleted, Incarnation: w.table.Deletions.Next(0, w.now)}
	w.must(w.table.Delete(&d, []metric.SeriesID{b.SeriesID(key)}))
	w.pressure.AddLate(-d.Head.LateBytes)
	w.Printf("  record %d deletes %d series\n", w.logged(), len(d.Series))
}

// drop deletes a bucket.
func (w *world) drop(name string) {
	b := w.buckets.Get(name)
	w.must(w.table.DeleteBucket(b, w.now, func(d buckets.Deletion, apply func()) error {
		return w.ledger.ChangeTwice(logrecord.AppendBucketDeleted(nil, &d), apply)
	}))
	sealed, late := w.table.DropGroups(b)
	w.pressure.AddSealed(-sealed)
	w.pressure.AddLate(-late)
	w.ledger.DeleteBucket(b.ID)
	w.Printf("  record %d\n", w.logged())
}

// flush flushes what is sealed, and prints what became of it.
func (w *world) flush() {
	before, state := w.versions.Latest().Segments, w.m.State()
	err := w.flusher.Sealed()
	if err != nil {
		w.Printf("  error: %v\n", err)
		if strings.Contains(err.Error(), "the log has failed") { // it says so by itself
			select {
			case <-w.logFailed:
			case <-time.After(time.Minute):
				w.T.Fatal("the store does not hear of it")
			}
		}
	}
	for _, seg := range w.versions.Latest().Segments {
		if !slices.Contains(before, seg) {
			w.printSegment(seg)
		}
	}
	if err == nil {
		w.printState(w.m.State())
	} else if now := w.m.State(); now.AccountLSN != state.AccountLSN || len(now.Segments) != len(state.Segments) {
		w.T.Errorf("a flush that failed changed the MANIFEST: %+v", now)
	}
	w.waits()
}

// name returns what the tests call a series.
func (w *world) name(bucket uint64, h segment.Hash) string {
	for _, b := range w.buckets.All() {
		for i := range 100 {
			if name := fmt.Sprintf("m%d", i); b.ID == bucket && segment.Hash(b.SeriesID(metric.AppendPart(nil, name))) == h {
				return b.Name + "/" + name
			}
		}
	}
	return fmt.Sprintf("unknown series of bucket %d", bucket)
}

func (w *world) printSegment(seg *version.Segment) {
	w.must(seg.Reader.Verify())
	w.Printf("  segment %d generation %d\n", seg.Meta.Seq, seg.Meta.Generation)
	list, err := seg.Reader.Buckets()
	w.must(err)
	for _, b := range list {
		w.Printf("    bucket %d %s\n", b.ID, b.Name)
	}
	w.must(seg.Reader.Series(func(e segment.Series) error {
		if e.DeleteSequence > 0 {
			w.Printf("    tombstone %s below %d by record %d, incarnation %s\n", w.name(e.Bucket, e.Hash), e.DeleteSequence, w.record(e.Since), some(int64(e.Incarnation)))
		} else {
			w.Printf("    series %s at %d:%d by record %d\n", w.name(e.Bucket, e.Hash), e.Group, e.Column, w.record(e.Since))
		}
		return nil
	}))
	w.must(seg.Reader.Each(func(bucket uint64, h segment.Hash, number int64, data []byte) error {
		w.Printf("    chunk %s %d\n", w.name(bucket, h), number-epoch/chunk.Slots)
		return nil
	}))
	w.Printf("    points %d, marks %d\n", seg.Meta.Points, len(seg.Meta.Marks.List))
	raw, err := seg.Reader.State()
	w.must(err)
	says, err := manifest.DecodeEdit(raw)
	w.must(err)
	st := w.m.State()
	if says.AccountLSN != st.AccountLSN || says.ReplayPosition != st.ReplayPosition || says.NextSeq != st.NextSeq || len(says.AddSegments) != 1 ||
		!slices.Equal(says.ReplayPositions, st.ReplayPositions()) || !slices.Equal(says.Account, st.Account) {
		w.T.Errorf("segment %d says %+v, the MANIFEST %+v", seg.Meta.Seq, says, st)
	}
}

func (w *world) printState(st *manifest.State) {
	w.Printf("  MANIFEST: replay from record %d", w.record(st.ReplayPosition))
	for _, p := range st.ReplayPositions() {
		w.Printf(", of group %d from %d", p.Group, w.record(p.LSN))
	}
	counted := account.New()
	w.must(counted.Restore(st.Account))
	var points uint64
	for _, c := range counted.Totals() {
		points += c.Stored()
	}
	w.Printf("; account of %d points below record %d; next segment %d, group %d\n", points, w.record(st.AccountLSN), st.NextSeq, st.NextGroup)
	w.Printf("    segments %d, buckets %d, deleted %d, tombstones %d, rebuild catalogue %t", len(st.Segments), len(st.Buckets), len(st.DeletedBuckets), len(st.Tombstones), st.Catalogue == catalogue.MarkLost)
	for _, h := range st.Highest {
		w.Printf(", bucket %d up to %d", h.Bucket, h.Slot-epoch)
		if b := w.buckets.ID(h.Bucket); b != nil && b.Highest() != h.Slot {
			w.T.Errorf("bucket %d is flushed up to %d in memory, %d in the MANIFEST", b.ID, b.Highest(), h.Slot)
		}
	}
	w.Printf("\n  the log is needed from record %d, and has %d files\n", w.record(w.flusher.Needed()), w.log.Stats().Files)
}

// waits prints what the next flush has.
func (w *world) waits() {
	var chunks int64
	for _, g := range w.table.Groups.All() {
		n, _ := g.FlushChunks()
		chunks += n
	}
	p := w.pressure
	w.Printf("  waits: changes of series %d, tombstones %d, chunks %d, sealed %s, late %s; need %s", w.table.Unflushed.Len(), w.table.Unflushed.Tombstones(),
		chunks, some(p.Sealed()), some(p.Late()), some(w.flusher.Need()))
	files, err := w.disk.List("/data/flush")
	w.must(err)
	slices.Sort(files)
	for i := range files {
		files[i] = strings.TrimLeft(files[i], "0")
	}
	w.Printf("; files %v; flushed %d, to merge %d", files, w.flusher.Stats().Flushes, w.committed)
	for _, s := range []struct {
		is   bool
		name string
	}{{p.FlushFailed(), "failed"}, {p.DiskFull(), "points are refused"}, {p.Failed() != nil, fmt.Sprintf("the store has ended, said %d times", w.fatals)}} {
		if s.is {
			w.Printf("; %s", s.name)
		}
	}
	w.Printf("\n")
	if names, _ := w.damage.Names(); len(names) > 0 {
		w.Printf("  damage: %v\n", names)
	}
}

package store

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/logrecord"
)

// undurable is a store whose log is synced when the test says so only.
type undurable struct {
	t     *testing.T
	s     *Store
	o     Options
	fs    *vfs.MemFS
	clock *testClock
	want  map[int]map[int64]uint64 // by series and slot
}

func newUndurable(t *testing.T) *undurable {
	u := &undurable{t: t, fs: vfs.NewCrashableMem(), clock: newTestClock(),
		want: map[int]map[int64]uint64{}}
	u.o = testOptions(u.fs, u.clock)
	byHand(&u.o)
	u.s = mustOpen(t, u.o)
	if _, err := u.s.CreateBucket(buckets.Info{Name: "b", Resolution: 1000, PPF: 1000}); err != nil {
		t.Fatal(err)
	}
	return u
}

func (u *undurable) send(series int, slots ...int64) {
	u.t.Helper()
	x := mustSession(u.t, u.s, "b")
	if u.want[series] == nil {
		u.want[series] = map[int64]uint64{}
	}
	for _, slot := range slots {
		w := point.FromInt(int64(series)<<32 | slot)
		x.Point(key(series), uint64(slot), w)
		u.want[series][slot] = w
	}
	if err := x.Close(); err != nil {
		u.t.Fatal(err)
	}
}

func (u *undurable) sync() {
	u.t.Helper()
	if err := u.s.disk.Log.Sync(); err != nil {
		u.t.Fatal(err)
	}
}

// delete deletes a series for good.
func (u *undurable) delete(series int) {
	u.t.Helper()
	if _, err := u.s.DeleteSeries(context.Background(), "b", deletion.Choice{Key: key(series)},
		false); err != nil {
		u.t.Fatal(err)
	}
	delete(u.want, series)
}

// begin is delete up to where it waits for the log.
func (u *undurable) begin(series int) {
	u.t.Helper()
	b := u.s.buckets.Get("b")
	u.s.flusher.Gate().Lock()
	defer u.s.flusher.Gate().Unlock()
	d := columns.Deletion{
		Bucket: b, DeleteSequence: u.s.dir.TakeDeletion(), Why: logrecord.Deleted,
		Incarnation: u.s.columns.Deletions.Next(0, u.o.Now()),
	}
	if err := u.s.columns.Delete(&d, []metric.SeriesID{b.SeriesID(key(series))}); err != nil {
		u.t.Fatal(err)
	}
	u.s.deletions.Count(&d)
}

func (u *undurable) merge() {
	u.t.Helper()
	if _, err := u.s.Merge(context.Background()); err != nil {
		u.t.Fatal(err)
	}
}

// cut goes on from what a power cut leaves: what was synced.
func (u *undurable) cut() { u.reopen(u.fs.CrashClone(vfs.CrashCloneCfg{})) }

func (u *undurable) reopen(clone *vfs.MemFS) {
	u.t.Helper()
	u.s.Crash()
	u.fs, u.o.FS = clone, clone
	u.s = mustOpen(u.t, u.o)
	if err := u.s.replay.All(context.Background()); err != nil {
		u.t.Fatal(err)
	}
}

// missing counts the points of a series that are not there.
func (u *undurable) missing(series int) (n int) {
	u.t.Helper()
	for slot, w := range u.want[series] {
		switch got := readAll(u.t, u.s, "b", series, slot, 1)[0]; got {
		case w:
		case point.Unset:
			n++
		default:
			u.t.Fatalf("series %d slot %d holds %x, want %x", series, slot, got, w)
		}
	}
	return n
}

// check: everything is there, nothing is lost, and no damage is claimed.
func (u *undurable) check(what string) {
	u.t.Helper()
	for series := range u.want {
		if n := u.missing(series); n > 0 {
			u.t.Errorf("%s: %d of %d points of series %d are missing", what, n, len(u.want[series]), series)
		}
	}
	if lost := u.s.Account().Losses(); len(lost) > 0 {
		u.t.Errorf("%s: lost %v", what, lost)
	}
	if names, n := u.s.Damage(); n > 0 {
		u.t.Errorf("%s: damage %v", what, names)
	}
}

// A merge leaves out what was deleted. A power cut that undoes a deletion nobody was
// told of undoes what the merge has made of it as well: all of it is there, or nothing.
func TestAPowerCutUndoesNoHalfOfADeletion(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(u *undurable) error{
		"series": func(u *undurable) error { u.begin(0); return nil },
		"bucket": func(u *undurable) error {
			b := u.s.buckets.Get("b")
			d := u.s.buckets.Deletion(b, u.clock.Now())
			return u.s.ledger.ChangeTwice(logrecord.AppendBucketDeleted(nil, &d), func() {
				u.s.columns.DeletedBucket(b, d)
			})
		},
		"lifetime": func(u *undurable) error {
			b := u.s.buckets.Get("b")
			return u.s.ledger.Change(logrecord.AppendTTL(nil, b.ID, 3600), func() { b.SetTTL(3600) })
		},
	} {
		u := newUndurable(t)
		u.send(0, epoch-80_000, epoch-79_999)
		mustFlush(t, u.s)
		u.clock.Advance(4 * time.Hour) // the window is closed
		u.s.clock.Advance()
		u.send(0, u.clock.Now().Unix())
		u.sync()
		if err := change(u); err != nil {
			t.Fatal(err)
		}
		u.merge()
		u.cut()
		u.wholeOrGone(name)
		u.s.Crash()
	}
}

// wholeOrGone: of series 0 everything is there, or nothing, or with a lifetime what it
// leaves.
func (u *undurable) wholeOrGone(what string) {
	u.t.Helper()
	info, err := u.s.BucketByName("b")
	if err != nil {
		return // it is gone
	}
	if info.TTL > 0 {
		delete(u.want[0], epoch-80_000)
		delete(u.want[0], epoch-79_999)
		u.check(what)
		return
	}
	listed, err := u.s.Series(info, key(0)).Exists()
	if err != nil {
		u.t.Fatal(err)
	}
	if n := u.missing(0); n != 0 && n != len(u.want[0]) || listed != (n == 0) {
		u.t.Errorf("%s: %d of %d points are missing, listed %v", what, n, len(u.want[0]), listed)
	}
}

// A deletion that a power cut undoes has given away a number, up to which segments
// are noted as clean: a later deletion of another series gets a higher one.
func TestAnUndoneDeletionGivesNoNumberTwice(t *testing.T) {
	t.Parallel()
	u := newUndurable(t)
	u.send(1, epoch)
	mustFlush(t, u.s)
	u.send(2, epoch+1)
	u.sync()
	u.begin(2)
	u.merge() // notes that the flush holds nothing of series 2
	u.cut()
	u.check("behind the power cut")
	u.delete(1)
	u.send(1, epoch+2) // begins anew
	if w := readAll(t, u.s, "b", 1, epoch, 1)[0]; w != point.Unset {
		t.Errorf("a deleted series holds %x", w)
	}
	u.sync()
	u.cut()
	if w := readAll(t, u.s, "b", 1, epoch, 1)[0]; w != point.Unset {
		t.Errorf("a deleted series holds %x behind a start", w)
	}
	u.s.Crash()
}

// reborn sends, deletes and sends again some series, among others that stay. Blocks
// stay open, so that the log is needed from its beginning on.
func (u *undurable) reborn() {
	u.t.Helper()
	at := int64(epoch)
	for round := range 5 {
		for series := range 4 {
			u.send(series, at, at+1)
		}
		u.sync()
		at += 2
		if round < 4 {
			u.delete(round % 2)
		}
	}
}

// A crash in the first flush leaves a flush that was not committed, as in any other:
// the log has all of it.
func TestCrashInTheFirstFlush(t *testing.T) {
	t.Parallel()
	for step := flush.StepCaptured; step <= flush.StepLogTrimmed; step++ {
		u := newUndurable(t)
		u.reborn()
		var clone *vfs.MemFS
		atSteps(u.s, func(n int) {
			if n == step && clone == nil {
				clone = u.fs.CrashClone(vfs.CrashCloneCfg{})
			}
		})
		if err := u.s.flusher.Sealed(); err != nil {
			t.Fatal(err)
		}
		u.reopen(clone)
		if n := len(u.s.versions.Latest().Segments); step < flush.StepCommitted && n > 0 {
			t.Errorf("step %d: a flush that was not committed is taken in", step)
		}
		u.check(fmt.Sprintf("step %d", step))
		u.s.Crash()
	}
}

// A catalogue that is rebuilt knows all columns that a series has had and the log
// still has records of.
func TestARebuiltCatalogueKnowsAllFormerColumns(t *testing.T) {
	t.Parallel()
	u := newUndurable(t)
	u.reborn()
	if err := u.s.flusher.Sealed(); err != nil {
		t.Fatal(err)
	}
	u.s.Crash()
	clone := u.fs.CrashClone(vfs.CrashCloneCfg{})
	if err := clone.RemoveAll("/data/catalogue"); err != nil {
		t.Fatal(err)
	}
	u.o.FS = clone
	u.s = mustOpen(t, u.o)
	if err := u.s.replay.All(context.Background()); err != nil {
		t.Fatal(err)
	}
	u.s.damage = damage.Notes{Logger: u.s.o.Logger} // the catalogue
	u.check("without the catalogue")
	u.s.Crash()
}

// A start that takes names from segments and is cut off leaves that to the next one.
func TestAStartThatRebuildsIsCutOff(t *testing.T) {
	t.Parallel()
	u := newUndurable(t)
	u.send(0, epoch)
	mustFlush(t, u.s)
	u.send(1, epoch+1)
	var clone *vfs.MemFS
	atSteps(u.s, func(n int) {
		if n == flush.StepSegmentSynced && clone == nil {
			clone = u.fs.CrashClone(vfs.CrashCloneCfg{})
		}
	})
	mustFlush(t, u.s)
	u.s.Crash()
	for _, name := range []string{"MANIFEST", "MANIFEST.2"} {
		if err := clone.Remove("/data/" + name); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"/", "/data"} { // what is gone is gone
		if err := durable.SyncDir(clone, dir); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; ; n++ {
		mem := clone.CrashClone(vfs.CrashCloneCfg{})
		f := newFaults(mem)
		cut := f.CloneAt(mem, n)
		o := u.o
		o.FS = f.FS
		s := mustOpen(t, o)
		f.Clear()
		s.Crash()
		left := cut()
		if left == nil {
			break
		}
		u.o.FS = left
		u.s = mustOpen(t, u.o)
		if err := u.s.replay.All(context.Background()); err != nil {
			t.Fatal(err)
		}
		u.s.damage = damage.Notes{Logger: u.s.o.Logger} // the MANIFEST
		u.check(fmt.Sprintf("operation %d", n))
		u.s.Crash()
	}
}

// A flush during a replay lets no file of the log go that the replay is about to read,
// though no group needs it any more.
func TestAFlushLeavesTheReplayItsFiles(t *testing.T) {
	t.Parallel()
	u := newUndurable(t)
	u.s.Crash()
	u.o.WALMaxSize = 16 * minLogFile
	u.s = mustOpen(t, u.o)
	long := bytes.Repeat([]byte{'x'}, 100)
	for i := range 200 { // two blocks, that stay open
		u.send(0, epoch+int64(i%60))
		if i > 150 {
			u.send(0, epoch+60+int64(i%60))
		}
		x := mustSession(t, u.s, "b")
		x.Point(append([]byte{100}, long[:100]...), epoch, point.FromInt(int64(i)))
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	u.sync()
	if err := u.s.flusher.Sealed(); err != nil { // only the group needs the log
		t.Fatal(err)
	}
	files := u.s.disk.Log.Stats().Files
	hold := make(chan struct{})
	u.s.Crash()
	u.fs = u.fs.CrashClone(vfs.CrashCloneCfg{})
	f := newFaults(u.fs)
	u.o.FS, u.o.holdReplay = f.FS, hold
	u.s = mustOpen(t, u.o)
	u.check("the first block") // replays it
	for _, g := range u.s.columns.Groups.All() {
		late := uint64(u.s.disk.Log.End())
		closed := g.CloseBlocks(func(first uint64, _, _ int64) bool {
			defer func() { late = 0 }()
			return late > 0
		})
		u.s.sealers.HandleWrite(g, head.WriteResult{Closed: closed})
	}
	// The second reading has begun, and opens its first file.
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.Set(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpen && strings.HasSuffix(op.Path, ".wal") {
			once.Do(func() { close(begun) })
			<-goOn
		}
		return nil
	})
	close(hold)
	<-begun
	if err := u.s.flusher.Sealed(); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	if err := u.s.replay.All(context.Background()); err != nil {
		t.Fatalf("%v (%d files)", err, files)
	}
	u.check("behind the replay")
	mustFlush(t, u.s)
	u.send(0, epoch+200)
	mustFlush(t, u.s)
	if n := u.s.disk.Log.Stats().Files; n > 2 {
		t.Errorf("%d of %d files of the log are left behind the replay", n, files)
	}
	u.s.Crash()
}

// A series that is deleted when a merge has begun, and has not written anything yet,
// does not come back with what the merge writes.
func TestADeletionInTheMiddleOfAMerge(t *testing.T) {
	t.Parallel()
	u := newUndurable(t)
	u.s.Crash()
	f := newFaults(u.fs)
	u.o.FS = f.FS
	u.s = mustOpen(t, u.o)
	u.send(1, epoch)
	u.send(2, epoch)
	mustFlush(t, u.s)
	u.clock.Advance(4 * time.Hour) // the window is closed
	u.s.clock.Advance()
	u.send(2, u.clock.Now().Unix())
	mustFlush(t, u.s)
	var once sync.Once
	f.Set(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && strings.Contains(op.Path, "/flush/") {
			once.Do(func() { u.delete(1) })
		}
		return nil
	})
	u.merge()
	f.Clear()
	if _, deleted := u.want[1]; deleted {
		t.Fatal("the merge has read nothing")
	}
	u.send(1, u.clock.Now().Unix())
	if w := readAll(t, u.s, "b", 1, epoch, 1)[0]; w != point.Unset {
		t.Errorf("a deleted series holds %x", w)
	}
	u.check("behind the merge")
	u.s.Crash()
}

package store

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/write"
)

// quota is a file system on a disk of so many bytes, of which others have some.
type quota struct {
	vfs.FS
	size   uint64
	others atomic.Uint64

	reserved sync.Map // bytes, by path
}

func (q *quota) used() (n uint64) {
	_ = datadir.Walk(q.FS, "/data", func(file string, size int64) error { // files go meanwhile
		if r, ok := q.reserved.Load("/data/" + file); ok {
			size = max(size, r.(int64))
		}
		n += uint64(size)
		return nil
	})
	return n + q.others.Load()
}

func (q *quota) GetDiskUsage(string) (vfs.DiskUsage, error) {
	used := min(q.used(), q.size)
	return vfs.DiskUsage{AvailBytes: q.size - used, TotalBytes: q.size, UsedBytes: used}, nil
}

func (q *quota) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := q.FS.Create(name, c)
	q.reserved.Delete(name)
	return &quotaFile{f, q, name}, err
}

func (q *quota) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (
	vfs.File, error) {
	f, err := q.FS.OpenReadWrite(name, c, opts...)
	return &quotaFile{f, q, name}, err
}

type quotaFile struct {
	vfs.File
	q    *quota
	name string
}

func (f *quotaFile) Preallocate(_, n int64) error {
	if err := f.room(int(n)); err != nil {
		return err
	}
	f.q.reserved.Store(f.name, n)
	return nil
}

func (f *quotaFile) room(n int) error {
	if r, ok := f.q.reserved.Load(f.name); ok {
		if st, err := f.Stat(); err == nil && st.Size()+int64(n) <= r.(int64) {
			return nil
		}
	}
	if f.q.used()+uint64(n) > f.q.size {
		return syscall.ENOSPC
	}
	return nil
}

func (f *quotaFile) Write(p []byte) (int, error) {
	if err := f.room(len(p)); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *quotaFile) WriteAt(p []byte, at int64) (int, error) {
	if st, err := f.Stat(); err == nil && at+int64(len(p)) <= st.Size() {
		return f.File.WriteAt(p, at) // the bytes have their place
	}
	if err := f.room(len(p)); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, at)
}

// fillDisk writes until points are refused; every point is either stored or
// refused as disk_full.
func fillDisk(t *testing.T, s *Store, from int64) (past int64, stored uint64) {
	t.Helper()
	x := mustSession(t, s, "a")
	slot := from
	for ; x.Totals().Refused == 0; slot++ {
		for series := range 3 {
			x.Point(key(series), uint64(slot), noise(series, slot))
		}
		if _, err := x.Commit(); err != nil {
			t.Fatal(err)
		}
		if slot%1024 == 0 {
			s.pressure.CheckDisk() // what the ticker does, as often as a fast sender needs
		}
		if slot > from+1_000_000 {
			t.Fatal("nothing was ever refused")
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	total := x.Totals()
	return slot, total.Received - total.Refused
}

// wantRefusedForSpace demands that as many points of bucket a are in the account as were stored,
// and that all others, and there are some, were refused because the disk was full.
func wantRefusedForSpace(t *testing.T, s *Store, stored uint64) {
	t.Helper()
	counts := s.Account().Total(mustBucket(t, s, "a"))
	if got := counts.StoredPoints(); got != stored {
		t.Errorf("%d points are in the account, %d were stored", got, stored)
	}
	if refused := counts.Refused[account.DiskFull]; refused == 0 ||
		counts.ReceivedPoints() != counts.StoredPoints()+refused {
		t.Errorf("%+v", counts)
	}
}

// A disk that fills up: points are refused by name, reads go on, flushes and
// merges give up without a trace, nothing ends the node. When there is space
// again all of it goes on by itself, and no point is missing or uncounted.
func TestAFullDiskAndSpaceAgain(t *testing.T) {
	t.Parallel()
	clock, mem := newTestClock(), vfs.NewMem()
	q := &quota{FS: mem, size: 20 << 20}
	q.others.Store(15 << 20)
	o := testOptions(q, clock)
	o.MinFree, o.WALMaxSize, o.FlushBytes, o.WALInterval = 1<<20, 8<<20, 256<<10, time.Millisecond
	fatals := fatal(&o)
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	pass(s, clock, 40*24*time.Hour)
	past, stored := fillDisk(t, s, epoch)
	for others := range uint64(3) { // others take what is left, to the last byte
		free, _ := q.GetDiskUsage("")
		q.others.Add(free.AvailBytes * (others + 1) / 3)
		s.pressure.CheckDisk()
		if _, err := s.Flush(t.Context()); err == nil && others == 2 {
			t.Error("a flush found space where there is none")
		}
		_, _ = s.Merge(t.Context()) // with no room it does nothing or says so
		y := mustSession(t, s, "a")
		at := past + int64(others)
		y.Point(key(1), uint64(at), noise(1, at))
		y.Point(key(99), uint64(epoch+others), point.FromInt(1)) // of a new series
		if err := y.Close(); err != nil && others < 2 {
			t.Error(err)
		}
		total := y.Totals()
		if stored += total.Received - total.Refused; others == 2 && total.Refused != 2 {
			t.Errorf("%d of 2 points were refused where there is no space", total.Refused)
		}
		// the last slot was refused in part or altogether
		if n := drivetest.MissingNoise(t, s, "a", epoch, past-1); n > 3 {
			t.Errorf("%d words are missing on the full disk", n)
		}
		if n := fatals.Load(); n != 0 {
			t.Fatalf("the store ended %d times: %v", n, s.pressure.Failure())
		}
	}
	q.others.Store(0)
	drivetest.Eventually(t, "points are taken and the flush is made by itself", func() bool {
		st := s.Stats()
		return !st.DiskFull && !s.pressure.FlushFailed()
	})
	x := mustSession(t, s, "a")
	x.Point(key(99), epoch+7, point.FromInt(1))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Merge(t.Context()); err != nil {
		t.Error(err)
	}
	wantRefusedForSpace(t, s, stored+1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if r := mustCheck(t, q, "/data"); len(r.Damages)+len(r.Expected) > 0 {
		t.Errorf("the check finds %v, %v", r.Damages, r.Expected)
	}
	s = mustOpen(t, o)
	if n := drivetest.MissingNoise(t, s, "a", epoch, past-1); n > 3 {
		t.Errorf("%d words are missing after a restart", n)
	}
}

// A sender that goes on beside a full disk does not use up what is left for the
// log with records of its refusals, and the account has all of them, after a
// crash as well.
func TestRefusalsDoNotFillTheDisk(t *testing.T) {
	t.Parallel()
	clock, mem, free := newTestClock(), vfs.NewCrashableMem(), new(atomic.Uint64)
	free.Store(1 << 40)
	o := testOptions(smallDisk{mem, free}, clock)
	o.MinFree = 4 << 20
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	drivetest.SendNoise(t, s, "a", epoch, epoch+10)
	free.Store(3 << 20)
	s.pressure.CheckDisk()
	x := mustSession(t, s, "a")
	const commits = 50_000
	before := s.disk.Log.End()
	for i := range commits {
		x.Point(key(i%3), epoch, point.FromInt(1))
		if _, err := x.Commit(); err != nil {
			t.Fatalf("after %d refusals: %v", i, err)
		}
	}
	if grown := s.disk.Log.End() - before; grown > commits {
		t.Errorf("the log has grown by %d bytes for %d refusals", grown, commits)
	}
	want := s.Account().Total(mustBucket(t, s, "a"))
	if want.StoredPoints() != 30 || want.Refused[account.DiskFull] != commits {
		t.Errorf("the account has %+v", want)
	}
	same := func(what string) {
		t.Helper()
		if got := s.Account().Total(mustBucket(t, s, "a")); got != want {
			t.Errorf("%s the account has %+v, before it had %+v", what, got, want)
		}
	}
	s.upkeep.EverySecond()
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	o.FS = smallDisk{mem.CrashClone(vfs.CrashCloneCfg{}), free}
	s = mustOpen(t, o)
	same("after a crash")
	x = mustSession(t, s, "a")
	x.Point(key(1), epoch, point.FromInt(1))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	want.Refused[account.DiskFull]++
	same("with one more")
	if err := s.Close(); err == nil {
		t.Error("a flush found space where there is none")
	}
	s = mustOpen(t, o)
	same("after a restart")
}

// A catalogue that cannot be written fails the flush, not the store: the next
// flush brings everything, and the file of the failed one is gone.
func TestAFailedCatalogueIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]errorfs.OpKind{
		"create": errorfs.OpCreate, "write": errorfs.OpFileWrite, "sync": errorfs.OpFileSync,
	} {
		t.Run(name, func(t *testing.T) {
			clock, mem := newTestClock(), vfs.NewCrashableMem()
			f := newFaults(mem)
			o := testOptions(f.FS, clock)
			fatals := fatal(&o)
			s := mustOpen(t, o)
			defer func() { s.Crash() }()
			drivetest.SendNoise(t, s, "a", epoch, epoch+300)
			f.Set(func(op errorfs.Op) error {
				if (op.Kind == kind || kind == errorfs.OpFileSync && op.Kind == errorfs.OpFileSyncData) &&
					strings.HasSuffix(op.Path, ".sst") {
					return syscall.ENOSPC
				}
				return nil
			})
			for range 3 {
				drivetest.Within(t, "a flush that fails", func() {
					if _, err := s.Flush(t.Context()); err == nil {
						t.Error("a flush succeeds without its catalogue")
					}
				})
			}
			s.flusher.Gate().Lock() // a flush of the store's own may be under way
			names, err := mem.List(s.path(datadir.Flush))
			s.flusher.Gate().Unlock()
			if err != nil || len(names) > 0 {
				t.Errorf("left: %v, %v", names, err)
			}
			if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+300); n != 0 {
				t.Errorf("%d words are missing meanwhile", n)
			}
			f.Clear()
			drivetest.Eventually(t, "a flush succeeds", func() bool {
				_, err := s.Flush(t.Context())
				return err == nil && s.Stats().Segments.Count == 1
			})
			if n := fatals.Load(); n != 0 {
				t.Errorf("%d fatal errors", n)
			}
			s.Crash()
			o.FS = mem.CrashClone(vfs.CrashCloneCfg{})
			s = mustOpen(t, o)
			if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+300); n != 0 {
				t.Errorf("%d words are missing after a crash", n)
			}
			if _, n := s.Damage(); n != 0 {
				t.Errorf("%d damages after a crash", n)
			}
		})
	}
}

// recordedChanges are changes of a store that need a record in its log.
func recordedChanges(t *testing.T, s *Store) map[string]func() error {
	return map[string]func() error{
		"creating": func() error {
			_, err := s.CreateBucket(buckets.Info{Name: "new", Resolution: 1000, PPF: 3600})
			return err
		},
		"a lifetime": func() error { return s.SetTTL("a", 1<<40) },
		"a series": func() error {
			_, err := s.DeleteSeries(t.Context(), "a", deletion.Choice{Key: key(2)}, false)
			return err
		},
	}
}

// A start on a disk without a free byte serves reads, and goes on to: refusals of points
// wait, and what needs a record says so. The log has no file yet, and making one would
// fail, which ends the store.
func TestAStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	clock, mem := newTestClock(), vfs.NewMem()
	q := &quota{FS: mem, size: 64 << 20}
	o := testOptions(q, clock)
	o.MinFree = 1 << 20
	s := mustOpen(t, o)
	drivetest.SendNoise(t, s, "a", epoch, epoch+10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	free, _ := q.GetDiskUsage("")
	q.others.Add(free.AvailBytes)
	fatals := fatal(&o)
	s = mustOpen(t, o)
	defer func() { s.Crash() }()
	changes := recordedChanges(t, s)
	for range 3 {
		x := mustSession(t, s, "a")
		x.Point(key(1), epoch+11, point.FromInt(1))
		if err := x.Close(); err != nil || x.Totals().Refused != 1 {
			t.Fatalf("a point: %+v, %v", x.Totals(), err)
		}
		for what, change := range changes {
			if err := change(); !errors.Is(err, write.ErrDiskFull) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := s.Flush(t.Context()); err == nil {
			t.Error("a flush found space where there is none")
		}
		s.upkeep.EverySecond()
		_ = s.disk.Log.Sync() // it has nothing to write
	}
	if err := s.DeleteBucket("a"); !errors.Is(err, write.ErrDiskFull) {
		t.Errorf("deleting the bucket: %v", err)
	}
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+10); n != 0 || fatals.Load() != 0 {
		t.Fatalf("%d words are missing, the store ended %d times: %v", n, fatals.Load(),
			s.pressure.Failure())
	}
	q.others.Store(0)
	s.pressure.CheckDisk()
	for what, change := range changes {
		if err := change(); err != nil {
			t.Errorf("%s where there is space: %v", what, err)
		}
	}
	s.upkeep.EverySecond()
	want := s.Account().Total(mustBucket(t, s, "a"))
	if want.Refused[account.DiskFull] != 3 {
		t.Errorf("the account has %+v", want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	if got := s.Account().Total(mustBucket(t, s, "a")); got != want {
		t.Errorf("after a restart the account has %+v, before it had %+v", got, want)
	}
}

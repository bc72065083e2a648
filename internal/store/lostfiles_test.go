package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/testkit/filetest"
)

// killed returns what a power cut leaves of a store, which ends.
func killed(s *Store, mem *vfs.MemFS) *vfs.MemFS {
	after := mem.CrashClone(vfs.CrashCloneCfg{})
	s.Crash()
	return after
}

// settle makes what a test did to files outlive a power cut.
func settle(t *testing.T, mem *vfs.MemFS, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if f, err := mem.Open(path); err == nil {
			if err := errors.Join(f.Sync(), f.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if err := durable.SyncDir(mem, mem.PathDir(path)); err != nil {
			t.Fatal(err)
		}
	}
}

// withoutLog makes a log that has nothing of what was flushed: what is lost is lost.
func withoutLog(t *testing.T, s *Store, o Options) *Store {
	t.Helper()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, o)
		drivetest.SendNoise(t, s, "other", epoch, epoch+1)
		mustFlush(t, s)
	}
	return s
}

// TestALostFileOfEventsOutlivesKills: a missing file is a gap, counted and named by a check,
// however often the node is killed, before and behind the flush that notes it.
func TestALostFileOfEventsOutlivesKills(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	clock, o, s := eventStore(t, mem, func(o *Options) { o.WALSync = wal.Always })
	var h eventHistory
	h.send(t, s, rand.New(rand.NewPCG(1, 2)), clock, false)
	mustFlush(t, s)
	lost, file := len(h.sent), eventFiles(t, s)[0]
	s = withoutLog(t, s, o)
	s.Crash()
	was := filetest.Read(t, mem, file)
	if err := mem.Remove(file); err != nil {
		t.Fatal(err)
	}
	settle(t, mem, file)
	for i := range 6 {
		s = mustOpen(t, o)
		what := fmt.Sprint("start ", i)
		if _, gaps := readEvents(t, s, "e"); len(gaps) != 1 || gaps[0].Events != int64(lost) {
			t.Fatalf("%s: gaps %v of %d events", what, gaps, lost)
		}
		if l := s.Events().Account().Losses(); len(l) != 1 || l[0].Cause != events.LostFile ||
			l[0].Points != uint64(lost) {
			t.Fatalf("%s: the account has %+v", what, l)
		}
		if i == 3 {
			mustFlush(t, s)
		}
		mem = killed(s, mem)
		o.FS = mem
		if r := mustCheck(t, mem, "/data"); !strings.Contains(fmt.Sprint(r.Damages),
			fmt.Sprintf("%d items are lost", lost)) {
			t.Fatalf("%s: the check says %v", what, r.Damages)
		}
	}
	filetest.Write(t, mem, file, was) // somebody has found it
	s = mustOpen(t, o)
	defer s.Crash()
	if got, _ := readEvents(t, s, "e"); len(got) != lost {
		t.Fatalf("%d of %d events are back", len(got), lost)
	}
	if l := s.Events().Account().Losses(); len(l) != 1 || l[0].Recovered != uint64(lost) {
		t.Fatalf("the account has %+v", l)
	}
}

// TestLostTagsOutliveKills: what both copies of a file of tags lack stays counted, and a check
// names it, however often the node is killed, before and behind the merge that replaces the file.
func TestLostTagsOutliveKills(t *testing.T) {
	t.Parallel()
	for _, missing := range []bool{false, true} {
		mem, clock := vfs.NewCrashableMem(), newTestClock()
		o := tagOptions(mem, clock)
		s := mustOpen(t, o)
		for i := range 3 {
			b := drivetest.Bucket(t, s, "b")
			drivetest.Tag(t, s, drivetest.SetTag(b, i, "host", fmt.Sprint("web", i)))
			mustFlush(t, s)
		}
		s = withoutLog(t, s, o)
		s.Crash()
		for _, name := range drivetest.TagFiles(t, mem)[:2] {
			if path := "/data/tags/" + name; missing {
				if err := mem.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else {
				filetest.Rewrite(t, mem, path, func(data []byte) []byte {
					data[76] ^= 1
					return data
				})
			}
			settle(t, mem, "/data/tags/"+name)
		}
		for i := range 6 {
			s = mustOpen(t, o)
			if n, has := s.Tags().Stats().Lost, drivetest.TagsOf(t, s); n != 1 || len(has) != 2 {
				t.Fatalf("missing %t, start %d: %d are counted, and there is %v", missing, i, n, has)
			}
			if i == 3 {
				if err := s.tags.Merge(t.Context(), true); err != nil {
					t.Fatal(err)
				}
			}
			mem = killed(s, mem)
			o.FS = mem
			if r := mustCheck(t, mem, "/data"); r.Damaged == 0 {
				t.Fatalf("missing %t, start %d: the check finds nothing", missing, i)
			}
		}
		if _, err := mem.List("/data/" + datadir.LostFound); err != nil {
			t.Fatal(err)
		}
	}
}

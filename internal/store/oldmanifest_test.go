package store

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/testkit/filetest"
)

// oldRun is a store that takes points, events and tags, and the copies of its MANIFEST as they
// were at moments between.
type oldRun struct {
	t     *testing.T
	r     *rand.Rand
	clock *testClock
	mem   *vfs.MemFS
	s     *Store

	events eventHistory
	points history
	tags   drivetest.TagModel

	old []oldManifest
}

// oldManifest is what both copies held at a moment.
type oldManifest struct {
	when   string
	copies map[string][]byte
}

var manifestNames = []string{manifest.FirstName, manifest.SecondName}

func (x *oldRun) options(fs vfs.FS) Options {
	o := tagOptions(fs, x.clock)
	o.WALSync = wal.Always
	o.WALMaxSize = 16 << 10 // files of 2 KiB: flushes remove some of them
	return o
}

func newOldRun(t *testing.T, seed uint64) *oldRun {
	x := &oldRun{t: t, r: rand.New(rand.NewPCG(seed, 9)), clock: newTestClock(),
		mem: vfs.NewCrashableMem(), tags: drivetest.TagModel{}}
	x.s = mustOpen(t, x.options(x.mem))
	eventBucket(t, x.s)
	drivetest.Bucket(t, x.s, "b")
	return x
}

func (x *oldRun) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// write sends something of each kind, which is durable behind it.
func (x *oldRun) write() {
	if x.r.IntN(4) > 0 {
		x.events.send(x.t, x.s, x.r, x.clock, true)
	}
	if x.r.IntN(4) > 0 {
		sendSome(x.t, x.s, &x.points, x.r, x.clock)
	}
	if x.r.IntN(4) > 0 {
		b := drivetest.Bucket(x.t, x.s, "b")
		c := drivetest.SetTag(b, x.r.IntN(40), string(rune('p'+x.r.IntN(3))), fmt.Sprint(x.r.IntN(100)))
		drivetest.Tag(x.t, x.s, c)
		x.tags.Apply("b", &c)
	}
	x.must(x.s.disk.Log.Sync())
}

// step does one of what moves files, and notes the copies of the MANIFEST behind it.
func (x *oldRun) step(i int) {
	x.clock.Advance(time.Duration(x.r.IntN(3)) * time.Second)
	what := "a write"
	switch n := x.r.IntN(10); {
	case n < 3:
		x.write()
	case n < 6:
		what = "a flush"
		x.write()
		mustFlush(x.t, x.s)
	case n < 7:
		what = "a merge of events"
		x.must(x.s.Events().Merger.Merge(x.t.Context()))
	case n < 8:
		what = "a merge of tags"
		x.must(x.s.tags.Merge(x.t.Context(), true))
	case n < 9:
		what = "a merge of segments"
		_, err := x.s.Merge(x.t.Context())
		x.must(err)
	default:
		what = "a restart"
		if x.r.IntN(2) == 0 {
			x.must(x.s.Close())
		} else {
			x.s.Crash()
		}
		x.s = mustOpen(x.t, x.options(x.mem))
	}
	old := oldManifest{fmt.Sprintf("step %d, %s", i, what), map[string][]byte{}}
	for _, name := range manifestNames {
		old.copies[name] = filetest.Read(x.t, x.mem, "/data/"+name)
	}
	x.old = append(x.old, old)
}

// removedFiles returns the whole files of a directory that are neither where they were nor in
// lost+found. Those of one flush may be: a crash before its commit leaves the same, and the log has
// all that is in them.
func removedFiles(t *testing.T, before, after vfs.FS) (gone []string) {
	there := make(map[string]bool)
	for _, fs := range []vfs.FS{before, after} {
		walk := func() error {
			return datadir.Walk(fs, "/data", func(file string, _ int64) error {
				if fs == after {
					there[path.Base(file)] = true
				} else if datadir.Immutable(file) {
					gone = append(gone, path.Base(file))
				}
				return nil
			})
		}
		err := walk()
		for range 100 {
			if fs == before || !oserror.IsNotExist(err) {
				break
			}
			err = walk() // the catalogue of the open store removes files of its own
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	gone = slices.DeleteFunc(gone, func(name string) bool { return there[name] || there[name+".1"] })
	if len(gone) > 0 && !slices.ContainsFunc(gone, func(name string) bool {
		return name[:16] != gone[0][:16]
	}) {
		return nil
	}
	return gone
}

// TestAnOldManifestLosesNothing puts the copies of the MANIFEST back as they were at any moment of
// a run: all that was acknowledged since is there, counted once, and no whole file is removed.
func TestAnOldManifestLosesNothing(t *testing.T) {
	t.Parallel()
	for range 12 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x := newOldRun(t, seed)
			for i := range 40 {
				x.step(i)
			}
			if x.r.IntN(2) == 0 {
				x.must(x.s.Close())
			} else {
				x.s.Crash()
			}
			for _, old := range x.old {
				x.check(old)
			}
		})
	}
}

func (x *oldRun) check(old oldManifest) {
	t := x.t
	fs, before := drivetest.Clone(t, x.mem, "", 0), drivetest.Clone(t, x.mem, "", 0)
	for name, data := range old.copies {
		filetest.Write(t, fs, "/data/"+name, data)
	}
	s := mustOpen(t, x.options(fs))
	defer s.Crash()
	h := x.events
	got, gaps := readEvents(t, s, "e")
	named, _ := s.Damage()
	if len(got) != len(h.sent) || len(gaps) > 0 {
		t.Errorf("%s: %d events of %d are there, gaps %v; the start says %q", old.when, len(got),
			len(h.sent), gaps, named)
	}
	if tags := drivetest.TagsOf(t, s); !tags.Equal(x.tags) {
		t.Errorf("%s: %d tags are there, not %d; the start says %q", old.when, len(tags), len(x.tags),
			named)
	}
	if gone := removedFiles(t, before, fs); len(gone) > 0 {
		t.Errorf("%s: %q were removed; the start says %q", old.when, gone, named)
	}
	if lost := s.Events().Account().Losses(); len(lost) > 0 {
		t.Errorf("%s: events are counted as lost: %+v; the start says %q", old.when, lost, named)
	}
	if lost := s.Account().Losses(); len(lost) > 0 {
		t.Errorf("%s: points are counted as lost: %+v; the start says %q", old.when, lost, named)
	}
	if t.Failed() {
		t.FailNow()
	}
	x.points.check(t, s, "b", len(x.points.writes))
}

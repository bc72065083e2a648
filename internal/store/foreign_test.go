package store

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/testkit/filetest"
)

// twins returns two stores that were filled alike, each with other values: their files have the
// same names.
func twins(t *testing.T) (one, two *oldRun) {
	t.Helper()
	clock := newTestClock()
	runs := [2]*oldRun{}
	for i := range runs {
		x := &oldRun{t: t, r: rand.New(rand.NewPCG(uint64(i), 9)), clock: clock,
			mem: vfs.NewCrashableMem(), tags: drivetest.TagModel{}}
		x.s = mustOpen(t, x.options(x.mem))
		eventBucket(t, x.s)
		drivetest.Bucket(t, x.s, "b")
		runs[i] = x
	}
	for range 4 {
		clock.Advance(time.Second)
		for _, x := range runs {
			x.events.send(t, x.s, x.r, clock, true)
			sendSome(t, x.s, &x.points, x.r, clock)
			b := drivetest.Bucket(t, x.s, "b")
			c := drivetest.SetTag(b, x.r.IntN(40), "p", fmt.Sprint(x.r.IntN(1000)))
			drivetest.Tag(t, x.s, c)
			x.tags.Apply("b", &c)
			mustFlush(t, x.s)
		}
	}
	for _, x := range runs {
		x.must(x.s.Close())
	}
	return runs[0], runs[1]
}

// filesOf lists the files below a directory that a twin may have under the same name.
func filesOf(t *testing.T, fs vfs.FS) (all []string) {
	t.Helper()
	err := datadir.Walk(fs, "/data", func(file string, _ int64) error {
		if !strings.HasPrefix(file, datadir.Catalogue) && file != datadir.Lock {
			all = append(all, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAFileOfAnotherDirectory puts each file of a twin in the place of the own one of that name: it
// is named and set aside, nothing of it is served, and all that the other files have is.
func TestAFileOfAnotherDirectory(t *testing.T) {
	t.Parallel()
	one, two := twins(t)
	theirs := filesOf(t, two.mem)
	tried := 0
	for _, file := range filesOf(t, one.mem) {
		if !slices.Contains(theirs, file) {
			continue
		}
		tried++
		fs := drivetest.Clone(t, one.mem, "", 0)
		own := filetest.Read(t, fs, "/data/"+file)
		filetest.Write(t, fs, "/data/"+file, filetest.Read(t, two.mem, "/data/"+file))
		if r := mustCheck(t, fs, "/data"); r.Damaged == 0 {
			t.Errorf("%s: the check finds nothing", file)
		}
		s := mustOpen(t, one.options(fs))
		one.onlyOwn(s, file)
		if named, _ := s.Damage(); !strings.Contains(fmt.Sprint(named), file) ||
			!strings.Contains(fmt.Sprint(named), "of the data directory") &&
				!strings.Contains(fmt.Sprint(named), "belongs to log") {
			t.Errorf("%s: the start says %q", file, named)
		}
		s.Crash()
		if datadir.Immutable(file) { // somebody puts the own one back
			if _, err := fs.Stat("/data/lost+found/" + path.Base(file)); err != nil {
				if _, err := fs.Stat("/data/lost+found/" + path.Base(file) + ".1"); err != nil {
					t.Errorf("%s is not in lost+found", file)
				}
			}
			filetest.Write(t, fs, "/data/"+file, own)
			s = mustOpen(t, one.options(fs))
			one.all(s, file)
			s.Crash()
		}
	}
	if tried < 12 {
		t.Errorf("%d files were tried: %q", tried, theirs)
	}
}

// TestBothManifestsOfAnotherDirectory: where VERSION and the log say one directory, and both copies
// of the MANIFEST another one, VERSION is right: all own files stay, and nothing is missing.
func TestBothManifestsOfAnotherDirectory(t *testing.T) {
	t.Parallel()
	one, two := twins(t)
	fs := drivetest.Clone(t, one.mem, "", 0)
	for _, file := range []string{"MANIFEST", "MANIFEST.2"} {
		filetest.Write(t, fs, "/data/"+file, filetest.Read(t, two.mem, "/data/"+file))
	}
	if r := mustCheck(t, fs, "/data"); r.Damaged == 0 {
		t.Error("the check finds nothing")
	}
	s := mustOpen(t, one.options(fs))
	one.onlyOwn(s, "both copies")
	one.all(s, "both copies")
	if named, _ := s.Damage(); !strings.Contains(fmt.Sprint(named), "MANIFEST") {
		t.Errorf("the start says %q", named)
	}
	s.Crash()
}

// onlyOwn wants nothing that was not sent to the store.
func (x *oldRun) onlyOwn(s *Store, what string) {
	x.t.Helper()
	got, _ := readEvents(x.t, s, "e")
	for _, e := range got {
		if !slices.ContainsFunc(x.events.sent, func(o events.Event) bool { return sameEvent(e, o) }) {
			x.t.Fatalf("%s: an event was never sent here", what)
		}
	}
	for k, v := range drivetest.TagsOf(x.t, s) {
		if x.tags[k] != v {
			x.t.Fatalf("%s: the tag %v has %q, not %q", what, k, v, x.tags[k])
		}
	}
	want := x.points.state(len(x.points.writes))
	for series := range modelSeries {
		for i, got := range readAll(x.t, s, "b", series, modelFrom, modelSlots) {
			if w := want[[2]int64{int64(series), modelFrom + int64(i)}]; got != 0 && got != w &&
				!x.sent(series, modelFrom+int64(i), got) {
				x.t.Fatalf("%s: series %d slot %d holds %x, which was never sent here", what, series,
					modelFrom+int64(i), got)
			}
		}
	}
}

func (x *oldRun) sent(series int, slot int64, word uint64) bool {
	return slices.ContainsFunc(x.points.writes, func(w call) bool {
		return w.Series == series && slot >= w.Slot && slot < w.Slot+int64(len(w.Words)) &&
			w.Words[slot-w.Slot] == word
	})
}

// all wants everything that was sent.
func (x *oldRun) all(s *Store, what string) {
	x.t.Helper()
	if got, _ := readEvents(x.t, s, "e"); len(got) != len(x.events.sent) {
		x.t.Errorf("%s: %d of %d events are there", what, len(got), len(x.events.sent))
	}
	x.tags.Same(x.t, s, what)
	x.points.check(x.t, s, "b", len(x.points.writes))
}

// TestTwoOwnFilesSwapped: two files of one kind under each other's name are named, and served under
// neither; given their names back, they are there again.
func TestTwoOwnFilesSwapped(t *testing.T) {
	t.Parallel()
	x, _ := twins(t)
	byEnd := map[string][]string{}
	for _, file := range filesOf(t, x.mem) {
		if datadir.Immutable(file) {
			byEnd[path.Dir(file)+path.Ext(file)] = append(byEnd[path.Dir(file)+path.Ext(file)], file)
		}
	}
	for kind, files := range byEnd {
		if len(files) < 2 {
			continue
		}
		fs := drivetest.Clone(t, x.mem, "", 0)
		a, b := "/data/"+files[0], "/data/"+files[1]
		was := [2][]byte{filetest.Read(t, fs, a), filetest.Read(t, fs, b)}
		filetest.Write(t, fs, a, was[1])
		filetest.Write(t, fs, b, was[0])
		if r := mustCheck(t, fs, "/data"); r.Damaged < 2 {
			t.Errorf("%s: the check says %v", kind, r.Damages)
		}
		s := mustOpen(t, x.options(fs))
		x.onlyOwn(s, kind)
		if named, _ := s.Damage(); strings.Count(fmt.Sprint(named), "under the name of file") < 2 {
			t.Errorf("%s: the start says %q", kind, named)
		}
		s.Crash()
		filetest.Write(t, fs, a, was[0])
		filetest.Write(t, fs, b, was[1])
		s = mustOpen(t, x.options(fs))
		x.all(s, kind)
		s.Crash()
	}
	if len(byEnd) < 4 {
		t.Errorf("only %v were tried", byEnd)
	}
}

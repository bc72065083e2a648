package store

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// eachZeroedBlock opens a copy of a data directory for every 4 KiB of a file of the
// log, wherever they begin, with these zeroed.
func eachZeroedBlock(t *testing.T, mem *vfs.MemFS, o Options, step int, fn func(what string, s *Store, fs *vfs.MemFS)) {
	t.Helper()
	names, err := mem.List("/data/wal")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range names {
		data := fileOf(t, mem, "/data/wal/"+name)
		for at := 0; at < len(data); at += step {
			fs := whole(mem)
			bad := slices.Clone(data)
			clear(bad[at:min(len(bad), at+4096)])
			f, err := fs.Create("/data/wal/"+name, vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(bad); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(f.Sync(), f.Close()); err != nil {
				t.Fatal(err)
			}
			o.FS = fs
			s := mustOpen(t, o)
			fn(fmt.Sprintf("%s at %d", name, at), s, fs)
		}
	}
}

func fileOf(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A block of the log that reads as zeros brings back neither a bucket nor a series
// whose deletion was answered.
func TestNoDamagedBlockBringsADeletionBack(t *testing.T) {
	clock, mem := newTestClock(), vfs.NewCrashableMem()
	o := testOptions(mem, clock)
	o.BackgroundMerge, o.Logger = false, slog.New(slog.NewTextHandler(io.Discard, nil))
	s := mustOpen(t, o)
	sendNoise(t, s, "gone", epoch, epoch+20)
	sendNoise(t, s, "kept", epoch, epoch+20)
	mustFlush(t, s)
	sendNoise(t, s, "kept", epoch+20, epoch+30)
	if err := s.DeleteBucket("gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteSeries(t.Context(), "kept", SeriesChoice{Key: key(1)}, false); err != nil {
		t.Fatal(err)
	}
	x := mustSession(t, s, "kept")
	for slot := int64(epoch + 30); slot < epoch+40; slot++ {
		x.Point(key(0), uint64(slot), noise(0, slot))
	}
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := s.log.Sync(); err != nil {
		t.Fatal(err)
	}
	mem = whole(mem)
	s.Crash()
	eachZeroedBlock(t, mem, o, 512, func(what string, s *Store, _ *vfs.MemFS) {
		defer s.Crash()
		if _, err := s.BucketByName("gone"); err == nil {
			t.Errorf("%s: the bucket is back", what)
		}
		if _, err := s.BucketByName("kept"); err != nil {
			t.Fatalf("%s: the other one is gone", what)
		}
		for i, w := range readAll(t, s, "kept", 1, epoch, 40) {
			if w != 0 {
				t.Fatalf("%s: slot %d of the deleted series is back", what, i)
			}
		}
	})
}

// A block of the log that reads as zeros takes points: exactly the slots that are not
// what was sent last are named, with their number, once however often the node
// starts, and a check says the same before.
func TestLostRecordsAreNamedExactly(t *testing.T) {
	clock, mem := newTestClock(), vfs.NewCrashableMem()
	o := testOptions(mem, clock)
	o.BackgroundMerge, o.Logger = false, slog.New(slog.NewTextHandler(io.Discard, nil))
	s := mustOpen(t, o)
	const slots = 400
	last := map[[2]int64]uint64{}
	x := mustSession(t, s, "a")
	put := func(series, slot int64, w uint64) {
		x.Point(key(int(series)), uint64(slot), w)
		last[[2]int64{series, slot}] = w
	}
	for i := range int64(slots) {
		for series := range int64(3) {
			put(series, epoch+i, noise(int(series), epoch+i))
		}
	}
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	mustFlush(t, s)
	for i := range int64(slots) {
		for series := range int64(3) {
			put(series, epoch+i, noise(int(series), i)) // again, and other values
		}
		if _, err := x.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.log.Sync(); err != nil {
		t.Fatal(err)
	}
	mem = whole(mem)
	s.Crash()
	met := 0
	eachZeroedBlock(t, mem, o, 4096+512, func(what string, s *Store, fs *vfs.MemFS) {
		report, lost := s.lostSlots, lostInReplay(t, s)
		compareStale(t, what, s, staleSlots(t, s, last, slots), lost)
		if len(report) == 0 {
			s.Crash()
			return
		}
		met++
		again := o
		again.FS = fs
		mustFlush(t, s)
		s.Crash()
		s = mustOpen(t, again)
		defer s.Crash()
		if n := lostInReplay(t, s); n != lost {
			t.Errorf("%s: %d points are lost, at the second start %d", what, lost, n)
		}
	})
	if met == 0 {
		t.Error("no damage took a record")
	}
}

// compareStale compares the slots that are named as lost with those that are.
func compareStale(t *testing.T, what string, s *Store, stale map[int64]int, lost uint64) {
	t.Helper()
	report := s.lostSlots
	for slot, n := range stale {
		if n > 0 && !slices.ContainsFunc(report, func(l lostSlots) bool { return l.first <= slot && slot <= l.last }) && !unknownSaid(s) {
			t.Fatalf("%s: slot %d is stale, and no range names it: %v", what, slot, report)
		}
	}
	var points uint64
	for _, l := range report {
		points += l.points
		for slot := l.first; slot <= l.last; slot++ {
			if stale[slot] == 0 {
				t.Fatalf("%s: slot %d is as it was sent, and said to be lost: %v", what, slot, l)
			}
		}
	}
	if points != lost {
		t.Errorf("%s: %d points are named, %d counted", what, points, lost)
	}
}

// staleSlots returns how many series have in a slot not what was sent last.
func staleSlots(t *testing.T, s *Store, last map[[2]int64]uint64, slots int) map[int64]int {
	t.Helper()
	stale := map[int64]int{}
	for series := range int64(3) {
		for i, w := range readAll(t, s, "a", int(series), epoch, slots) {
			if slot := epoch + int64(i); last[[2]int64{series, slot}] != w {
				stale[slot]++
			}
		}
	}
	return stale
}

func lostInReplay(t *testing.T, s *Store) (n uint64) {
	t.Helper()
	for _, l := range s.Account().Lost() {
		if l.Cause != LostInReplay {
			t.Errorf("lost: %+v", l)
		}
		n += l.Points
	}
	return n
}

func unknownSaid(s *Store) bool {
	names, _ := s.Damage()
	return strings.Contains(strings.Join(names, "\n"), "nothing is known")
}

// Records of a group whose slots touch are one range.
func TestLostRangesAreJoined(t *testing.T) {
	records := []lostRecord{
		{10, dataHead{bucket: 1, group: 2, points: 3, first: 5, last: 6}},
		{20, dataHead{bucket: 1, group: 2, points: 4, first: 7, last: 7}},
		{30, dataHead{bucket: 1, group: 2, points: 1, first: 9, last: 9}},
		{40, dataHead{bucket: 1, group: 3, points: 1, first: 7, last: 7}},
	}
	want := []lostSlots{{1, 2, 5, 7, 7}, {1, 2, 9, 9, 1}, {1, 3, 7, 7, 1}}
	if got := lostRanges(records); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

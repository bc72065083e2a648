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

	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/replay"
	"dalmatiner/internal/testkit/filetest"
)

// eachZeroedBlock opens a copy of a data directory for every 4 KiB of a file of the
// log, wherever they begin, with these zeroed.
func eachZeroedBlock(t *testing.T, mem *vfs.MemFS, o Options, step int,
	fn func(what string, s *Store, fs *vfs.MemFS)) {
	t.Helper()
	names, err := mem.List("/data/wal")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range names {
		data := filetest.Read(t, mem, "/data/wal/"+name)
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

// A block of the log that reads as zeros brings back neither a bucket nor a series
// whose deletion was answered.
func TestNoDamagedBlockBringsADeletionBack(t *testing.T) {
	t.Parallel()
	clock, mem := newTestClock(), vfs.NewCrashableMem()
	o := testOptions(mem, clock)
	o.BackgroundMerge, o.Logger = false, slog.New(slog.NewTextHandler(io.Discard, nil))
	s := mustOpen(t, o)
	drivetest.SendNoise(t, s, "gone", epoch, epoch+20)
	drivetest.SendNoise(t, s, "kept", epoch, epoch+20)
	mustFlush(t, s)
	drivetest.SendNoise(t, s, "kept", epoch+20, epoch+30)
	if err := s.DeleteBucket("gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteSeries(t.Context(), "kept", deletion.Choice{Key: key(1)}, false); err != nil {
		t.Fatal(err)
	}
	x := mustSession(t, s, "kept")
	for slot := int64(epoch + 30); slot < epoch+40; slot++ {
		x.Point(key(0), uint64(slot), noise(0, slot))
	}
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := s.disk.Log.Sync(); err != nil {
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
// what was sent last are unknown, with their number in the account, once however often
// the node starts.
func TestLostRecordsHideExactlyTheirSlots(t *testing.T) {
	t.Parallel()
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
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	mem = whole(mem)
	s.Crash()
	met := 0
	eachZeroedBlock(t, mem, o, 4096+512, func(what string, s *Store, fs *vfs.MemFS) {
		lost := lostInReplay(t, s)
		hidden, said := compareHidden(t, what, s, last, slots, false)
		if lost != hidden && !said || lost > hidden {
			t.Errorf("%s: %d points are hidden, %d counted", what, hidden, lost)
		}
		if lost == 0 {
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
		if n, _ := compareHidden(t, what+", opened again", s, last, slots, said); n != hidden {
			t.Errorf("%s: %d points are hidden, at the second start %d", what, hidden, n)
		}
	})
	if met == 0 {
		t.Error("no damage took a record")
	}
}

// compareHidden wants of each slot what was sent last, or to be told that it is
// unknown, and returns how many are. What nobody knows of, which the store says or has
// said, may be missing, and never older.
func compareHidden(t *testing.T, what string, s *Store, last map[[2]int64]uint64, slots int,
	said bool) (hidden uint64, says bool) {
	t.Helper()
	said = said || unknownSaid(s)
	for series := range int64(3) {
		words, unknown := readUnknown(t, s, "a", int(series), epoch, slots)
		for i, w := range words {
			sent := last[[2]int64{series, epoch + int64(i)}]
			switch {
			case unknown[i] && w != 0:
				t.Fatalf("%s: slot %d of series %d is unknown, and holds %x", what, i, series, w)
			case unknown[i]:
				hidden++
			case w != sent && (w != 0 || !said):
				t.Fatalf("%s: slot %d of series %d holds %x, sent last was %x", what, i, series, w, sent)
			}
		}
	}
	return hidden, said
}

// readUnknown reads slots of a series, and which of them are unknown.
func readUnknown(t *testing.T, s *Store, bucket string, series int, from int64,
	n int) (words []uint64, unknown []bool) {
	t.Helper()
	info, err := s.BucketByName(bucket)
	if err != nil {
		t.Fatal(err)
	}
	words, unknown = make([]uint64, n), make([]bool, n)
	st, err := s.Series(info, key(series)).ReadCounted(t.Context(), from, words)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range st.Unknown {
		for slot := u.From; slot < u.Past; slot++ {
			unknown[slot-from] = true
		}
	}
	return words, unknown
}

func lostInReplay(t *testing.T, s *Store) (n uint64) {
	t.Helper()
	for _, l := range s.Account().Losses() {
		if l.Cause != replay.LostInReplay {
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

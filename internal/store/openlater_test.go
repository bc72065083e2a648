package store

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/drivetest"
)

// refusedReads are the ways in which a device does not give a segment at a start.
var refusedReads = map[string][]errorfs.OpKind{
	"open": {errorfs.OpOpen}, "read": {errorfs.OpFileReadAt}, "size": {errorfs.OpFileStat},
}

func refuse(f *faults, file string, kinds []errorfs.OpKind) {
	f.Set(func(op errorfs.Op) error {
		if slices.Contains(kinds, op.Kind) && strings.HasSuffix(op.Path, file) &&
			!strings.Contains(op.Path, datadir.LostFound) {
			return &injected{op.Path}
		}
		return nil
	})
}

// A segment that the device does not give at a start is not damaged: it is named
// and counted, stays where it is, holds merges back, and is served as soon as it
// can be read, without a restart or with one. Nothing is lost.
func TestASegmentThatTheDeviceDoesNotGive(t *testing.T) {
	t.Parallel()
	for name, kinds := range refusedReads {
		for _, restart := range []bool{false, true} {
			t.Run(name, func(t *testing.T) { testNotGiven(t, kinds, restart) })
		}
	}
}

func testNotGiven(t *testing.T, kinds []errorfs.OpKind, restart bool) {
	clock, _, f, o := faultyDevice()
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	file := drivetest.FlushToMerge(t, s, passing(s, clock))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	refuse(f, file, kinds)
	s = mustOpen(t, o)
	for range 2 {
		if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != 3*720 {
			t.Errorf("%d words are missing, the segment has %d", n, 3*720)
		}
	}
	if names, n := s.Damage(); n == 0 || s.Stats().ReadErrors == 0 ||
		!strings.Contains(strings.Join(names, " "), file) ||
		!strings.Contains(strings.Join(names, " "), "the device cannot") {
		t.Errorf("%d damages: %v", n, names)
	}
	if _, err := s.Merge(t.Context()); !errors.Is(err, syscall.EIO) {
		t.Errorf("a merge without it: %v", err)
	}
	f.Clear()
	if restart {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, o)
	}
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != 0 {
		t.Errorf("%d words are missing when it can be read again", n)
	}
	if r, err := s.Merge(t.Context()); err != nil || r.Windows == 0 {
		t.Errorf("a merge when it can be read again: %+v, %v", r, err)
	}
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != 0 {
		t.Errorf("%d words are missing in the end", n)
	}
	if lost := s.Account().Losses(); len(lost) > 0 {
		t.Errorf("lost: %v", lost)
	}
	mustBeSound(t, s)
}

// A footer that the device never gives does not keep the rest from being merged:
// after some tries its segment is set aside, and all of its points are lost.
func TestAFooterThatIsNeverRead(t *testing.T) {
	t.Parallel()
	clock, mem, f, o := faultyDevice()
	o.FlushInterval = 10000 * 60 * 60 * 1e9
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	file := drivetest.FlushToMerge(t, s, passing(s, clock))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	refuse(f, file, refusedReads["read"])
	s = mustOpen(t, o)
	for range compaction.MaxUnread {
		if _, err := s.Merge(t.Context()); !errors.Is(err, syscall.EIO) {
			t.Fatalf("a merge of what cannot be read: %v", err)
		}
	}
	if r, err := s.Merge(t.Context()); err != nil || r.Windows == 0 {
		t.Fatalf("a merge after %d tries: %+v, %v", compaction.MaxUnread, r, err)
	}
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != 3*720 {
		t.Errorf("%d words are missing, the segment had %d", n, 3*720)
	}
	if lost := s.Account().Losses(); !slices.Equal(lost,
		[]account.Loss{{Cause: compaction.LostBlocks, Points: 3 * 720}}) {
		t.Errorf("the account says %+v", lost)
	}
	if _, err := mem.Stat(s.lostPath(file)); err != nil {
		t.Errorf("the segment was not set aside: %v", err)
	}
}

// After damage to the MANIFEST the device does not give a segment that would be
// taken in: it stays where it is, its name is not given again, and the next start
// that can read it takes it in.
func TestAStrayThatTheDeviceDoesNotGive(t *testing.T) {
	t.Parallel()
	for name, kinds := range refusedReads {
		t.Run(name, func(t *testing.T) { testStrayNotGiven(t, kinds) })
	}
}

func testStrayNotGiven(t *testing.T, kinds []errorfs.OpKind) {
	clock, mem, f, o := faultyDevice()
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	file := drivetest.FlushToMerge(t, s, passing(s, clock))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(mem.Remove(s.path(manifest.FirstName)),
		mem.Remove(s.path(manifest.SecondName)), mem.RemoveAll(s.path(datadir.WAL))); err != nil {
		t.Fatal(err)
	}
	refuse(f, file, kinds)
	s = mustOpen(t, o)
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != 3*720 {
		t.Errorf("%d words are missing, the segment has %d", n, 3*720)
	}
	if names, _ := s.Damage(); !strings.Contains(strings.Join(names, " "), file) {
		t.Errorf("it is not named: %v", names)
	}
	drivetest.SendNoise(t, s, "a", epoch+12*3600+1, epoch+12*3600+2)
	mustFlush(t, s)
	if _, err := mem.Stat(s.path(file)); err != nil {
		t.Errorf("it does not stay: %v", err)
	}
	s.Crash()
	if state, _, err := manifest.Inspect(mem, o.Dir, origin.Directory{}); err != nil ||
		!state.Suspect {
		t.Errorf("the next start will not look for it: %v", err)
	}
	f.Clear()
	s = mustOpen(t, o)
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != 0 {
		t.Errorf("%d words are missing when it can be read again", n)
	}
	mustBeSound(t, s)
}

// Aggregates leave out a window that the device does not give, as reads do.
func TestAWindowThatTheDeviceDoesNotGive(t *testing.T) {
	t.Parallel()
	clock, mem, f, o := faultyDevice()
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	drivetest.FlushToMerge(t, s, passing(s, clock))
	if r, err := s.Merge(t.Context()); err != nil || r.Windows == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := mem.List(s.path("window"))
	if err != nil || len(files) != 1 {
		t.Fatalf("windows %v: %v", files, err)
	}
	refuse(f, files[0], refusedReads["open"])
	s = mustOpen(t, o)
	info, err := s.BucketByName("a")
	if err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		t.Helper()
		dst := make([]chunk.Header, 4) // of half a chunk, and of windows that a rollup has
		if _, err := s.Series(info, key(1)).Aggregate(t.Context(), epoch, 360, dst); err != nil {
			t.Fatal(err)
		}
		for i := range dst {
			n += dst[i].Count
		}
		long := make([]chunk.Header, 1)
		if _, err := s.Series(info, key(1)).Aggregate(t.Context(), epoch-epoch%7200, 7200,
			long); err != nil {
			t.Fatal(err)
		}
		return n + long[0].Count
	}
	if n := count(); n != 0 {
		t.Errorf("%d points of a window that is not given", n)
	}
	if _, n := s.Damage(); n == 0 || s.Stats().ReadErrors == 0 {
		t.Errorf("%d damages", n)
	}
	f.Clear()
	if n := count(); n <= 1440 {
		t.Errorf("%d points when it can be read again", n)
	}
}

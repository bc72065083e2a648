package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/window"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/drivetest"
)

// spoil writes a segment anew in which one chunk of a series is what no encoder
// makes, and every checksum is right. It returns the points that are lost.
func spoil(t *testing.T, fs vfs.FS, path string, bucket uint64, key []byte,
	number int64) (points int) {
	t.Helper()
	r, err := segment.Open(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	w, err := segment.Create(fs, path+".tmp")
	if err != nil {
		t.Fatal(err)
	}
	info := r.Info()
	w.Belongs(r.Origin())
	w.Describe(info.Generation, info.WindowFirst, info.WindowChunks)
	buckets, err := r.Buckets()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range buckets {
		w.AddBucket(b)
	}
	if err := r.Series(func(s segment.Series) error { w.AddSeries(s); return nil }); err != nil {
		t.Fatal(err)
	}
	id := segment.Hash(metric.Series(bucket, key))
	err = r.Each(func(b uint64, h segment.Hash, n int64, data []byte) error {
		head, err := chunk.ParseHeader(data)
		if err != nil {
			return err
		}
		if b == bucket && h == id && n == number {
			data, points = slices.Concat(data, []byte{0x5a}), head.Count // with one byte too many
		}
		return w.Add(b, h, n, head.Count, data)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := fs.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
	drivetest.Recommit(t, fs, path)
	return points
}

// A chunk that does not decode, though its checksum is right, is named, counted
// and left out by reads and merges; the rest of its window is merged.
func TestAChunkThatDoesNotDecodeIsLeftOut(t *testing.T) {
	t.Parallel()
	clock, mem := newTestClock(), vfs.NewMem()
	o := testOptions(mem, clock)
	byHand(&o)
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	pass(s, clock, time.Hour)
	drivetest.SendNoise(t, s, "a", epoch, epoch+700)
	flushed := drivetest.Flush(t, s)
	// The second half of a chunk that must be merged.
	drivetest.SendNoise(t, s, "a", epoch+700, epoch+1440)
	mustFlush(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info := mustBucket(t, s, "a")
	lost := spoil(t, mem, s.path(flushed), info, key(1), epoch/chunk.Slots)
	if lost == 0 {
		t.Fatal("nothing was spoilt")
	}
	s = mustOpen(t, o)
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != lost {
		t.Errorf("%d words are missing before the merge, want %d", n, lost)
	}
	names, count := s.Damage()
	if count == 0 || !strings.Contains(strings.Join(names, " "), "does not decode") {
		t.Errorf("%d damages: %v", count, names)
	}
	pass(s, clock, 47*time.Hour)
	drivetest.SendNoise(t, s, "a", epoch+48*3600, epoch+48*3600+1)
	mustFlush(t, s)
	if r, err := s.Merge(t.Context()); err != nil || r.Windows == 0 {
		t.Fatalf("merge: %+v, %v", r, err)
	}
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != lost {
		t.Errorf("%d words are missing after the merge, want %d", n, lost)
	}
	if got := s.Account().Lost(); !slices.Equal(got,
		[]account.Loss{{Cause: compaction.LostBlocks, Points: uint64(lost)}}) {
		t.Errorf("%d words are missing, the account says %+v", lost, got)
	}
	if _, err := mem.Stat(s.lostPath(flushed)); err != nil {
		t.Errorf("the source was not set aside: %v", err)
	}
}

func mustBucket(t fataler, s *Store, name string) uint64 {
	t.Helper()
	info, err := s.BucketByName(name)
	if err != nil {
		t.Fatalf("bucket: %v", err)
	}
	return info.ID
}

// An overlay is cut into files like a window, and counts as one.
func TestOverlaysAreCut(t *testing.T) {
	t.Parallel()
	clock, mem := newTestClock(), vfs.NewMem()
	o := testOptions(mem, clock)
	byHand(&o)
	o.maxMergedFile = 64
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	pass(s, clock, 5*24*time.Hour)
	drivetest.SendNoise(t, s, "a", epoch, epoch+7200)
	drivetest.SendNoise(t, s, "a", epoch+5*86400, epoch+5*86400+1)
	mustFlush(t, s)
	if _, err := s.Merge(t.Context()); err != nil { // windows of the first two hours
		t.Fatal(err)
	}
	const rounds = window.MaxOverlays - 1 // beside the one of what was still open
	for i := range int64(rounds) {
		drivetest.SendNoise(t, s, "a", epoch+i*10, epoch+i*10+3) // late, too few for a window
		drivetest.SendNoise(t, s, "a", epoch+3600+i*10, epoch+3600+i*10+3)
		mustFlush(t, s)
		if _, err := s.Merge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	files := make(map[uint64]int) // by generation
	for _, seg := range s.versions.Latest().Segments {
		if strings.HasPrefix(seg.Name(), "overlay/") {
			files[seg.Meta.Generation]++
			if seg.Info.Points == 0 {
				t.Errorf("%s is empty", seg.Name())
			}
		}
	}
	if len(files) != window.MaxOverlays {
		t.Errorf("overlays by generation: %v, want %d", files, window.MaxOverlays)
	}
	for generation, n := range files {
		if n < 2 {
			t.Errorf("the overlay of generation %d has %d file", generation, n)
		}
	}
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+7200); n != 0 {
		t.Errorf("%d words are missing", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if r := mustCheck(t, mem, "/data"); len(r.Damages) > 0 {
		t.Errorf("the check finds %v", r.Damages)
	}
	s = mustOpen(t, o)
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+7200); n != 0 {
		t.Errorf("%d words are missing after a restart", n)
	}
}

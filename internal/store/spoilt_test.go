package store

import (
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/window"
	"dalmatiner/internal/store/drivetest"
)

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

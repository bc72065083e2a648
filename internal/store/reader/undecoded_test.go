package reader_test

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
)

// A chunk that does not decode, though its checksum is right, is named, counted
// and left out by reads and merges; the rest of its window is merged.
func TestAChunkThatDoesNotDecodeIsLeftOut(t *testing.T) {
	t.Parallel()
	clock, mem := drivetest.NewClock(), vfs.NewMem()
	o := storetest.OptionsAt(mem, clock)
	storetest.ByHand(&o)
	s := storetest.Start(t, o)
	defer func() { s.Crash() }()
	s.Pass(t, clock, time.Hour)
	drivetest.SendNoise(t, s, "a", epoch, epoch+700)
	flushed := drivetest.Flush(t, s)
	// The second half of a chunk that must be merged.
	drivetest.SendNoise(t, s, "a", epoch+700, epoch+1440)
	drivetest.Flush(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := s.BucketByName("a")
	if err != nil {
		t.Fatal(err)
	}
	lost := drivetest.Spoil(t, mem, "/data/"+flushed, info.ID, key(1), epoch/chunk.Slots)
	if lost == 0 {
		t.Fatal("nothing was spoilt")
	}
	s = storetest.Start(t, o)
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != lost {
		t.Errorf("%d words are missing before the merge, want %d", n, lost)
	}
	names, count := s.Damage()
	if count == 0 || !strings.Contains(strings.Join(names, " "), "does not decode") {
		t.Errorf("%d damages: %v", count, names)
	}
	s.Pass(t, clock, 47*time.Hour)
	drivetest.SendNoise(t, s, "a", epoch+48*3600, epoch+48*3600+1)
	drivetest.Flush(t, s)
	if r, err := s.Merge(t.Context()); err != nil || r.Windows == 0 {
		t.Fatalf("merge: %+v, %v", r, err)
	}
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != lost {
		t.Errorf("%d words are missing after the merge, want %d", n, lost)
	}
	if got := s.Account().Losses(); !slices.Equal(got,
		[]account.Loss{{Cause: compaction.LostBlocks, Points: uint64(lost)}}) {
		t.Errorf("%d words are missing, the account says %+v", lost, got)
	}
	if _, err := mem.Stat("/data/" + datadir.LostFound + "/" + path.Base(flushed)); err != nil {
		t.Errorf("the source was not set aside: %v", err)
	}
}

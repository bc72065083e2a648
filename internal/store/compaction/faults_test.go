package compaction_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/testkit/filetest"
)

// A flush in which a window met damage is set aside when it goes, also when
// that is later, after a restart, and nothing more is read of the damaged part.
func TestADamagedSourceIsSetAside(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%v", restart), func(t *testing.T) { testDamagedSource(t, restart) })
	}
}

func testDamagedSource(t *testing.T, restart bool) {
	clock, mem := drivetest.NewClock(), vfs.NewMem()
	o := storetest.OptionsAt(mem, clock)
	// A merge or a flush of the store's own would take the points out of the
	// segment that is damaged, or leave only some of them in it.
	storetest.ByHand(&o)
	s := storetest.Start(t, o)
	defer func() { s.Crash() }()
	drivetest.SendNoise(t, s, "a", epoch, epoch+60)
	drivetest.Flush(t, s)
	s.Pass(t, clock, 12*time.Hour)
	drivetest.SendNoise(t, s, "a", epoch+60, epoch+660) // fills the first blocks
	drivetest.SendNoise(t, s, "a", epoch+12*3600, epoch+12*3600+1)
	drivetest.SendNoise(t, s, "b", epoch+12*3600, epoch+12*3600+600) // still open
	flushed := drivetest.Flush(t, s)
	filetest.FlipBit(t, mem, "/data/"+flushed, 8*100+6)
	if _, err := s.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names, n := s.Damage(); n == 0 || !strings.Contains(strings.Join(names, " "), flushed) {
		t.Fatalf("%d damages: %v, want %s", n, names, flushed)
	}
	if restart {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = storetest.Start(t, o)
	}
	s.Pass(t, clock, 12*time.Hour)
	for _, bucket := range []string{"a", "b"} {
		drivetest.SendNoise(t, s, bucket, epoch+24*3600, epoch+24*3600+1)
	}
	drivetest.Flush(t, s)
	if _, err := s.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := mem.Stat("/data/" + flushed); err == nil {
		t.Fatalf("%s is still there", flushed)
	}
	aside := mem.PathJoin("/data", datadir.LostFound, mem.PathBase(flushed))
	if _, err := mem.Stat(aside); err != nil {
		t.Errorf("it was not set aside: %v", err)
	}
	missing := drivetest.MissingNoise(t, s, "a", epoch, epoch+660) +
		drivetest.MissingNoise(t, s, "a", epoch+12*3600, epoch+12*3600+1)
	lost := s.Account().Losses()
	if missing == 0 ||
		!slices.Equal(lost, []account.Loss{{Cause: compaction.LostBlocks, Points: uint64(missing)}}) {
		t.Errorf("%d words are missing, the account says %+v", missing, lost)
	}
	if n := drivetest.MissingNoise(t, s, "b", epoch+12*3600, epoch+12*3600+600); n != 0 {
		t.Errorf("%d words of the undamaged part are missing", n)
	}
}

// sendHour writes two points a minute.
func sendHour(t *testing.T, s *storetest.Store, bucket string, hour int64) {
	t.Helper()
	x := drivetest.Session(t, s, bucket)
	for slot := epoch + hour*3600; slot < epoch+(hour+1)*3600; slot += 30 {
		for series := range 3 {
			x.Point(drivetest.Key(series), uint64(slot), drivetest.Noise(series, slot))
		}
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

// Readers beside merges, deletions and a changing TTL find every point of the
// bucket that stays, and Close ends a merge under way.
func TestReadersBesideMerges(t *testing.T) {
	t.Parallel()
	clock, mem := drivetest.NewClock(), vfs.NewMem()
	s := storetest.Start(t, storetest.OptionsAt(mem, clock))
	var sent atomic.Int64 // hours
	done := make(chan struct{})
	var readers sync.WaitGroup
	s.Pass(t, clock, time.Hour)
	sendHour(t, s, "a", 0)
	sent.Store(1)
	for series := range 2 {
		readers.Go(func() {
			for {
				n := sent.Load() * 3600
				for i, got := range drivetest.Words(t, s, "a", series, epoch, int(n)) {
					if i%30 == 0 && got != drivetest.Noise(series, epoch+int64(i)) {
						t.Errorf("series %d slot %d of %d holds %x beside a merge", series, i, n, got)
						return
					}
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for hour := int64(1); hour < 36; hour++ {
		s.Pass(t, clock, time.Hour)
		sendHour(t, s, "a", hour)
		sendHour(t, s, "gone", hour)
		sent.Store(hour + 1)
		drivetest.Flush(t, s) // merges in the background
		switch hour % 5 {
		case 2:
			if err := s.SetTTL("gone", hour*100); err != nil {
				t.Error(err)
			}
		case 4:
			if err := s.DeleteBucket("gone"); err != nil {
				t.Error(err)
			}
		}
		if hour%7 == 0 {
			if _, err := s.Merge(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
	close(done)
	readers.Wait()
	drivetest.Within(t, "Close", func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, n := s.Damage(); n != 0 {
		t.Errorf("%d damages", n)
	}
}

// What the device cannot read is named, counted and left out of a read; the
// rest is served. A merge leaves nothing out for it, but waits for better times.
func TestADeviceThatCannotRead(t *testing.T) {
	t.Parallel()
	clock, mem := drivetest.NewClock(), vfs.NewMem()
	f := filetest.NewFaults(mem)
	o := storetest.OptionsAt(f.FS, clock)
	storetest.ByHand(&o)
	s := storetest.Start(t, o)
	defer func() { s.Crash() }()
	flushed := drivetest.FlushToMerge(t, s, s.Passing(t, clock))
	// The reads load the indexes.
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != 0 {
		t.Fatalf("%d words are missing before", n)
	}
	f.Set(filetest.BadStart(flushed))
	missing := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440)
	if missing == 0 || missing >= 3*720 {
		t.Errorf("%d words are missing; one block of several cannot be read", missing)
	}
	names, n := s.Damage()
	if st := s.Stats(); n == 0 || st.ReadErrors == 0 ||
		!strings.Contains(strings.Join(names, " "), flushed) {
		t.Errorf("%d damages, %d read errors: %v", n, st.ReadErrors, names)
	}
	before := s.Stats().Segments.Count
	if _, err := s.Merge(t.Context()); !errors.Is(err, syscall.EIO) {
		t.Errorf("a merge of what cannot be read: %v", err)
	}
	if files := drivetest.MergedFiles(t, mem); len(files) > 0 || s.Stats().Segments.Count != before {
		t.Errorf("left: %v, %d segments", files, s.Stats().Segments.Count)
	}
	f.Clear()
	if r, err := s.Merge(t.Context()); err != nil || r.Windows == 0 {
		t.Errorf("a merge when it can be read again: %+v, %v", r, err)
	}
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != 0 {
		t.Errorf("%d words are missing in the end", n)
	}
	if lost := s.Account().Losses(); len(lost) > 0 {
		t.Errorf("lost: %v", lost)
	}
}

// A range that the device never reads again does not keep the rest from being
// merged: after some tries it is left out as damage is, and its segment is set
// aside.
func TestABadSectorDoesNotEndMerging(t *testing.T) {
	t.Parallel()
	clock, mem := drivetest.NewClock(), vfs.NewMem()
	f := filetest.NewFaults(mem)
	o := storetest.OptionsAt(f.FS, clock)
	storetest.ByHand(&o)
	s := storetest.Start(t, o)
	defer func() { s.Crash() }()
	flushed := drivetest.FlushToMerge(t, s, s.Passing(t, clock))
	f.Set(filetest.BadStart(flushed))
	for n := range compaction.MaxUnread {
		if _, err := s.Merge(t.Context()); !errors.Is(err, syscall.EIO) {
			t.Fatalf("merge %d of what cannot be read: %v", n, err)
		}
	}
	if r, err := s.Merge(t.Context()); err != nil || r.Windows == 0 {
		t.Fatalf("a merge after %d tries: %+v, %v", compaction.MaxUnread, r, err)
	}
	missing := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440)
	if missing == 0 || missing >= 3*720 {
		t.Errorf("%d words are missing; one block of several cannot be read", missing)
	}
	if lost := s.Account().Losses(); !slices.Equal(lost,
		[]account.Loss{{Cause: compaction.LostBlocks, Points: uint64(missing)}}) {
		t.Errorf("%d words are missing, the account says %+v", missing, lost)
	}
	aside := mem.PathJoin("/data", datadir.LostFound, mem.PathBase(flushed))
	if _, err := mem.Stat(aside); err != nil {
		t.Errorf("the segment was not set aside: %v", err)
	}
}

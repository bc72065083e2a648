package fsck_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/storetest"
)

// flips is how many single bits are flipped in each file: the whole suite has
// a budget, and every run draws others.
const flips = 12

// One flipped bit in any file of a data directory: the check names the file,
// the store opens, and no read gives a word that was not sent (I5, I6). A bit
// in the last record of the log or the MANIFEST cannot be told from a tear and
// is named as one.
func TestAFlippedBitIsNamed(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	clock, whole := drivetest.NewClock(), vfs.NewMem()
	s := storetest.FillRows(t, storetest.OptionsAt(whole, clock))
	sendEvents(t, s, r, clock.Now())
	drivetest.Tag(t, s, drivetest.SetTag(drivetest.Bucket(t, s, "rows"), 1, "host", "one"))
	mergeRows(t, s, clock)
	s.Crash()
	kinds := make(map[string]int)
	err := datadir.Walk(whole, "/data", func(file string, size int64) error {
		kind := file[:strings.IndexAny(file+"/", "/")]
		// The other files of the catalogue carry no data: pebble ignores its lock
		// and its options, and what its MANIFEST loses shows in the generation.
		if size == 0 || kind == datadir.Catalogue && !strings.HasSuffix(file, ".sst") {
			return nil
		}
		for range flips {
			kinds[kind]++
			testFlip(t, clock, whole, file, r.Int64N(8*size))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{datadir.Version, manifest.FirstName, manifest.SecondName,
		datadir.WAL, datadir.Flush, datadir.SegmentDirs[manifest.Window], datadir.Catalogue,
		datadir.FileDir(manifest.FileName{Kind: manifest.EventFile}),
		datadir.FileDir(manifest.FileName{Kind: manifest.TagChanges})} {
		if kinds[kind] < flips {
			t.Errorf("%d flips in %s, want %d or more", kinds[kind], kind, flips)
		}
	}
}

func testFlip(t *testing.T, clock *drivetest.Clock, whole vfs.FS, file string, bit int64) {
	t.Helper()
	fs := drivetest.Clone(t, whole, file, bit)
	report := drivetest.Check(t, fs, "/data")
	if !drivetest.ReportNames(&report, file) {
		t.Errorf("bit %d of %s: the check does not name it: %v", bit, file, report.Damages)
	}
	s, err := storetest.TryStart(storetest.OptionsAt(fs, clock))
	if err != nil {
		// A VERSION of another format is refused by its number.
		if file != datadir.Version || !strings.Contains(err.Error(), "this program reads format") {
			t.Errorf("bit %d of %s: the store does not open: %v", bit, file, err)
		}
		return
	}
	defer s.Crash()
	drivetest.CheckRows(t, s, drivetest.RowSlots*3/4)
	if _, n := s.Damage(); n == 0 && strings.HasPrefix(file, datadir.WAL) && len(report.Damages) > 0 {
		t.Errorf("bit %d of %s: the check finds %v, the start counts nothing", bit, file, report.Damages)
	}
}

// sendEvents makes some events, and returns once they are durable.
func sendEvents(t *testing.T, s *storetest.Store, r *rand.Rand, now time.Time) {
	t.Helper()
	drivetest.Bucket(t, s, "events")
	var list []events.Event
	for range 20 {
		list = append(list, events.Event{Time: now.UnixNano() - r.Int64N(1e9),
			Body: fmt.Appendf(nil, "event %x", r.Uint64())})
	}
	w, err := s.Events().Write("events", list)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Intake().WaitDurable(t.Context(), w.Token); err != nil {
		t.Fatal(err)
	}
}

package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/catalogue"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
)

// Names that the device does not give while a lost catalogue is rebuilt are not
// gone for good: the next start has them, whatever was merged in between.
func TestNamesThatCannotBeReadAreLookedForAgain(t *testing.T) {
	t.Parallel()
	for _, merge := range []bool{false, true} {
		t.Run(fmt.Sprint("merge ", merge), func(t *testing.T) { testUnreadNames(t, merge) })
	}
}

func testUnreadNames(t *testing.T, merge bool) {
	_, mem, f, o := faultyDevice()
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	send := func(series int) {
		x := mustSession(t, s, "b")
		x.Point(key(series), epoch, point.FromInt(int64(series+1)))
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	names := make([]string, 3)
	for i := range names { // each in a segment of its own
		send(i)
		names[i] = drivetest.Flush(t, s)
	}
	reopen := func() {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, o)
	}
	check := func(missing int) { checkOnePointEach(t, s, len(names), missing) }
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := mem.RemoveAll(s.path(datadir.Catalogue)); err != nil {
		t.Fatal(err)
	}
	f.Set(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, names[1]) {
			if info, err := mem.Stat(op.Path); err == nil && op.Offset < info.Size()-156 { // not the footer
				return syscall.EIO
			}
		}
		return nil
	})
	s = mustOpen(t, o)
	check(1)
	if list, n := s.Damage(); n == 0 || s.Stats().ReadErrors == 0 ||
		!strings.Contains(strings.Join(list, " "), names[1]) {
		t.Errorf("%d damages: %v", n, list)
	}
	reopen() // and again
	check(1)
	f.Clear()
	if merge {
		send(7)
		mustFlush(t, s)
		if _, err := s.Merge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	reopen()
	check(-1)
	if list, n := s.Damage(); n > 0 {
		t.Errorf("damage when all can be read: %v", list)
	}
	state, _, err := manifest.Inspect(mem, o.Dir, origin.Directory{})
	if err != nil || state.Catalogue&catalogue.NamesUnread != 0 {
		t.Errorf("the next start rebuilds again: %x, %v", state.Catalogue, err)
	}
	reopen()
	check(-1)
}

// checkOnePointEach: of n series each has its point, but for one.
func checkOnePointEach(t *testing.T, s *Store, n, missing int) {
	t.Helper()
	for i := range n {
		want := point.FromInt(int64(i + 1))
		if i == missing {
			want = 0
		}
		if got := readAll(t, s, "b", i, epoch, 1)[0]; got != want {
			t.Errorf("series %d holds %x, want %x", i, got, want)
		}
	}
}

// Whichever edit of the MANIFEST is damaged, and with the catalogue lost as well:
// a deleted series does not come back, not even where it has begun anew, and the
// others are there.
func TestADamagedEditBringsNoSeriesBack(t *testing.T) {
	t.Parallel()
	for _, merge := range []bool{false, true} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("merge %v, catalogue lost %v", merge, lost), func(t *testing.T) {
				testDamagedEdit(t, merge, lost)
			})
		}
	}
}

const (
	buriedSeries = 4 // deleted
	anewSeries   = 3 // deleted and begun anew
)

func testDamagedEdit(t *testing.T, merge, lost bool) {
	clock, mem := newTestClock(), vfs.NewCrashableMem()
	o := testOptions(mem, clock)
	o.BackgroundMerge, o.WALMaxSize = false, 8*minLogFile // the log forgets soon
	s := mustOpen(t, o)
	slot := int64(epoch)
	send := func(n int, all bool) {
		x := mustSession(t, s, "b")
		for range n {
			for i := range 8 {
				if i != buriedSeries || all {
					x.Point(key(i), uint64(slot), noise(i, slot))
				}
			}
			slot++
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	send(50, true)
	mustFlush(t, s)
	for _, i := range []int{buriedSeries, anewSeries} {
		if _, err := s.DeleteSeries(t.Context(), "b", deletion.Choice{Key: key(i)}, false); err != nil {
			t.Fatal(err)
		}
	}
	anew := slot
	mustFlush(t, s)
	for range 3 {
		send(150, false)
		mustFlush(t, s)
		if merge {
			if _, err := s.Merge(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	text, err := durable.ReadFile(mem, s.path(manifest.FirstName))
	if err != nil {
		t.Fatal(err)
	}
	marker := []byte{0xed, 0x17, 0x45, 0x44}
	edits := bytes.Count(text, marker)
	if edits < 6 {
		t.Fatalf("%d edits", edits)
	}
	for at, n := 0, 0; n < edits; n++ {
		at += bytes.Index(text[at:], marker) + 1
		o.FS = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100,
			RNG: rand.New(rand.NewPCG(1, 1))})
		flipByte(t, o.FS, s.path(manifest.FirstName), int64(at+14))
		flipByte(t, o.FS, s.path(manifest.SecondName), int64(at+14))
		if lost {
			if err := o.FS.RemoveAll(s.path(datadir.Catalogue)); err != nil {
				t.Fatal(err)
			}
		}
		checkBuriedTwice(t, o, fmt.Sprintf("edit %d of %d", n, edits), anew, slot)
	}
}

// checkBuriedTwice checks two starts, before and after merges.
func checkBuriedTwice(t *testing.T, o Options, what string, anew, past int64) {
	t.Helper()
	for range 2 {
		s := mustOpen(t, o)
		checkBuried(t, s, what, anew, past)
		mustFlush(t, s)
		if _, err := s.Merge(t.Context()); err != nil {
			t.Error(err)
		}
		checkBuried(t, s, what+", merged", anew, past)
		s.Crash()
	}
}

func checkBuried(t *testing.T, s *Store, what string, anew, past int64) {
	t.Helper()
	for i := range 8 {
		for j, got := range readAll(t, s, "b", i, epoch, int(past-epoch)) {
			slot := epoch + int64(j)
			want := noise(i, slot)
			if i == buriedSeries || i == anewSeries && slot < anew {
				want = 0
			}
			if got != want {
				t.Errorf("%s: series %d slot epoch+%d holds %x, want %x", what, i, j, got, want)
				break
			}
		}
	}
	info, err := s.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Metrics(t.Context(), info, nil, func(k []byte) bool {
		if bytes.Equal(k, key(buriedSeries)) {
			t.Errorf("%s: %s is listed", what, metric.Text(k))
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
}

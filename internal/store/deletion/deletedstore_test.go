package deletion_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/incarnation"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/inventory"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/testkit/filetest"
)

// deletedStore has two series with the same points, of which one was deleted and
// sent again, and is as a merge of all leaves it.
type deletedStore struct {
	fs    *vfs.MemFS
	clock *drivetest.Clock
	o     store.Options
	s     *storetest.Store
	info  buckets.Info
	old   map[string][]byte // files of segments from before the deletion
}

func newDeletedStore(t *testing.T) *deletedStore {
	d := &deletedStore{fs: vfs.NewMem(), clock: drivetest.NewClock(), old: map[string][]byte{}}
	d.o = storetest.OptionsAt(d.fs, d.clock)
	storetest.ByHand(&d.o)
	d.s = storetest.Start(t, d.o)
	d.send(t, 1, drivetest.Key(0), drivetest.Key(1))
	d.info = mustBucket(t, d.s, "b")
	drivetest.Flush(t, d.s)
	for _, seg := range d.segments(t) {
		d.old["/data/"+seg.File] = filetest.Read(t, d.fs, "/data/"+seg.File)
	}
	if _, err := d.s.DeleteSeries(t.Context(), "b", deletion.Choice{Key: drivetest.Key(0)},
		false); err != nil {
		t.Fatal(err)
	}
	drivetest.Flush(t, d.s)
	d.settle(t)
	return d
}

// segments returns those that the MANIFEST names.
func (d *deletedStore) segments(t *testing.T) []inventory.Segment {
	t.Helper()
	list, err := store.NewOperations(d.s.Store).Segments(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// settle merges until nothing needs the tombstone any more.
func (d *deletedStore) settle(t *testing.T) {
	t.Helper()
	d.s.Pass(t, d.clock, 2*24*time.Hour)
	d.send(t, 2, drivetest.Key(1))
	for range 3 {
		drivetest.Flush(t, d.s)
		if _, err := d.s.Merge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	d.clock.Advance(time.Minute)
	d.send(t, 2, drivetest.Key(1))
	drivetest.Flush(t, d.s) // which names the deletion once more
}

func (d *deletedStore) send(t *testing.T, v int64, keys ...[]byte) {
	t.Helper()
	x := drivetest.Session(t, d.s, "b")
	for _, k := range keys {
		for i := range int64(100) {
			x.Point(k, uint64(d.clock.Now().Unix()-i), point.FromInt(v))
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

func (d *deletedStore) incarnation() uint64 {
	return d.s.Incarnation(d.info.ID, metric.Series(d.info.ID, drivetest.Key(0)))
}

// A deletion is remembered after its tombstone has done its work, and after that
// forgotten: a series that begins anew has it, or none.
func TestDeletionIsRememberedForAMonth(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		d := newDeletedStore(t)
		n := d.incarnation()
		if st := d.s.Stats(); st.Deleted.Tombstones != 0 || st.Deleted.Remembered != 1 ||
			st.Deleted.Incarnations != 1 || n == 0 {
			t.Fatalf("%d tombstones, %d remembered, %d incarnations, %d", st.Deleted.Tombstones,
				st.Deleted.Remembered, st.Deleted.Incarnations, n)
		}
		d.clock.Advance(incarnation.TTL - 4*24*time.Hour)
		if late {
			d.clock.Advance(8 * 24 * time.Hour)
		}
		d.s.Follow(t, d.clock)
		d.send(t, 3, drivetest.Key(1))
		drivetest.Flush(t, d.s)
		for _, reopened := range []bool{false, true} {
			want := n
			if late {
				want = 0
			}
			if got := d.incarnation(); got != want {
				t.Errorf("late %t, reopened %t: incarnation %d, want %d", late, reopened, got, want)
			}
			if st := d.s.Stats(); (st.Deleted.Remembered == 0) != late ||
				(st.Deleted.Incarnations == 0) != late || st.Deleted.Forgotten != 0 {
				t.Errorf("late %t: %d remembered, %d incarnations, %d forgotten early", late,
					st.Deleted.Remembered, st.Deleted.Incarnations, st.Deleted.Forgotten)
			}
			if err := d.s.Close(); err != nil {
				t.Fatal(err)
			}
			d.s = storetest.Start(t, d.o)
		}
		d.s.Crash()
	}
}

// damage puts the files of before the deletion back and takes away copies of the
// MANIFEST, and windows.
func (d *deletedStore) damage(t *testing.T, manifests []string, windows bool) {
	t.Helper()
	gone := []string{}
	for _, name := range manifests {
		gone = append(gone, "/data/"+name)
	}
	for _, seg := range d.segments(t) {
		if windows && strings.HasPrefix(seg.File, datadir.SegmentDirs[manifest.Window]) {
			gone = append(gone, "/data/"+seg.File)
		}
	}
	if err := d.s.Close(); err != nil {
		t.Fatal(err)
	}
	for path, data := range d.old {
		if err := durable.WriteFile(d.fs, d.fs.PathDir(path), d.fs.PathBase(path), data); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range gone {
		if err := d.fs.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// Files from before a deletion that turn up again bring nothing back, whatever is
// left of the MANIFEST, also when the tombstone is not needed any more and what
// replaced the files is gone.
func TestOldCopyBringsNothingBack(t *testing.T) {
	t.Parallel()
	first, second := manifest.FirstName, manifest.SecondName
	for _, lost := range [][]string{{}, {first}, {second}, {first, second}} {
		for _, windows := range []bool{false, true} {
			t.Run(fmt.Sprint(lost, windows), func(t *testing.T) {
				d := newDeletedStore(t)
				n := d.incarnation()
				if d.s.Stats().Deleted.Tombstones != 0 {
					t.Fatal("the tombstone is still there: nothing is tried")
				}
				d.damage(t, lost, windows)
				d.s = storetest.Start(t, d.o)
				d.mustBeDeleted(t, "opened", n)
				d.settle(t)
				d.mustBeDeleted(t, "merged", n)
				if err := d.s.Close(); err != nil {
					t.Fatal(err)
				}
				d.s = storetest.Start(t, d.o)
				d.mustBeDeleted(t, "opened again", n)
				d.send(t, 9, drivetest.Key(0))
				if got := d.incarnation(); got != n {
					t.Errorf("it begins anew in incarnation %d, want %d", got, n)
				}
				d.s.Crash()
			})
		}
	}
}

// mustBeDeleted fails the test unless the first series is gone and remembered.
func (d *deletedStore) mustBeDeleted(t *testing.T, when string, n uint64) {
	t.Helper()
	info, err := d.s.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	if err := d.s.Metrics(t.Context(), info, nil, func(k []byte) bool {
		listed[string(k)] = true
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if listed[string(drivetest.Key(0))] || !listed[string(drivetest.Key(1))] {
		t.Errorf("%s: listed are %v", when, listed)
	}
	for i, w := range drivetest.Words(t, d.s, "b", 0, epoch-200, 400) {
		if w != 0 {
			t.Fatalf("%s: slot %d of the deleted series holds %x", when, i, w)
		}
	}
	if got := d.incarnation(); got != n {
		t.Errorf("%s: incarnation %d, want %d", when, got, n)
	}
}

package tagstore

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/incarnation"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write/logrecord"
)

const bucket = 5

// now is the clock of the tests.
var now = time.Unix(1_600_000_000, 0)

// files is a store of tags without a log: what stands around it notes in which order it is asked.
type files struct {
	*Store
	t      *testing.T
	gate   version.Gate
	number uint64
	did    []string
	sync   error
}

func newFiles(t *testing.T, fs vfs.FS, committed ...manifest.File) *files {
	t.Helper()
	for _, sub := range append(datadir.FileDirs(), datadir.LostFound) {
		if err := fs.MkdirAll(fs.PathJoin("data", sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f := &files{t: t, number: 100}
	f.Store = New(Options{FS: fs, Dir: "data", Of: func() origin.Directory {
		return origin.Directory{1}
	},
		Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
		Damage: &damage.Notes{Logger: slog.New(slog.DiscardHandler)}, Deletions: new(incarnation.Clock),
		Incarnation: func(uint64, []byte) (uint64, bool) {
			return 0, true
		}, Deleted: func(uint64) bool { return false },
		Gate:       func() *version.Gate { return &f.gate },
		Commit:     func(manifest.Edit) error { f.did = append(f.did, "commit"); return nil },
		TakeNumber: func() uint64 { f.number++; return f.number },
		Sync:       func() error { f.did = append(f.did, "sync"); return f.sync }})
	f.Load(committed)
	if err := f.Loaded(); err != nil {
		t.Fatal(err)
	}
	return f
}

// change enters a change as the log would.
func (f *files) change(part string, clock uint64) {
	f.t.Helper()
	key, err := metric.Key("series", part)
	if err != nil {
		f.t.Fatal(err)
	}
	c := tags.Change{Bucket: bucket, Key: key, Collection: []byte("c"),
		Set: []tags.Tag{{TagName: tags.TagName{Name: []byte("name")}, Value: []byte(part)}}, Clock: clock}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apply(&c)
	f.add(tags.AppendChange(logrecord.AppendTags(nil, bucket), &c), 1)
}

// series returns the last parts of the series that have tags.
func (f *files) series() (parts []string) {
	f.t.Helper()
	err := f.Walk(func(c *tags.Change) error {
		parts = append(parts, string(c.Set[0].Value))
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	slices.Sort(parts)
	return parts
}

func (f *files) onDisk() (names []string) {
	f.t.Helper()
	for _, sub := range datadir.FileDirs() {
		list, err := f.o.FS.List(f.o.FS.PathJoin("data", sub))
		if err != nil {
			f.t.Fatal(err)
		}
		names = append(names, list...)
	}
	slices.Sort(names) // those of a directory have no order
	return names
}

// flush writes what waits into a file, which it returns.
func (f *files) flush(seq uint64) manifest.File {
	f.t.Helper()
	var e manifest.FileChanges
	f.Take(1000)
	if err := f.Write(seq, &e); err != nil || len(e.Add) != 1 {
		f.t.Fatalf("%+v, %v", e, err)
	}
	f.Committed()
	return e.Add[0]
}

// A flush that is given up leaves everything to the next one: what it had taken, and then what came
// meanwhile.
func TestAFlushThatIsGivenUp(t *testing.T) {
	fs := vfs.NewMem()
	f := newFiles(t, fs)
	f.change("a", 1)
	f.Take(10)
	if err := f.Write(1, new(manifest.FileChanges)); err != nil {
		t.Fatal(err)
	}
	f.change("b", 2)
	unflushed := f.Unflushed()
	f.PutBack()
	if got := f.Unflushed(); got != unflushed || f.pending.bytes != unflushed || len(f.onDisk()) != 0 {
		t.Errorf("%d bytes wait by the counter and %d in fact, want %d; on disk are %q", got,
			f.pending.bytes, unflushed, f.onDisk())
	}
	file := f.flush(2)
	if got := newFiles(t, fs, file).series(); !slices.Equal(got, []string{"a", "b"}) ||
		f.Unflushed() != 0 {
		t.Errorf("the file has the tags of %q; %d bytes wait", got, f.Unflushed())
	}
}

// The clock of changes goes on behind those that files have: another node may have made them, by a
// clock that is ahead.
func TestTheClockOfLoadedChanges(t *testing.T) {
	fs := vfs.NewMem()
	f := newFiles(t, fs)
	ahead := uint64(now.Add(time.Hour).UnixNano())
	f.change("a", ahead)
	file := f.flush(1)
	if next := newFiles(t, fs, file).next(); next <= ahead {
		t.Errorf("the next change has the clock %d, one that is known has %d", next, ahead)
	}
}

// A base may have what the log has only in memory, without what is in front of that: the log is
// durable before the base counts. Where it cannot be, nothing has changed.
func TestALogIsDurableBeforeItsBase(t *testing.T) {
	fs := vfs.NewMem()
	f := newFiles(t, fs)
	f.change("a", 1)
	f.flush(1)
	before := f.onDisk()
	f.sync = errors.New("no disk")
	if err := f.Merge(t.Context(), true); !errors.Is(err, f.sync) {
		t.Errorf("a merge without a sync of the log: %v", err)
	}
	if !slices.Equal(f.did, []string{"sync"}) || !slices.Equal(f.onDisk(), before) {
		t.Errorf("it did %q; on disk are %q, were %q", f.did, f.onDisk(), before)
	}
	f.sync, f.did = nil, nil
	if err := f.Merge(t.Context(), true); err != nil ||
		!slices.Equal(f.did, []string{"sync", "commit"}) {
		t.Errorf("the next merge did %q, %v", f.did, err)
	}
	if got := newFiles(t, fs, f.Store.files[0]).series(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the base has the tags of %q", got)
	}
}

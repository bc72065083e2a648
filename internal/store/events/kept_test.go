package events

import (
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write/logrecord"
)

// between is a log that does something in front of the next record: what a write has looked up is
// old by then.
type between struct {
	*node
	do func()
}

func (b *between) AppendHeaded(fn func(put func(head, body []byte) (wal.LSN, error)) error) error {
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return b.node.AppendHeaded(fn)
}

// A write has looked into the files before a flush moves the events that it repeats into one: it
// looks again.
func TestARepeatWhileAFlushCommits(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a"})
	list := spread(10, now-1000, 10)
	n.write("a", list) // it gives them their ids
	n.s.o.Log = &between{n, func() { n.flush(false) }}
	if w := n.write("a", slices.Clone(list)); w.Counts.Duplicate != 10 || w.Counts.Accepted != 0 {
		t.Errorf("the repeat of ten events: %+v", w.Counts)
	}
	if got, _ := n.read("a", 0, now); len(got) != 10 {
		t.Errorf("%d events", len(got))
	}
}

// A bucket that is deleted while a write of it is under way gets nothing: nobody would drop it
// again.
func TestAWriteWhileItsBucketIsDeleted(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a"})
	id := n.buckets["a"].ID
	n.s.o.Log = &between{n, func() {
		delete(n.buckets, "a")
		n.s.DeleteBucket(id, "a")
	}}
	if _, err := n.s.Write("a", spread(10, now-1000, 10)); !errors.Is(err, buckets.ErrUnknown) {
		t.Errorf("the write ends with %v", err)
	}
	if total := n.account.Total(id); n.s.Stats().MemoryEvents != 0 || len(n.log) != 0 ||
		total.ReceivedPoints() != 0 {
		t.Errorf("%d events in memory, %d records, %+v in the account", n.s.Stats().MemoryEvents,
			len(n.log), total)
	}
}

// What is known to be lost is still known when the file that says so was merged.
func TestAMergeKeepsWhatIsLost(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a"})
	id := n.buckets["a"].ID
	lost := make([]eventfile.Event, 7)
	for i := range lost {
		lost[i].Time = now - 500
	}
	lost[3].Time = now - 400
	head, _ := logrecord.AppendEvents(nil, id, now/int64(time.Minute), &account.Counts{}, lost)
	n.s.ReplayLost(&wal.Report{Lost: []wal.LostRecord{{LSN: 1 << 40, Head: head}}})
	for i := range mergeFiles {
		n.write("a", spread(10, now-1000+int64(i), 10))
		n.flush(false)
	}
	want := []Gap{{now - 500, now - 400 + 1, 7}}
	check := func(when string) {
		t.Helper()
		n.open()
		if got, gaps := n.read("a", 0, now); len(got) != 10*mergeFiles || !slices.Equal(gaps, want) {
			t.Errorf("%s: %d events, gaps %v, want %v", when, len(got), gaps, want)
		}
	}
	check("before the merge")
	n.merge()
	if len(n.files) != 1 {
		t.Fatalf("%d files", len(n.files))
	}
	check("after the merge")
}

// Where the edit of a merge was lost from the MANIFEST the merge and what it replaced are both
// there: each event counts once.
func TestAMergeBesideWhatItReplaced(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a"})
	for i := range mergeFiles {
		n.write("a", spread(10, now-1000+int64(i), 10))
		n.flush(false)
	}
	before, bytes := n.files, make(map[uint64][]byte)
	n.files = make(map[uint64]manifest.File)
	for seq, f := range before {
		n.files[seq], bytes[seq] = f, contents(t, n.fs, eventfile.Path(seq))
	}
	n.merge()
	for seq, b := range bytes {
		n.files[seq] = before[seq]
		f, err := n.fs.Create(eventfile.Path(seq), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.Write(b); errors.Join(err, f.Close()) != nil {
			t.Fatal(err)
		}
	}
	n.open()
	if st := n.s.Stats(); st.Files != 1 || st.FileEvents != 10*mergeFiles {
		t.Errorf("%d files with %d events count, want one with %d", st.Files, st.FileEvents,
			10*mergeFiles)
	}
	if got, gaps := n.read("a", 0, now); len(got) != 10*mergeFiles || len(gaps) != 0 {
		t.Errorf("%d events, gaps %v", len(got), gaps)
	}
}

func contents(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if errors.Join(err, f.Close()) != nil {
		t.Fatal(err)
	}
	return b
}

// Records whose counts are in the account are passed over while all files are here. Where one is
// lost they bring back what it had, and are not counted again; records of anything else bring
// nothing.
func TestReplayOfWhatIsCounted(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a"})
	id := n.buckets["a"].ID
	n.write("a", spread(10, now-1000, 10))
	n.flush(false)
	n.write("a", spread(1, now, 1))
	n.flush(false)
	n.replay(0)
	other := logrecord.Record{Kind: logrecord.Tags, Bucket: id, Counts: account.Counts{Accepted: 5},
		Events: spread(1, now-1, 1)}
	if err := (Side{n.s}).Replay(wal.LSN(len(n.log)+1), &other); err != nil {
		t.Fatal(err)
	}
	if st := n.s.Stats(); st.MemoryEvents != 0 {
		t.Errorf("%d events of whole files are in memory", st.MemoryEvents)
	}
	whole := n.account.Total(id)
	if err := n.fs.Remove(eventfile.Path(1)); err != nil {
		t.Fatal(err)
	}
	n.replay(0)
	if got, _ := n.read("a", 0, now+1); len(got) != 11 {
		t.Errorf("%d events with those of the log, want 11", len(got))
	}
	if total := n.account.Total(id); total != whole || total.Accepted != 11 {
		t.Errorf("the account has %+v, and %+v while all files were here", total, whole)
	}
}

// A device that fails while a merge reads takes nothing: the merge is given up, and the next one
// has all.
func TestAMergeThatCannotRead(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a"})
	for i := range mergeFiles {
		n.write("a", spread(10, now-1000+int64(i), 10))
		n.flush(false)
	}
	var fails atomic.Bool
	n.fs = errorfs.Wrap(n.fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fails.Load() && op.Kind == errorfs.OpFileReadAt && op.Path == eventfile.Path(2) {
			return syscall.EIO
		}
		return nil
	}))
	n.open()
	fails.Store(true)
	if err := n.s.Merger.Merge(t.Context()); !errors.Is(err, syscall.EIO) {
		t.Errorf("the merge ends with %v", err)
	}
	fails.Store(false)
	if len(n.files) != mergeFiles {
		t.Errorf("%d files count, want all %d", len(n.files), mergeFiles)
	}
	n.merge()
	if got, gaps := n.read("a", 0, now); len(n.files) != 1 || len(got) != 10*mergeFiles ||
		len(gaps) != 0 {
		t.Errorf("%d files, %d events, gaps %v", len(n.files), len(got), gaps)
	}
}

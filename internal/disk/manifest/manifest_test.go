package manifest

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/model/buckets"
)

const dir = "data"

// own is the id of the directory of most tests: any. another is that of one.
var own, another = origin.Directory{}, origin.Directory{1, 2, 15: 3}

// mustOpen opens the manifest with a rewrite size; it is closed with the test.
func mustOpen(t testing.TB, fs vfs.FS, limit int64) (*Manifest, *State, Report) {
	t.Helper()
	return mustOpenOf(t, fs, own, limit)
}

// mustOpenOf is mustOpen in a directory of an id.
func mustOpenOf(t testing.TB, fs vfs.FS, of origin.Directory, limit int64) (*Manifest, *State,
	Report) {
	t.Helper()
	m, s, r, err := open(fs, dir, of, nil, limit)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m, s, r
}

// durableDir returns a file system that holds the data directory.
func durableDir(t testing.TB) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := durable.SyncDir(fs, "/"); err != nil {
		t.Fatal(err)
	}
	return fs
}

func commit(t testing.TB, m *Manifest, edits ...Edit) {
	t.Helper()
	for _, e := range edits {
		if err := m.Commit(e); err != nil {
			t.Fatalf("commit: %v", err)
		}
	}
}

func drawTombstones(rt *rapid.T, e *Edit) {
	id := rapid.Uint32Range(1, 6)
	for range rapid.IntRange(0, 2).Draw(rt, "tombstones") {
		t := Tombstones{Bucket: uint64(id.Draw(rt, "bucket")),
			DeleteSequence: rapid.Uint64Range(1, 20).Draw(rt, "below"),
			LSN:            rapid.Uint64Range(1, 20).Draw(rt, "lsn"),
			Incarnation:    rapid.Uint64Range(0, 20).Draw(rt, "incarnation"), Series: []DeletedSeries{}}
		for range rapid.IntRange(0, 3).Draw(rt, "series") {
			t.Series = append(t.Series, DeletedSeries{
				Hash: [16]byte{byte(rapid.IntRange(0, 255).Draw(rt, "hash"))}, Group: id.Draw(rt, "group"),
				Column: rapid.Uint8().Draw(rt, "column"),
			})
		}
		if rapid.IntRange(0, 2).Draw(rt, "remembered") == 0 {
			e.Remembered = append(e.Remembered, t)
		} else {
			e.Tombstones = append(e.Tombstones, t)
		}
	}
	if rapid.IntRange(0, 4).Draw(rt, "clocks") == 0 {
		e.RememberAfter, e.Incarnation = rapid.Uint64Range(0, 12).Draw(rt, "remember after"),
			rapid.Uint64().Draw(rt, "clock")
		e.Recall = rapid.Bool().Draw(rt, "recall")
	}
	if rapid.IntRange(0, 2).Draw(rt, "buries") == 0 {
		e.DropTombstones = []DroppedTombstones{
			{uint64(id.Draw(rt, "bucket")), rapid.Uint64Range(1, 20).Draw(rt, "below"),
				rapid.Uint64Range(1, 20).Draw(rt, "lsn")}}
	}
	if rapid.IntRange(0, 2).Draw(rt, "cleans") == 0 {
		e.Purged = []PurgedSegment{
			{10 + uint64(id.Draw(rt, "seq")), rapid.Uint64Range(1, 9).Draw(rt, "purged")}}
	}
}

// drawEdit draws an edit over few ids, so that edits meet.
func drawEdit(rt *rapid.T) Edit {
	id := rapid.Uint32Range(1, 6)
	drawn := func(label string, of any) any {
		return rapid.SliceOfN(rapid.Just(of), 0, 3).Draw(rt, label)
	}
	var e Edit
	for range drawn("segments", 0).([]any) {
		e.AddSegments = append(e.AddSegments, Segment{
			Seq: uint64(id.Draw(rt, "seq")), Kind: Kind(rapid.IntRange(0, 2).Draw(rt, "kind")),
			Generation: rapid.Uint64().Draw(rt, "generation"),
			Purged:     rapid.Uint64Range(0, 9).Draw(rt, "purged"), Ranges: drawRanges(rt),
			Bytes: rapid.Int64().Draw(rt, "bytes"), Points: rapid.Int64().Draw(rt, "points"),
		})
		// Never an error of Commit.
		e.RemoveSegments = append(e.RemoveSegments, e.AddSegments[len(e.AddSegments)-1].Seq)
	}
	for range drawn("buckets", 0).([]any) {
		e.PutBuckets = append(e.PutBuckets, buckets.Info{
			ID: uint64(id.Draw(rt, "id")), Name: string(rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(rt, "name")),
			Resolution: rapid.Int64().Draw(rt, "resolution"), PPF: rapid.Int64().Draw(rt, "ppf"),
			TTL: rapid.Int64().Draw(rt, "ttl"), Grace: rapid.Int64().Draw(rt, "grace"),
			HPTS: rapid.Bool().Draw(rt, "hpts"),
		})
	}
	drawTombstones(rt, &e)
	drawHoles(rt, &e)
	for range drawn("files", 0).([]any) {
		from := rapid.Uint64Range(0, 1<<62).Draw(rt, "from")
		f := File{Kind: FileKind(rapid.IntRange(1, FileKinds-1).Draw(rt, "kind")),
			Seq: uint64(id.Draw(rt, "file")), Bytes: rapid.Int64().Draw(rt, "bytes"),
			Items: rapid.Int64().Draw(rt, "items"), From: from, Past: from +
				rapid.Uint64Range(0, 1<<62).Draw(rt, "length"), Replaces: rapid.Uint64().Draw(rt, "replaces")}
		e.Files.Add, e.Files.Remove = append(e.Files.Add, f), append(e.Files.Remove, f.Name())
	}
	for range drawn("floors", 0).([]any) {
		e.ReplayPositions = append(e.ReplayPositions,
			ReplayPosition{Group: id.Draw(rt, "group"), LSN: rapid.Uint64().Draw(rt, "lsn")})
	}
	if rapid.IntRange(0, 3).Draw(rt, "deletes") == 0 {
		e.DeleteBuckets = []buckets.Deletion{
			{ID: uint64(id.Draw(rt, "deleted")), Clock: rapid.Uint64().Draw(rt, "clock"),
				Name: string(rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(rt, "deleted name"))}}
		e.RemoveSegments = append(e.RemoveSegments, uint64(id.Draw(rt, "removed")))
	}
	if rapid.Bool().Draw(rt, "counters") {
		e.ReplayPosition, e.AccountLSN = rapid.Uint64().Draw(rt, "floor"),
			rapid.Uint64().Draw(rt, "account lsn")
		e.Catalogue = rapid.Uint64().Draw(rt, "catalogue")
		e.NextSeq, e.DeletionsFrom, e.NextGroup = rapid.Uint64().Draw(rt, "next seq"),
			rapid.Uint64().Draw(rt, "deletions"), rapid.Uint32().Draw(rt, "next group")
		e.Account = append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(rt, "account")...)
		e.Copies = append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(rt, "copies")...)
		e.Suspect, e.Settled = rapid.Bool().Draw(rt, "suspect"), rapid.Bool().Draw(rt, "settled")
	}
	return e
}

func TestEditRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e, number := drawEdit(rt), rapid.Uint64().Draw(rt, "number")
		tail := rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(rt, "tail")
		n, got, rest, err := parseRecord(append(appendRecord([]byte{}, number, &e), tail...))
		if err != nil || n != number || len(rest) != len(tail) || !reflect.DeepEqual(got, e) {
			rt.Fatalf("%d %+v became %d %+v, %d bytes left: %v", number, e, n, got, len(rest), err)
		}
		// A snapshot carries the whole state.
		var s, again State
		s.apply(&e)
		snapshot := s.snapshot()
		payload, err := parseEdit(appendEdit(nil, snapshot))
		if err != nil {
			rt.Fatal(err)
		}
		again.apply(&payload)
		if !reflect.DeepEqual(*s.clone(), *again.clone()) {
			rt.Fatalf("snapshot of %+v gave %+v", s, again)
		}
	})
}

func TestApply(t *testing.T) {
	var s State
	f := func(e Edit, want State) {
		t.Helper()
		s.apply(&e)
		if got := *s.clone(); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	}
	a, b := buckets.Info{ID: 1, Name: "a"}, buckets.Info{ID: 2, Name: "b", TTL: 5}
	f(Edit{AddSegments: []Segment{{Seq: 2}, {Seq: 1}}, PutBuckets: []buckets.Info{b, a}, NextSeq: 3},
		State{Segments: []Segment{{Seq: 1}, {Seq: 2}}, Buckets: []buckets.Info{a, b}, LastFlush: 2,
			NextSeq: 3})
	b.TTL = 7
	f(Edit{RemoveSegments: []uint64{1, 9}, PutBuckets: []buckets.Info{b}, NextSeq: 2,
		Accounts: Accounts{Account: []byte{}, AccountLSN: 4}},
		State{Segments: []Segment{{Seq: 2}}, Buckets: []buckets.Info{a, b}, LastFlush: 2, NextSeq: 3,
			Accounts: Accounts{Account: []byte{}, AccountLSN: 4}})
	f(Edit{RemoveSegments: []uint64{2}, DeleteBuckets: []buckets.Deletion{
		{ID: 2, Clock: 7, Name: "b"}}, ReplayPositions: []ReplayPosition{{7, 70}, {5, 50}}},
		State{Buckets: []buckets.Info{a}, DeletedBuckets: []buckets.Deletion{
			{ID: 2, Clock: 7, Name: "b"}}, LastFlush: 2, NextSeq: 3,
			Accounts: Accounts{Account: []byte{}, AccountLSN: 4}, replayPositions: []ReplayPosition{
				{5, 50}, {7, 70}}})
	if s.ReplayPositionOf(5) != 50 || s.ReplayPositionOf(6) != 0 {
		t.Errorf("replay positions %d, %d: want 50 and that of all others", s.ReplayPositionOf(5),
			s.ReplayPositionOf(6))
	}
	f(Edit{ReplayPosition: 60, ReplayPositions: []ReplayPosition{{7, 55}},
		PutBuckets: []buckets.Info{b}, DeleteBuckets: []buckets.Deletion{{ID: 1, Clock: 8}},
		Suspect: true},
		State{DeletedBuckets: []buckets.Deletion{{ID: 1, Clock: 8}, {ID: 2, Clock: 7, Name: "b"}},
			LastFlush: 2, NextSeq: 3,
			Accounts: Accounts{Account: []byte{}, AccountLSN: 4}, ReplayPosition: 60,
			replayPositions: []ReplayPosition{{7, 55}}, Suspect: true})
	if s.ReplayPositionOf(5) != 60 || s.ReplayPositionOf(7) != 55 {
		t.Errorf("replay positions %d, %d: want 60 and 55", s.ReplayPositionOf(5), s.ReplayPositionOf(7))
	}
}

// TestReopen: the state after any edits, rewrites included, is the one a naive
// sum gives, in the same process and after each restart.
func TestReopen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fs := durableDir(t)
		want := State{Suspect: true}
		limit := int64(rapid.SampledFrom([]int{1, 300, 4 << 20}).Draw(rt, "limit"))
		for run := range 3 {
			m, got, r := mustOpen(t, fs, limit)
			if !reflect.DeepEqual(*got, *want.clone()) || r.Created != (run == 0) ||
				len(r.Torn)+len(r.Damaged) != 0 {
				rt.Fatalf("run %d: got %+v\nwant %+v\n%+v", run, *got, want, r)
			}
			for range rapid.IntRange(0, 8).Draw(rt, "edits") {
				e := drawEdit(rt)
				want.apply(&e)
				commit(t, m, e)
			}
			if err := m.Close(); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// TestCrash: a power failure before every write operation. The state is that
// of the last commit that returned, or of the one under way.
func TestCrash(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		type crash struct {
			fs   *vfs.MemFS
			done int
		}
		var crashes []crash
		done := 0
		mem := durableDir(t)
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				percent := []int{0, 30, 70, 100}[rng.IntN(4)]
				crashes = append(crashes,
					crash{mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}), done})
			}
			return nil
		}))
		m, _, _ := mustOpen(t, fs, int64(rapid.SampledFrom([]int{1, 300}).Draw(rt, "limit")))
		states := []*State{{Suspect: true}} // states[i]: after i commits
		for range rapid.IntRange(1, 8).Draw(rt, "edits") {
			e := drawEdit(rt)
			next := states[len(states)-1].clone()
			next.apply(&e)
			states = append(states, next)
			commit(t, m, e)
			done++
		}
		for i, c := range crashes {
			again, got, r := mustOpen(t, c.fs, 300)
			if len(r.Damaged) != 0 {
				rt.Fatalf("crash %d: a tear is taken for damage: %+v", i, r)
			}
			if !reflect.DeepEqual(got, states[c.done].clone()) &&
				!reflect.DeepEqual(got, states[min(c.done+1, done)].clone()) {
				rt.Fatalf("crash %d after %d commits: %+v\nwant %+v", i, c.done, got, states[c.done])
			}
			commit(t, again, Edit{NextSeq: 1})
			if err := again.Close(); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

func TestCommitRefuses(t *testing.T) {
	fs := durableDir(t)
	m, _, _ := mustOpen(t, fs, rewriteSize)
	commit(t, m, Edit{AddSegments: []Segment{{Seq: 1}}})
	if err := m.Commit(Edit{AddSegments: []Segment{{Seq: 1}}}); err == nil ||
		!strings.Contains(err.Error(), "segment 1") {
		t.Errorf("a segment twice: %v", err)
	}
	if err := m.Commit(Edit{Accounts: Accounts{Account: make([]byte, editLimit)}}); err == nil ||
		!strings.Contains(err.Error(), "67108864") {
		t.Errorf("too large: %v, want an error that names the limit", err)
	}
	commit(t, m, Edit{RemoveSegments: []uint64{1}, AddSegments: []Segment{{Seq: 1, Bytes: 5}}})
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Commit(Edit{}); !errors.Is(err, ErrClosed) {
		t.Errorf("after close: %v", err)
	}
	_, s, _ := mustOpen(t, fs, rewriteSize)
	if len(s.Segments) != 1 || s.Segments[0].Bytes != 5 {
		t.Errorf("%+v: want what was not refused", s)
	}
}

// TestFailure: a failed commit ends the manifest, whichever step fails, and the
// restart has the state before or after the edit. A snapshot that cannot be
// written is no failure.
func TestFailure(t *testing.T) {
	f := func(name string, kind errorfs.OpKind, path string, fatal bool) {
		t.Helper()
		var broken atomic.Bool
		mem := durableDir(t)
		m, _, _ := mustOpen(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if broken.Load() && op.Kind == kind && strings.HasSuffix(op.Path, path) {
				return errorfs.ErrInjected
			}
			return nil
		})), 300)
		commit(t, m, Edit{NextSeq: 1})
		broken.Store(true)
		err := m.Commit(Edit{NextSeq: 2, Accounts: Accounts{Account: make([]byte, 400)}})
		if fatal != errors.Is(err, errorfs.ErrInjected) {
			t.Errorf("%s: %v", name, err)
		}
		broken.Store(false)
		if err := m.Commit(Edit{NextSeq: 3}); fatal != errors.Is(err, errorfs.ErrInjected) {
			t.Errorf("%s: the next commit: %v", name, err)
		}
		_, s, r := mustOpen(t, mem.CrashClone(vfs.CrashCloneCfg{}), 300)
		if len(r.Damaged) != 0 || s.NextSeq == 0 || !fatal && s.NextSeq != 3 {
			t.Errorf("%s: %+v, %+v", name, s, r)
		}
	}
	f("write", errorfs.OpFileWriteAt, FirstName, true)
	f("fsync", errorfs.OpFileSyncData, FirstName, true)
	f("rename", errorfs.OpRename, tempSuffix, true)
	f("fsync of the directory", errorfs.OpFileSync, dir, true)
	f("create the snapshot", errorfs.OpCreate, tempSuffix, false)
	f("write the snapshot", errorfs.OpFileWrite, tempSuffix, false)
	f("fsync the snapshot", errorfs.OpFileSync, tempSuffix, false)
}

// TestReadIsDurable: after kill -9 the last edit is in the page cache only. The
// state a restart returns survives a power failure right after.
func TestReadIsDurable(t *testing.T) {
	var killed atomic.Bool
	mem := durableDir(t)
	m, _, _ := mustOpen(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if killed.Load() && op.Kind == errorfs.OpFileSyncData {
			return errorfs.ErrInjected // as if killed before it
		}
		return nil
	})), rewriteSize)
	killed.Store(true)
	if err := m.Commit(Edit{NextSeq: 7}); err == nil {
		t.Fatal("the fsync was to fail")
	}
	_, s, _ := mustOpen(t, mem, rewriteSize)
	_, again, _ := mustOpen(t, mem.CrashClone(vfs.CrashCloneCfg{}), rewriteSize)
	if s.NextSeq != 7 || again.NextSeq != 7 {
		t.Errorf("next seq %d, after the power failure %d, want 7", s.NextSeq, again.NextSeq)
	}
}

func drawRanges(rt *rapid.T) []Range {
	ranges := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) Range {
		first := rapid.Int64Range(-1<<40, 1<<40).Draw(rt, "first")
		return Range{Bucket: rapid.Uint64().Draw(rt, "range bucket"), First: first, Past: first +
			rapid.Int64Range(1, 1<<20).Draw(rt, "chunks")}
	}), 0, 3).Draw(rt, "ranges")
	return append([]Range(nil), ranges...) // nil when there are none, as parsed
}

package mirror

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/testkit/filetest"
	"dalmatiner/internal/testkit/frozen"
)

const dir = "/data"

// own is the id of the directory.
var own = origin.Directory{1, 2, 15: 3}

var described = manifest.File{Kind: manifest.TagChanges, Seq: 7, From: 1, Past: 1 << 40,
	Replaces: 3}

// newDir returns a file system with the directories of a store.
func newDir(t testing.TB) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	makeDirs(t, fs)
	return fs
}

func makeDirs(t testing.TB, fs vfs.FS) {
	t.Helper()
	for _, sub := range append(datadir.FileDirs(), datadir.LostFound) {
		if err := fs.MkdirAll(fs.PathJoin(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{dir, "/"} {
		if err := durable.SyncDir(fs, d); err != nil {
			t.Fatal(err)
		}
	}
}

// weight is how many entries an item is taken for.
func weight(item []byte) int { return len(item)%3 + 1 }

func weights(items [][]byte) (n int64) {
	for _, item := range items {
		n += int64(weight(item))
	}
	return n
}

// someItems returns items that fill several blocks.
func someItems(blocks int) (items [][]byte) {
	for i := range blocks {
		items = append(items, bytes.Repeat([]byte{byte(i + 1)}, blockSize/2+1),
			[]byte(fmt.Sprint("item ", i)), nil)
	}
	return items
}

func writeFile(t testing.TB, fs vfs.FS, items [][]byte) manifest.File {
	t.Helper()
	w, err := Create(fs, dir, own, described)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		if err := w.Add(item, weight(item)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func readFile(t testing.TB, fs vfs.FS, f manifest.File) (items [][]byte, r Report) {
	t.Helper()
	r, err := Read(fs, dir, own, &f, func(item []byte) error {
		items = append(items, bytes.Clone(item))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return items, r
}

func equalBlocks(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }

func paths() []string { return datadir.FilePaths(described.Name()) }

func TestRead(t *testing.T) {
	for blocks := range 4 {
		fs := newDir(t)
		items := someItems(blocks)
		f := writeFile(t, fs, items)
		got, r := readFile(t, fs.CrashClone(vfs.CrashCloneCfg{}), f)
		if !equalBlocks(got, items) || !r.IsWhole() || r.Entries != weights(items) ||
			f.Items != weights(items) {
			t.Errorf("%d blocks: %d items of %d, %+v", blocks, len(got), len(items), r)
		}
		said, whole, err := Describe(fs, dir, own, f.Name())
		if err != nil || !whole || !reflect.DeepEqual(said, f) {
			t.Errorf("%d blocks: it says %+v, %t, %v; it is %+v", blocks, said, whole, err, f)
		}
	}
}

// The format is frozen.
func TestFrozen(t *testing.T) {
	fs := newDir(t)
	items := [][]byte{[]byte("first"), {}, bytes.Repeat([]byte("many "), 100)}
	f := writeFile(t, fs, items)
	for i, path := range paths() {
		name := fmt.Sprint("copy", i+1)
		frozen.Same(t, name, filetest.Read(t, fs, fs.PathJoin(dir, path)))
		filetest.Write(t, fs, fs.PathJoin(dir, path), frozen.Read(t, name))
	}
	if got, r := readFile(t, fs, f); !equalBlocks(got, items) || !r.IsWhole() {
		t.Errorf("%q, %+v", got, r)
	}
}

// sample is a small file.
type sample struct {
	items  [][]byte
	file   manifest.File
	copies [][]byte
}

func newSample(t *testing.T) *sample {
	s := &sample{items: [][]byte{[]byte("one"), []byte("two"), {}}}
	fs := newDir(t)
	s.file = writeFile(t, fs, s.items)
	for _, path := range paths() {
		s.copies = append(s.copies, filetest.Read(t, fs, fs.PathJoin(dir, path)))
	}
	return s
}

func (s *sample) copyTo(t *testing.T, fs vfs.FS) manifest.File {
	t.Helper()
	for i, path := range paths() {
		filetest.Write(t, fs, fs.PathJoin(dir, path), s.copies[i])
	}
	return s.file
}

// spoil changes a copy, and expects that nothing is lost and that the copy is named. The repaired
// copy has to be as it was.
func spoil(t *testing.T, from *sample, what string, path string, change func(data []byte) []byte) {
	t.Helper()
	fs := newDir(t)
	f := from.copyTo(t, fs)
	items := from.items
	at := fs.PathJoin(dir, path)
	was := filetest.Read(t, fs, at)
	filetest.Rewrite(t, fs, at, change)
	got, r := readFile(t, fs, f)
	if !equalBlocks(got, items) || r.Lost || !r.bad(path) || len(r.Bad) == 0 {
		t.Fatalf("%s: %q, %+v", what, got, r)
	}
	for _, p := range r.Bad {
		if p.File != path {
			t.Fatalf("%s of %s: %s is named", what, path, p.File)
		}
	}
	if said, whole, err := Describe(fs, dir, own, f.Name()); err != nil || !whole ||
		said.Past != f.Past || said.Items != f.Items {
		t.Fatalf("%s: it says %+v, %t, %v", what, said, whole, err)
	}
	mended, err := Mend(fs, dir, own, &f, &r)
	if err != nil || !slices.Equal(mended, []string{path}) {
		t.Fatalf("%s: mended %q, %v", what, mended, err)
	}
	after := fs.CrashClone(vfs.CrashCloneCfg{})
	if _, r := readFile(t, after, f); !r.IsWhole() || !bytes.Equal(filetest.Read(t, after, at), was) {
		t.Fatalf("%s: after the mending %+v", what, r)
	}
	if kept, err := after.List(fs.PathJoin(dir, datadir.LostFound)); err != nil || len(kept) != 1 {
		t.Fatalf("%s: lost+found has %q, %v", what, kept, err)
	}
}

func TestEveryBit(t *testing.T) {
	from := newSample(t)
	for bit := range from.file.Bytes * 8 {
		for _, path := range paths() {
			spoil(t, from, fmt.Sprint("bit ", bit), path, func(data []byte) []byte {
				data[bit/8] ^= 1 << (bit % 8)
				return data
			})
		}
	}
}

func TestEveryLength(t *testing.T) {
	from := newSample(t)
	for n := range from.file.Bytes {
		for _, path := range paths() {
			spoil(t, from, fmt.Sprint("length ", n), path, func(data []byte) []byte { return data[:n] })
		}
	}
	spoil(t, from, "bytes behind", paths()[1], func(data []byte) []byte { return append(data, 1) })
}

func TestAMissingCopy(t *testing.T) {
	for i, path := range paths() {
		fs := newDir(t)
		items := someItems(2)
		f := writeFile(t, fs, items)
		if err := fs.Remove(fs.PathJoin(dir, path)); err != nil {
			t.Fatal(err)
		}
		got, r := readFile(t, fs, f)
		if !equalBlocks(got, items) || r.Lost || !r.bad(path) {
			t.Errorf("copy %d: %+v", i, r)
		}
		if _, err := Mend(fs, dir, own, &f, &r); err != nil {
			t.Error(err)
		}
		if got, r = readFile(t, fs, f); !equalBlocks(got, items) || !r.IsWhole() {
			t.Errorf("copy %d: mended %+v", i, r)
		}
	}
}

// Where both copies lack the same block, its items are lost and counted, and the others are
// there; where they lack different ones, nothing is.
func TestPairs(t *testing.T) {
	items := someItems(4)
	var blocks [][3]int // offset, items and entries of each block
	whole := newDir(t)
	f := writeFile(t, whole, items)
	at := headerSize
	if _, err := walk(whole, dir, own, &f, func(_ *reader, h *frame, _ []byte) error {
		blocks = append(blocks, [3]int{at, int(h.items), int(h.entries)})
		at += frameSize + int(h.stored)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	blocks = append(blocks, [3]int{at}) // the end
	rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for i, a := range blocks {
		for j, b := range blocks {
			fs := newDir(t)
			writeFile(t, fs, items)
			for n, block := range [][3]int{a, b} {
				filetest.FlipBit(t, fs, fs.PathJoin(dir, paths()[n]), int64(block[0]*8+rng.IntN(frameSize*8)))
			}
			lost, entries := int64(0), int64(0)
			if i == j {
				lost, entries = int64(a[1]), int64(a[2])
			}
			got, r := readFile(t, fs, f)
			if r.LostEntries != entries || r.Entries != weights(items)-entries || r.Lost != (lost > 0) ||
				int64(len(got)) != int64(len(items))-lost || !r.bad(paths()[0]) || !r.bad(paths()[1]) {
				t.Errorf("blocks %d and %d: %d items, %+v", i, j, len(got), r)
			}
			for _, item := range got {
				if !slices.ContainsFunc(items, func(sent []byte) bool { return bytes.Equal(sent, item) }) {
					t.Errorf("blocks %d and %d: %.20q was never written", i, j, item)
				}
			}
			if lost > 0 {
				continue
			}
			if _, err := Mend(fs, dir, own, &f, &r); err != nil {
				t.Error(err)
			}
			if got, r = readFile(t, fs, f); !equalBlocks(got, items) || !r.IsWhole() {
				t.Errorf("blocks %d and %d: mended %+v", i, j, r)
			}
		}
	}
}

// A crash leaves a whole file with its names, or no names; never a copy that is not whole.
func TestCrash(t *testing.T) {
	for n := int64(0); ; n++ {
		mem, left := newDir(t), n
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				if left--; left < 0 {
					return syscall.EIO
				}
			}
			return nil
		}))
		w, err := Create(fs, dir, own, described)
		for _, item := range someItems(2) {
			if err == nil {
				err = w.Add(item, weight(item))
			}
		}
		var f manifest.File
		if err == nil {
			f, err = w.Finish()
		}
		after := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50,
			RNG: rand.New(rand.NewPCG(uint64(n), 1))})
		if err == nil {
			if got, r := readFile(t, after, f); !equalBlocks(got, someItems(2)) || !r.IsWhole() {
				t.Fatalf("finished: %+v", r)
			}
			return
		}
		names, listErr := after.List(fs.PathJoin(dir, "tags"))
		if listErr != nil {
			t.Fatal(listErr)
		}
		for _, name := range names {
			if strings.HasSuffix(name, datadir.TempSuffix) {
				continue
			}
			if _, whole, err := Describe(after, dir, own, described.Name()); err != nil || !whole {
				t.Fatalf("write %d: %s is there and not whole: %v", n, name, err)
			}
		}
	}
}

func TestAnItemHasALimit(t *testing.T) {
	fs := newDir(t)
	w, err := Create(fs, dir, own, described)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(make([]byte, MaxItem+1), 1); err == nil {
		t.Error("a longer item is taken")
	}
	random := make([]byte, MaxItem)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	if err := w.Add(random, weight(random)); err != nil {
		t.Error(err)
	}
	f, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if got, r := readFile(t, fs, f); !equalBlocks(got, [][]byte{random}) || !r.IsWhole() {
		t.Errorf("%+v", r)
	}
}

// A device that does not give a part of one copy loses nothing.
func TestADeviceThatFails(t *testing.T) {
	for _, both := range []bool{false, true} {
		mem := newDir(t)
		var items [][]byte
		for range 2 * window / (64 << 10) { // more than is read at a time
			item := make([]byte, 64<<10)
			for i := range item {
				item[i] = byte(rand.Uint32())
			}
			items = append(items, item)
		}
		f := writeFile(t, mem, items)
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileReadAt && (both || strings.HasSuffix(op.Path, "2")) &&
				op.Offset > 0 {
				return syscall.EIO
			}
			return nil
		}))
		got, r := readFile(t, fs, f)
		if !r.Unread || r.Lost != both || both == equalBlocks(got, items) {
			t.Errorf("both %t: %d items, %+v", both, len(got), r)
		}
	}
}

func FuzzRead(f *testing.F) {
	fs := newDir(f)
	file := writeFile(f, fs, [][]byte{[]byte("one"), bytes.Repeat([]byte("two"), 100)})
	f.Add(filetest.Read(f, fs, fs.PathJoin(dir, paths()[0])),
		filetest.Read(f, fs, fs.PathJoin(dir, paths()[1])))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		fs := newDir(t)
		filetest.Write(t, fs, fs.PathJoin(dir, paths()[0]), a)
		filetest.Write(t, fs, fs.PathJoin(dir, paths()[1]), b)
		_, err := Read(fs, dir, own, &file, func([]byte) error { return nil })
		if err != nil && !strings.Contains(err.Error(), ErrFormat.Error()) {
			t.Fatal(err)
		}
		if _, _, err := Describe(fs, dir, own, file.Name()); err != nil &&
			!strings.Contains(err.Error(), ErrFormat.Error()) {
			t.Fatal(err)
		}
	})
}

package segment

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/testkit/filetest"
)

// readFS counts the reads of all files.
type readFS struct {
	vfs.FS
	reads atomic.Int64
}

type countedReads struct {
	vfs.File
	fs *readFS
}

func (f *readFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.Open(name, opts...)
	return countedReads{file, f}, err
}

func (f countedReads) ReadAt(p []byte, off int64) (int, error) {
	f.fs.reads.Add(1)
	return f.File.ReadAt(p, off)
}

// openCached writes the model and opens it with memory for blocks.
func (m *model) openCached(t *testing.T) (*readFS, *Files, *Reader) {
	t.Helper()
	fs := &readFS{FS: vfs.NewMem()}
	m.write(t, fs, testPath, m.order())
	files := NewFiles(fs, 1, 4<<20)
	r, err := files.Open(testPath)
	if err != nil {
		t.Fatal(err)
	}
	return fs, files, r
}

// lookUp looks up every chunk, by the cursor too, and returns how often the file was
// read for it.
func (m *model) lookUp(t *testing.T, fs *readFS, r *Reader) int64 {
	t.Helper()
	before := fs.reads.Load()
	for _, p := range m.order() {
		if err := m.compareOne(r, p); err != nil {
			t.Fatal(err)
		}
		var c Cursor
		if err := c.Open(r, p.bucket, p.hash, p.chunk, p.chunk+1); err != nil {
			t.Fatal(err)
		}
		data, err := c.Data(p.chunk + 1)
		if err != nil || !bytes.Equal(data, m.chunks[p]) {
			t.Fatalf("the cursor has other data for %v: %v", p, err)
		}
		if _, err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return fs.reads.Load() - before
}

// TestBlocksAreReadOnce: what is asked for again comes from memory, until it is
// dropped or its reader is closed; what scans read does not come in.
func TestBlocksAreReadOnce(t *testing.T) {
	m := testModel(40, 6, 900)
	fs, files, r := m.openCached(t)
	for range 3 {
		if err := m.compare(r); err != nil {
			t.Fatal(err)
		}
	}
	if st := files.Stats(); st.Kept != 0 {
		t.Fatalf("%d bytes are kept of what scans read", st.Kept)
	}
	m.lookUp(t, fs, r)
	if n := m.lookUp(t, fs, r); n != 0 {
		t.Fatalf("%d reads of blocks that were read before", n)
	}
	st := files.Stats()
	if st.Kept == 0 || st.Kept != files.CachedBytes() || st.Hits == 0 || st.Misses == 0 {
		t.Fatalf("%+v after look-ups", st)
	}
	files.DropBlocks()
	if n := files.CachedBytes(); n != 0 {
		t.Fatalf("%d bytes are kept after all were dropped", n)
	}
	if n := m.lookUp(t, fs, r); n == 0 {
		t.Fatal("nothing was read after all were dropped")
	}
	if files.CachedBytes() == 0 {
		t.Fatal("nothing came in again")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n := files.CachedBytes(); n != 0 {
		t.Fatalf("%d bytes are kept of a reader that was closed", n)
	}
}

// TestI5DamagedBlocksAreNotKept: however often it is asked for, a damaged block is
// named each time and is not kept; the ones around it are.
func TestI5DamagedBlocksAreNotKept(t *testing.T) {
	m := testModel(40, 6, 900)
	fs := vfs.NewMem()
	m.write(t, fs, testPath, m.order())
	data := filetest.Read(t, fs, testPath)
	data[blockSize+100] ^= 1 // in the second block
	files := NewFiles(memFile(t, data), 1, 4<<20)
	r, err := files.Open(testPath)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var first []place
	for round := range 4 {
		var lost []place
		for _, p := range m.order() {
			n := 0
			err := r.Chunks(p.bucket, p.hash, p.chunk, p.chunk+1, func(_ int64, data []byte) error {
				n++
				if !bytes.Equal(data, m.chunks[p]) {
					return fmt.Errorf("wrong data for %v", p)
				}
				return nil
			})
			switch {
			case n == 1 && err == nil:
			case n == 0 && len(Damages(err)) == 1:
				lost = append(lost, p)
			default:
				t.Fatalf("%d chunks for %v, %v", n, p, err)
			}
		}
		if round == 0 {
			first = lost
		}
		if len(lost) == 0 || len(lost) != len(first) {
			t.Fatalf("%d chunks are named as damaged, the first time %d", len(lost), len(first))
		}
	}
	if files.CachedBytes() == 0 {
		t.Fatal("nothing is kept of the intact blocks")
	}
}

// TestBlocksOfManyReaders: readers that come and go while others look up and
// memory is given back.
func TestBlocksOfManyReaders(t *testing.T) {
	m := testModel(60, 4, 900)
	order := m.order()
	fs := vfs.NewMem()
	m.write(t, fs, testPath, order)
	files := NewFiles(fs, 2, 512<<10)
	var all sync.WaitGroup
	for g := range 6 {
		all.Go(func() {
			for range 5 {
				r, err := files.Open(testPath)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range 2 * len(order) {
					if err := m.compareOne(r, order[(i+g*31)%len(order)]); err != nil {
						t.Error(err)
					}
					if g == 0 && i%100 == 0 {
						files.DropBlocks()
					}
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := files.CachedBytes(); n != 0 {
		t.Fatalf("%d bytes are kept of readers that are all closed", n)
	}
}

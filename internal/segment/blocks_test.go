package segment

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/filetest"
)

// TestBlocksEqualTheModel: whatever is offered, dropped and asked for, a block that
// is there is the one that was offered under its key, a block comes in at the second
// time, and the bytes are those that are held and never more than the limit.
func TestBlocksEqualTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int64{2 * blockShards * blockSize, 1 << 20}).Draw(t, "limit")
		c := newBlocks(limit)
		offered := map[blockKey]int{}
		payload := func(key blockKey) []byte {
			return bytes.Repeat([]byte{byte(key), byte(key >> 32)}, 10+int(key*7919%9000)/2)
		}
		key := rapid.Custom(func(t *rapid.T) blockKey {
			return blockKey(rapid.Uint64Range(1, 3).Draw(t, "reader"))<<32 | blockKey(rapid.Uint64Range(0, 200).Draw(t, "block"))
		})
		for range rapid.IntRange(0, 600).Draw(t, "steps") {
			switch k := key.Draw(t, "key"); rapid.IntRange(0, 20).Draw(t, "step") {
			case 0:
				c.drop(k.reader())
				for other := range offered {
					if other.reader() == k.reader() && c.get(other) != nil {
						t.Fatalf("block %x is there, those of its reader were dropped", other)
					}
				}
			case 1:
				c.dropAll()
				clear(offered)
			case 2, 3, 4, 5, 6, 7, 8, 9, 10:
				c.offer(k, payload(k))
				offered[k]++
			default:
				switch got := c.get(k); {
				case got == nil:
				case offered[k] < 2:
					t.Fatalf("block %x is there after %d offers", k, offered[k])
				case !bytes.Equal(got, payload(k)):
					t.Fatalf("block %x is another one", k)
				}
			}
			c.checkBytes(t, limit)
		}
	})
}

// checkBytes counts what is kept.
func (c *blocks) checkBytes(t *rapid.T, limit int64) {
	var all int64
	for i := range c.shards {
		s := &c.shards[i]
		var n int64
		for j := range s.kept {
			n += s.kept[j].cost()
			if s.at[s.kept[j].key] != j {
				t.Fatalf("the place of block %x is not %d", s.kept[j].key, j)
			}
		}
		if n != s.bytes || n > s.limit || len(s.at) != len(s.kept) {
			t.Fatalf("%d bytes in %d blocks, counted as %d in %d, the limit is %d", n, len(s.kept), s.bytes, len(s.at), s.limit)
		}
		all += n
	}
	if held := c.held.Load(); all != held || all > limit {
		t.Fatalf("%d bytes are kept, counted as %d, the limit is %d", all, held, limit)
	}
}

// TestSomeOfTooManyBlocksStay: of twice as many blocks as fit, asked for in turn, a
// part is found, and nearly all of as many as fit.
func TestSomeOfTooManyBlocksStay(t *testing.T) {
	const limit = 4 << 20
	for _, tc := range []struct {
		blocks      int
		least, most float64
	}{
		{limit / blockSize / 2, 1, 1},
		{2 * limit / blockSize, 0.1, 0.6},
	} {
		c := newBlocks(limit)
		payload := make([]byte, blockSize-100)
		var hits, misses int64
		for round := range 20 {
			if round == 10 {
				hits, misses = c.counts()
			}
			for i := range tc.blocks {
				if k := blockKey(1<<32 + i); c.get(k) == nil {
					c.offer(k, payload)
				}
			}
		}
		h, m := c.counts()
		if got := float64(h-hits) / float64(h-hits+m-misses); got < tc.least || got > tc.most {
			t.Errorf("of %d blocks %.2f were found, want %.2f to %.2f", tc.blocks, got, tc.least, tc.most)
		}
	}
}

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

// keeping writes the model and opens it with memory for blocks.
func (m *model) keeping(t *testing.T) (*readFS, *Files, *Reader) {
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
	fs, files, r := m.keeping(t)
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
	if st.Kept == 0 || st.Kept != files.Kept() || st.Hits == 0 || st.Misses == 0 {
		t.Fatalf("%+v after look-ups", st)
	}
	files.DropBlocks()
	if n := files.Kept(); n != 0 {
		t.Fatalf("%d bytes are kept after all were dropped", n)
	}
	if n := m.lookUp(t, fs, r); n == 0 {
		t.Fatal("nothing was read after all were dropped")
	}
	if files.Kept() == 0 {
		t.Fatal("nothing came in again")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n := files.Kept(); n != 0 {
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
	if files.Kept() == 0 {
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
	if n := files.Kept(); n != 0 {
		t.Fatalf("%d bytes are kept of readers that are all closed", n)
	}
}

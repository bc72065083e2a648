package mirror

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/testkit/filetest"
)

// blocksOfOneSize is a sample of three whole blocks that have the same length in the file, and that
// length.
func blocksOfOneSize(t *testing.T) (s *sample, size int) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	s = &sample{}
	for range 3 {
		item := make([]byte, blockSize)
		if _, err := random.Read(item); err != nil {
			t.Fatal(err)
		}
		s.items = append(s.items, item)
	}
	fs := newDir(t)
	s.file = writeFile(t, fs, s.items)
	for _, path := range paths() {
		s.copies = append(s.copies, filetest.Read(t, fs, fs.PathJoin(dir, path)))
	}
	for at := headerSize; ; at += size {
		h, err := parseFrame(s.copies[0][at:])
		if err != nil {
			t.Fatal(err)
		}
		if h.end {
			return s, size
		}
		if n := frameSize + int(h.stored); size != 0 && n != size {
			t.Fatalf("blocks of %d and %d bytes", size, n)
		} else {
			size = n
		}
	}
}

// Whole blocks at each other's places are damage: a device that writes to the wrong place, or loses
// a write, leaves them.
func TestBlocksAtTheWrongPlace(t *testing.T) {
	from, size := blocksOfOneSize(t)
	block := func(data []byte, n int) []byte { return data[headerSize+n*size:][:size] }
	for _, path := range paths() {
		spoil(t, from, "two blocks swapped", path, func(data []byte) []byte {
			first := bytes.Clone(block(data, 0))
			copy(block(data, 0), block(data, 1))
			copy(block(data, 1), first)
			return data
		})
		spoil(t, from, "a block twice", path, func(data []byte) []byte {
			copy(block(data, 2), block(data, 1))
			return data
		})
	}
}

// A file that has lost something in both copies is not repaired: a copy with good checksums would
// say that there never was more. Both stay as they are.
func TestWhatIsLostIsNotMended(t *testing.T) {
	from, size := blocksOfOneSize(t)
	fs := newDir(t)
	f := from.copyTo(t, fs)
	var was [][]byte
	for _, path := range paths() {
		filetest.Rewrite(t, fs, fs.PathJoin(dir, path), func(data []byte) []byte {
			data[headerSize+size+frameSize+100] ^= 1 // in the second block
			return data
		})
		was = append(was, filetest.Read(t, fs, fs.PathJoin(dir, path)))
	}
	items, r := readFile(t, fs, f)
	if len(items) != 2 || !r.Lost {
		t.Fatalf("%d items, %+v", len(items), r)
	}
	mended, err := Mend(fs, dir, own, &f, &r)
	if err == nil || !strings.Contains(err.Error(), "both copies lack a part") || len(mended) != 0 {
		t.Errorf("mended %q, %v", mended, err)
	}
	for i, path := range paths() {
		if !bytes.Equal(filetest.Read(t, fs, fs.PathJoin(dir, path)), was[i]) {
			t.Errorf("%s is another one", path)
		}
	}
	names, err := fs.List(fs.PathJoin(dir, datadir.FileDir(f.Name())))
	if err != nil || len(names) != 2 {
		t.Errorf("the directory has %q, %v", names, err)
	}
}

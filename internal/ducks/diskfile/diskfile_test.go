package diskfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

const cluster = 4096

// qcow2 returns a file of version 2 with a disk of two clusters, of which the second has bytes. Source: QEMU's
// docs/interop/qcow2.txt.
func qcow2File(data []byte) []byte {
	f := make([]byte, 4*cluster)
	copy(f, magic)
	put32, put64 := binary.BigEndian.PutUint32, binary.BigEndian.PutUint64
	put32(f[4:], 2)
	put32(f[20:], 12)        // bits of a cluster
	put64(f[24:], 2*cluster) // size
	put32(f[36:], 1)         // entries of the first table
	put64(f[40:], cluster)   // which is there
	put64(f[48:], 4*cluster) // table of references: behind the end, and not read
	put64(f[cluster:], 1<<63|2*cluster)
	put64(f[2*cluster+8:], 1<<63|3*cluster)
	copy(f[3*cluster:], data)
	return f
}

func write(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFiles(t *testing.T) {
	data := bytes.Repeat([]byte("data"), 1000)
	for what, c := range map[string]struct {
		file []byte
		disk []byte
	}{
		"raw":   {data, data},
		"empty": {nil, nil},
		"qcow2": {qcow2File(data), append(make([]byte, cluster), append(bytes.Clone(data), make([]byte, cluster-len(data))...)...)},
	} {
		d, err := Open(write(t, c.file))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		got, err := io.ReadAll(io.NewSectionReader(d, 0, d.Size))
		if err := errors.Join(err, d.Close()); err != nil || !bytes.Equal(got, c.disk) {
			t.Errorf("%s: %d bytes, %v", what, len(got), err)
		}
	}
}

// A file that names another is not taken: it would make a volume of what this machine has elsewhere.
func TestFilesThatNameOthers(t *testing.T) {
	backed, apart := qcow2File(nil), qcow2File(nil)
	secret := write(t, []byte("secret"))
	binary.BigEndian.PutUint64(backed[backingAt:], 1536)
	binary.BigEndian.PutUint32(backed[16:], uint32(len(secret)))
	copy(backed[1536:], secret)
	binary.BigEndian.PutUint32(apart[versionAt:], 3)
	binary.BigEndian.PutUint64(apart[featuresAt:], externalData)
	for what, file := range map[string][]byte{"a backing file": backed, "a data file": apart} {
		if d, err := Open(write(t, file)); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, %v", what, d, err)
		}
	}
	if d, err := Open(write(t, []byte(magic))); err == nil {
		t.Errorf("a part of a head: %v", d)
	}
}

// What does not come whole, or is not what it should be, leaves no file.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	data := append(make([]byte, 2*block), 1, 2, 3)
	right := func() error { return nil }
	path := filepath.Join(dir, "disk")
	if err := Write(path, int64(len(data)), bytes.NewReader(data), right); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	path += "2"
	for what, err := range map[string]error{
		"a short one": Write(path, int64(len(data))+1, bytes.NewReader(data), right),
		"a long one":  Write(path, int64(len(data))-1, bytes.NewReader(data), right),
		"a wrong one": Write(path, int64(len(data)), bytes.NewReader(data), func() error { return errors.New("the sum is wrong") }),
	} {
		if err == nil {
			t.Errorf("%s is written", what)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

// FuzzQcow2: a file may say anything of itself.
func FuzzQcow2(f *testing.F) {
	f.Add(qcow2File([]byte("data"))[len(magic) : 3*cluster+100])
	f.Fuzz(func(t *testing.T, file []byte) {
		d, err := Open(write(t, append([]byte(magic), file...)))
		if err != nil {
			return
		}
		defer d.Close()
		_, _ = d.ReadAt(make([]byte, 1<<10), 0) // an error is right
	})
}

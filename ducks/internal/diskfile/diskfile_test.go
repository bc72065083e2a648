package diskfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

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
		"qcow2": {form{version: 2, bits: 12}.file(t, data), data},
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
		"a wrong one": Write(path, int64(len(data)), bytes.NewReader(data), func() error {
			return errors.New("the sum is wrong")
		}),
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
	for _, of := range []form{{version: 2, bits: 12}, {version: 3, bits: 9, packed: "deflate"},
		{version: 3, bits: 9, packed: "zstd"}, {version: 3, bits: 14, extended: true}} {
		f.Add(of.file(f, []byte("data"))[len(magic):])
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		d, err := Open(write(t, append([]byte(magic), file...)))
		if err != nil {
			return
		}
		defer d.Close()
		_, _ = d.ReadAt(make([]byte, 1<<10), 0) // an error is right
	})
}

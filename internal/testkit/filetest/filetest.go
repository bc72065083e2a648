// Package filetest reads, writes and damages files for tests.
package filetest

import (
	"bytes"
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TB is what these functions need of a *testing.T, *testing.B, *testing.F or *rapid.T.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Read returns what a file holds.
func Read(t TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return data
}

// Write makes a file of data, in place of one of that name, and syncs it. Its entry in the
// directory is not synced.
func Write(t TB, fs vfs.FS, path string, data []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(bytes.Clone(data)) // under the race detector pebble spoils what it was given
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Rewrite makes a file of what change returns for its bytes.
func Rewrite(t TB, fs vfs.FS, path string, change func(data []byte) []byte) {
	t.Helper()
	Write(t, fs, path, change(Read(t, fs, path)))
}

// FlipBit turns one bit of a file over, where the file lies: who has it open reads the damage.
func FlipBit(t TB, fs vfs.FS, path string, bit int64) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], bit/8)
	if err == nil {
		b[0] ^= 1 << (bit % 8)
		_, err = f.WriteAt(b[:], bit/8)
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Package frozen is for tests: it compares what writers make with the files of
// the format that are checked in. Such a file changes only together with the
// number of the format.
package frozen

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"dalmatiner/internal/testkit/golden"
)

// Dir is where the files of the format lie beside a package.
const Dir = "testdata/v5"

// Same fails the test unless got is what the file name below Dir holds. With
// -update it writes a file that is missing.
func Same(t testing.TB, name string, got []byte) {
	t.Helper()
	path := filepath.Join(Dir, filepath.FromSlash(name))
	want, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && golden.Update() {
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = os.WriteFile(path, got, 0o644)
		}
		want = got
	}
	if err != nil {
		t.Fatalf("%v; -update writes files that are missing", err)
	}
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	t.Errorf("the format is frozen, and %s is not what is written now: %d bytes and %d, which "+
		"differ from byte %d on: % x, now % x",
		path, len(want), len(got), at, want[at:min(at+16, len(want))], got[at:min(at+16, len(got))])
}

// Read returns the file name below Dir.
func Read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(Dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Missing reports whether the file or directory name is to be made.
func Missing(name string) bool {
	_, err := os.Stat(filepath.Join(Dir, filepath.FromSlash(name)))
	return golden.Update() && errors.Is(err, fs.ErrNotExist)
}

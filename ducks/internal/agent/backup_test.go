package agent

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/duckstest"
	"dalmatiner/ducks/internal/pool"
)

// TestCopiesOfTheStateKeepTheReserve: the state is copied into a pool, and made again in it, only
// where its reserve stays free.
func TestCopiesOfTheStateKeepTheReserve(t *testing.T) {
	if !duckstest.Alone(t, "mount", "mkfs.xfs") {
		return
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := duckstest.Mounted(t, "reflink")
	spec, path := "reflink:"+at, filepath.Join(at, backupFile)
	file, err := state.Open(filepath.Join(t.TempDir(), "state"), layouts())
	must(err)
	defer file.Close()
	copied := func(keep pool.Reserve) error {
		p, _, lock, err := openPool(spec, keep)
		must(err)
		return errors.Join(backup(t.Context(), file, p, path), lock.Close())
	}
	all, half := pool.Reserve{Bytes: 1 << 40}, pool.Reserve{Percent: 50}
	must(copied(half))
	was, err := os.ReadFile(path)
	must(err)
	if err := copied(all); !errors.Is(err, pool.ErrFull) {
		t.Errorf("a copy: %v", err)
	}
	if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, was) {
		t.Errorf("the copy before is not there: %v", err)
	}
	if list, err := os.ReadDir(at); err != nil || len(list) != 4 { // it, and three of the pool
		t.Errorf("%v, %v", list, err)
	}
	inside := filepath.Join(at, "data")
	if err := Restore(inside, spec, all); !errors.Is(err, pool.ErrFull) {
		t.Errorf("restored inside: %v", err)
	}
	must(Restore(inside, spec, half))
	must(Restore(t.TempDir(), spec, all)) // elsewhere nothing is taken from the pool
}

package state

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type thing struct{ A int }

const things Table = "thing"

var migrations = []Migration{func(tx *Tx) error { return tx.MakeTable(things) }}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTransactions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	f, err := Open(path, migrations)
	must(t, err)
	must(t, f.Update(func(tx *Tx) error {
		return errors.Join(tx.Put(things, "b", thing{2}), tx.Put(things, "a", thing{1}),
			tx.Put(things, "c", thing{3}), tx.Delete(things, "c"), tx.Delete(things, "d"))
	}))
	failed := errors.New("failed")
	if err := f.Update(func(tx *Tx) error {
		return errors.Join(tx.Put(things, "a", thing{9}), failed)
	}); !errors.Is(err, failed) {
		t.Error(err)
	}
	must(t, f.Close())
	f, err = Open(path, migrations)
	must(t, err)
	var keys []string
	must(t, f.View(func(tx *Tx) error {
		var a thing
		if err := tx.Get(things, "a", &a); err != nil || a.A != 1 {
			t.Error(a, err)
		}
		if err := tx.Get(things, "c", &a); !errors.Is(err, ErrUnknown) ||
			!strings.Contains(err.Error(), "thing c") {
			t.Error(err)
		}
		return Each(tx, things, func(key string, v thing) error {
			keys = append(keys, key)
			return nil
		})
	}))
	if !slices.Equal(keys, []string{"a", "b"}) {
		t.Error(keys)
	}
	for want := range uint64(3) {
		must(t, f.Update(func(tx *Tx) error {
			if n, err := tx.Next(things); err != nil || n != want+1 {
				t.Error(n, err)
			}
			return nil
		}))
	}
	copied, err := os.Create(path + ".copy")
	must(t, err)
	must(t, errors.Join(f.Backup(copied), copied.Close(), f.Close()))
	f, err = Open(path+".copy", migrations)
	must(t, err)
	must(t, f.View(func(tx *Tx) error { return tx.Get(things, "b", new(thing)) }))
	must(t, f.Close())
}

// Backward reads what lies before a key, whether it is there or not, until it is enough.
func TestBackward(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "state"), migrations)
	must(t, err)
	defer f.Close()
	backward := func(before string, most int) (keys string) {
		must(t, f.View(func(tx *Tx) error {
			return Backward(tx, things, before, func(key string, _ thing) (bool, error) {
				if len(keys) == most {
					return false, nil
				}
				keys += key
				return true, nil
			})
		}))
		return keys
	}
	if got := backward("", 9) + backward("b", 9); got != "" {
		t.Errorf("an empty table has %q", got)
	}
	must(t, f.Update(func(tx *Tx) error {
		return errors.Join(tx.Put(things, "b", thing{}), tx.Put(things, "d", thing{}),
			tx.Put(things, "f", thing{}))
	}))
	for before, want := range map[string]string{"": "fdb", "g": "fdb", "f": "db", "e": "db", "d": "b",
		"b": "", "a": ""} {
		if got := backward(before, 9); got != want {
			t.Errorf("before %q there is %q, not %q", before, got, want)
		}
	}
	if got := backward("", 2); got != "fd" {
		t.Errorf("two are %q", got)
	}
}

func TestMigrations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	f, err := Open(path, migrations)
	must(t, err)
	must(t, errors.Join(f.Update(func(tx *Tx) error {
		return tx.Put(things, "a", thing{1})
	}), f.Close()))
	runs := 0
	newer := append(slices.Clone(migrations), func(tx *Tx) error {
		runs++
		return tx.Put(things, "a", thing{2})
	})
	for range 2 {
		f, err = Open(path, newer)
		must(t, err)
		var a thing
		must(t, f.View(func(tx *Tx) error { return tx.Get(things, "a", &a) }))
		must(t, f.Close())
		if runs != 1 || a.A != 2 {
			t.Errorf("migrated %d times, has %+v", runs, a)
		}
	}
	if _, err := Open(path, migrations); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("a file of a newer layout is opened: %v", err)
	}
	broken := errors.New("broken")
	if _, err := Open(path, append(slices.Clone(newer), func(tx *Tx) error {
		return errors.Join(tx.Put(things, "a", thing{3}), broken)
	})); !errors.Is(err, broken) {
		t.Error(err)
	}
	f, err = Open(path, newer)
	must(t, err)
	var a thing
	must(t, errors.Join(f.View(func(tx *Tx) error { return tx.Get(things, "a", &a) }), f.Close()))
	if a.A != 2 {
		t.Errorf("a migration that failed has left %+v", a)
	}
	must(t, os.WriteFile(path, []byte("no such file"), 0o600))
	if _, err := Open(path, newer); err == nil {
		t.Error("anything is opened")
	}
}

// A backup is made when something has changed since the last one.
func TestChanges(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "state"), migrations)
	must(t, err)
	defer f.Close()
	number := func() uint64 {
		t.Helper()
		n, err := f.Changes()
		must(t, err)
		return n
	}
	before := number()
	must(t, f.View(func(*Tx) error { return nil }))
	if got := number(); got != before {
		t.Errorf("%d behind a read, %d before it", got, before)
	}
	must(t, f.Update(func(tx *Tx) error { return tx.Put(things, "a", thing{1}) }))
	if got := number(); got == before {
		t.Errorf("%d before and behind an update", got)
	}
}

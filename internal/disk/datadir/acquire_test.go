package datadir

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/host/durable"
)

// own is the id of the directory.
var own = origin.Directory{1, 2, 15: 3}

func ownID(origin.Directory, bool) origin.Directory { return own }

// A directory that is not ours, or not of this format, is refused by name and stays as it is.
func TestAcquireRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"leo.conf":              "holds leo.conf and nothing of a Dalmatiner store",
		Restore:                 "holds a restore that was cut off",
		Version + "=dalmatiner": "", // no number is damage
		Version + "=dalmatiner 1": "has format 1; this program reads format 5: use the ddb that wrote " +
			"it, or name another directory; " +
			"if no other ddb ever ran here, its file VERSION is damaged: remove it",
		Version + "=" + VersionText(own): "",
		Lock + "=":                       "",
	} {
		fs := vfs.NewMem()
		file, text, _ := strings.Cut(name, "=")
		if err := fs.MkdirAll("/d", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := durable.WriteFile(fs, "/d", file, []byte(text)); err != nil {
			t.Fatal(err)
		}
		damaged := 0
		lock, _, err := Acquire(fs, "/d", ownID, func(string, error) { damaged++ })
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if err := lock.Close(); err != nil {
				t.Error(err)
			}
			if text, err := durable.ReadFile(fs, "/d/"+Version); err != nil ||
				string(text) != VersionText(own) {
				t.Errorf("%s: VERSION says %q: %v", name, text, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if garbled := text == "dalmatiner"; (damaged == 1) != garbled {
			t.Errorf("%s: %d times named as damaged", name, damaged)
		}
		if got, err := durable.ReadFile(fs, "/d/"+file); want != "" &&
			(err != nil || string(got) != text) {
			t.Errorf("%s was changed to %q: %v", name, got, err)
		}
	}
}

func TestADirectoryIsAcquiredOnce(t *testing.T) {
	fs := vfs.NewMem()
	never := func(file string, err error) { t.Errorf("%s: %v", file, err) }
	lock, _, err := Acquire(fs, "/d", ownID, never)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Acquire(fs, "/d", ownID, never); err == nil ||
		!strings.Contains(err.Error(), "data directory /d is in use by") {
		t.Errorf("acquired twice: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if lock, _, err = Acquire(fs, "/d", ownID, never); err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

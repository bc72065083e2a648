package manifest

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/testkit/filetest"
)

// Inspect gives what Open gives, leaves the file as it is, and may run beside
// an open Manifest.
func TestInspect(t *testing.T) {
	data, starts := buildFile(5)
	flipped := slices.Clone(data)
	flipped[starts[2]+frameSize] ^= 1
	for what, content := range map[string][]byte{"whole": data, "torn": data[:len(data)-1],
		"damaged": flipped} {
		fs := disk(t, content)
		state, report, err := Inspect(fs, "data", own)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := filetest.Read(t, fs, "data/MANIFEST.2"); !slices.Equal(got, content) {
			t.Errorf("%s: the file has changed", what)
		}
		m, want, wantReport := mustOpen(t, fs, rewriteSize)
		wantReport.SetAside = nil
		if !reflect.DeepEqual(state, want) || !reflect.DeepEqual(report, wantReport) {
			t.Errorf("%s: %+v, %+v\nopened: %+v, %+v", what, state, report, want, wantReport)
		}
		if _, _, err := Inspect(fs, "data", own); err != nil {
			t.Errorf("%s: beside an open one: %v", what, err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Inspect(vfs.NewMem(), "data", own); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

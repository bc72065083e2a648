package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a test that only remembers what it is told.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Errorf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) }

func TestSame(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, says string }{
		{"one\ntwo\nthree\n", ""},
		{"one\nTWO\nthree\n", "text:2: got\nTWO\nthree\n\nwant\ntwo\nthree\n"},
		{"one\ntwo\nthree", "text:3: got\nthree\nwant\nthree\n"},
		{"one\ntwo\nthree\nfour\n", "text:4: got\nfour\n"},
		{"one\n", "text:2: got\n\nwant\ntwo\nthree\n"},
		{"", "text:1: got\n\nwant\none\n"},
	} {
		r := &recorder{TB: t}
		Same(r, file, c.got)
		if (r.said == "") != (c.says == "") || !strings.Contains(r.said, c.says) {
			t.Errorf("%q: it says %q, want %q", c.got, r.said, c.says)
		}
	}
}

func TestUpdate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	defer func(before bool) { *update = before }(*update)
	*update = true
	Same(t, file, "new\n")
	if *update = false; Update() {
		t.Error("it still updates")
	}
	Same(t, file, "new\n")
}

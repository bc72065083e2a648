// Package golden is for tests: it compares what they get with files that are
// checked in, which -update rewrites.
package golden

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false,
	"rewrite golden files, and write frozen ones that are missing")

// Update reports whether files are to be written rather than compared.
func Update() bool { return *update }

// Same fails the test unless got is what file holds, a path below the package's
// directory. It names the first line that differs. With -update it writes the file.
func Same(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:%s\nrun with -update when the change is meant", file, difference(got, string(want)))
	}
}

// shown is how many lines of a difference are printed.
const shown = 10

// difference describes where two texts part.
func difference(got, want string) string {
	g, w := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	at := 0
	for at < min(len(g), len(w)) && g[at] == w[at] {
		at++
	}
	part := func(lines []string) string {
		return strings.Join(lines[min(at, len(lines)):min(at+shown, len(lines))], "")
	}
	return fmt.Sprintf("%d: got\n%s\nwant\n%s", at+1, part(g), part(w))
}

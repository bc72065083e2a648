package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/testkit/filetest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// manifestOf returns a directory of an id whose MANIFEST has taken buckets of these names.
func manifestOf(t *testing.T, of origin.Directory, names ...string) *vfs.MemFS {
	fs := durableDir(t)
	m, _, _ := mustOpenOf(t, fs, of, rewriteSize)
	for i, name := range names {
		commit(t, m, Edit{PutBuckets: []buckets.Info{bucketOf(uint64(i+1), name)}, Settled: true})
	}
	return fs
}

func putCopies(t *testing.T, fs, from vfs.FS, copies ...string) {
	for _, name := range copies {
		filetest.Write(t, fs, fs.PathJoin(dir, name), filetest.Read(t, from, fs.PathJoin(dir, name)))
	}
}

// TestACopyOfAnotherDirectory: it is named, kept in lost+found and not read; with both copies of
// another directory the state is that of none.
func TestACopyOfAnotherDirectory(t *testing.T) {
	foreign := manifestOf(t, origin.Directory{9}, "x", "y", "z")
	for _, copies := range [][]string{{FirstName}, {SecondName}, {FirstName, SecondName}} {
		fs := manifestOf(t, another, "a", "b")
		putCopies(t, fs, foreign, copies...)
		_, inspected, _ := Inspect(fs, dir, another)
		_, state, report := mustOpenOf(t, fs, another, rewriteSize)
		if fmt.Sprint(report.Damaged, report.Lost) != fmt.Sprint(inspected.Damaged, inspected.Lost) {
			t.Errorf("%q: Inspect says %v, Open %v", copies, inspected, report)
		}
		if !strings.Contains(fmt.Sprint(report.Damaged), "it is of the data directory 09") ||
			len(report.SetAside) != len(copies) {
			t.Errorf("%q: %+v", copies, report)
		}
		if both := len(copies) == 2; state.Suspect != both || len(state.Buckets) != 2 && !both || both &&
			len(state.Buckets) != 0 {
			t.Errorf("%q: %+v", copies, state)
		}
		if _, state, report := mustOpenOf(t, fs, another, rewriteSize); len(report.Damaged) > 0 ||
			state.Directory != another {
			t.Errorf("%q: then %+v of %s", copies, report, state.Directory)
		}
	}
}

// TestCopiesThatWentApart: a directory and a copy of it that ran as well have edits of the same
// number that say different things. From the first one on neither copy counts.
func TestCopiesThatWentApart(t *testing.T) {
	twin := manifestOf(t, another, "a", "x", "c", "d")
	for _, name := range []string{FirstName, SecondName} {
		fs := manifestOf(t, another, "a", "b", "c")
		putCopies(t, fs, twin, name)
		m, state, report := mustOpenOf(t, fs, another, rewriteSize)
		if len(state.Buckets) != 1 || !state.Suspect || len(report.SetAside) != 2 ||
			!strings.Contains(fmt.Sprint(report.Lost), "different things from edit 2 on") {
			t.Errorf("%s: %+v, %+v", name, state, report)
		}
		commit(t, m, Edit{PutBuckets: []buckets.Info{bucketOf(7, "new")}, Settled: true})
		if _, state, report := mustOpenOf(t, fs, another, rewriteSize); len(state.Buckets) != 2 ||
			len(report.Damaged)+len(report.Lost) > 0 || state.Suspect {
			t.Errorf("%s: then %+v, %+v", name, state, report)
		}
	}
}

func TestDirectories(t *testing.T) {
	fs := manifestOf(t, another, "a")
	putCopies(t, fs, manifestOf(t, origin.Directory{9}), SecondName)
	if got := Directories(fs, dir); !slices.Equal(got, []origin.Directory{another, {9}}) {
		t.Errorf("the copies say %v", got)
	}
}

func bucketOf(id uint64, name string) buckets.Info {
	return buckets.Info{ID: id, Name: name, Resolution: 1000, PPF: 60}
}

package manifest

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/testkit/filetest"
)

// startsOf returns directories that a start finds, each with all that was committed.
func startsOf(t *testing.T) map[string]*vfs.MemFS {
	t.Helper()
	data, starts := buildFile(3)
	bad := slices.Clone(data)
	bad[starts[1]+frameSize] ^= 1
	out := make(map[string]*vfs.MemFS)
	for name, copies := range map[string][2][]byte{
		"whole": {data, data}, "first damaged": {bad, data}, "second damaged": {data, bad},
		"first missing": {nil, data}, "second missing": {data, nil},
		"second torn": {data, data[:len(data)-3]},
	} {
		out[name] = disks(t, copies[0], copies[1]).CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100,
			RNG: rand.New(rand.NewPCG(1, 1))})
	}
	return out
}

// Whichever call of a start changes a file and fails, the start says so: its state may
// stand in the page cache only. The next one has all.
func TestAStartSaysWhatFailed(t *testing.T) {
	data, _ := buildFile(3)
	_, want, _ := mustOpen(t, disk(t, data), rewriteSize)
	failed := 0
	for name := range startsOf(t) {
		for nth := 1; ; nth++ {
			mem, left := startsOf(t)[name], nth
			var what errorfs.Op
			m, _, _, err := Open(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose {
					if left--; left == 0 {
						what = op
						return errorfs.ErrInjected
					}
				}
				return nil
			})), dir, own, nil)
			if err == nil {
				_ = m.Close()
			}
			if left > 0 {
				break
			}
			failed++
			// a file without a link is copied
			if what.Kind != errorfs.OpLink && !errors.Is(err, errorfs.ErrInjected) {
				t.Errorf("%s: %v of %q fails: %v", name, what.Kind, what.Path, err)
			}
			m, s, r, err := Open(mem.CrashClone(vfs.CrashCloneCfg{}), dir, own, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(s, want) || len(r.Lost) > 0 {
				t.Errorf("%s: behind a failed %v of %q: %+v, %+v", name, what.Kind, what.Path, s, r)
			}
			_ = m.Close()
		}
	}
	if failed < 40 {
		t.Errorf("%d calls failed", failed)
	}
}

// A copy that the device does not give is not one that is damaged: with the other one
// there is a start, without it there is none, and nothing is changed.
func TestCopiesThatTheDeviceDoesNotGive(t *testing.T) {
	data, _ := buildFile(3)
	_, want, _ := mustOpen(t, disk(t, data), rewriteSize)
	for _, c := range []struct {
		first, second []byte
		unread        []string
		opens         bool
	}{
		{data, data, names[:1], true},
		{data, data, names[1:], true},
		{data, data, names[:], false},
		{data, nil, names[:1], false},
		{nil, data, names[1:], false},
	} {
		mem := disks(t, c.first, c.second)
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileRead && slices.ContainsFunc(c.unread, func(n string) bool {
				return strings.HasSuffix(op.Path, "/"+n)
			}) {
				return syscall.EIO
			}
			return nil
		}))
		m, s, r, err := Open(fs, dir, own, nil)
		switch {
		case !c.opens && !errors.Is(err, syscall.EIO):
			t.Errorf("%q unread: %v, %+v", c.unread, err, r)
		case c.opens && (err != nil || !reflect.DeepEqual(s, want) || len(r.Damaged) != 1 ||
			len(r.Lost) > 0):
			t.Errorf("%q unread: %v, %+v, %+v", c.unread, err, s, r)
		}
		if err == nil {
			_ = m.Close()
			continue
		}
		for i, was := range [][]byte{c.first, c.second} {
			if was != nil && !slices.Equal(filetest.Read(t, mem, mem.PathJoin(dir, names[i])), was) {
				t.Errorf("%q unread: %s was changed", c.unread, names[i])
			}
		}
		if names, err := mem.List(dir); err != nil || slices.Contains(names, lostDir) {
			t.Errorf("%q unread: %q, %v", c.unread, names, err)
		}
	}
}

package segment

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// countingFS knows how many files are open for reading, and fails to open some.
type countingFS struct {
	vfs.FS
	open, most atomic.Int64
	fail       atomic.Pointer[error]
}

type countedFile struct {
	vfs.File
	fs *countingFS
}

func (f *countingFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := f.fail.Load(); err != nil {
		return nil, *err
	}
	n := f.open.Add(1)
	for most := f.most.Load(); n > most && !f.most.CompareAndSwap(most, n); most = f.most.Load() {
	}
	file, err := f.FS.Open(name, opts...)
	if err != nil {
		f.open.Add(-1)
		return nil, err
	}
	return countedFile{file, f}, nil
}

func (f countedFile) Close() error {
	f.fs.open.Add(-1)
	return f.File.Close()
}

// segmentFiles writes segments and opens all of them through files with a limit.
func segmentFiles(t *testing.T, n, limit int) (*countingFS, *Files, *model, []*Reader) {
	t.Helper()
	fs := &countingFS{FS: vfs.NewMem()}
	files := NewFiles(fs, limit, 0)
	m := testModel(20, 5, 900)
	var readers []*Reader
	for i := range n {
		path := fmt.Sprintf("%d.seg", i)
		m.write(t, fs, path, m.order())
		r, err := files.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, r)
	}
	return fs, files, m, readers
}

// TestReadersShareTheLimitOfOpenFiles: with a limit of two, many readers at a
// time give right answers, never with more files, and close all of them.
func TestReadersShareTheLimitOfOpenFiles(t *testing.T) {
	const limit = 2
	fs, files, m, readers := segmentFiles(t, 7, limit)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i, p := range m.order() {
				r := readers[(g+i)%len(readers)]
				if i%10 == 0 {
					r.DropIndex()
				}
				if err := m.compareOne(r, p); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if most := fs.most.Load(); most > limit {
		t.Errorf("%d files were open", most)
	}
	if s := files.Stats(); s.Open != limit || s.Limit != limit || s.Opened <= int64(len(readers)) ||
		fs.open.Load() != limit {
		t.Errorf("%+v, %d are open", s, fs.open.Load())
	}
	for _, r := range readers {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := fs.open.Load(); n != 0 || files.Stats().Open != 0 {
		t.Errorf("%d files are open at the end, %+v", n, files.Stats())
	}
	if _, err := readers[0].Buckets(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed reader: %v", err)
	}
}

// TestTheFileReadLastStaysOpen: the one that makes room is the one not read for
// longest.
func TestTheFileReadLastStaysOpen(t *testing.T) {
	_, files, _, readers := segmentFiles(t, 3, 2)
	read := func(i int) (opened int64) {
		before := files.Stats().Opened
		if _, err := readers[i].Buckets(); err != nil {
			t.Fatal(err)
		}
		return files.Stats().Opened - before
	}
	read(0)
	read(1)
	for _, c := range []struct {
		reader int
		opened int64
	}{{0, 0}, {2, 1}, {0, 0}, {1, 1}, {0, 0}, {2, 1}} {
		if got := read(c.reader); got != c.opened {
			t.Fatalf("reader %d opened %d files, want %d", c.reader, got, c.opened)
		}
	}
}

// TestAFileThatDoesNotOpenAgain: what the system refuses for now is an error and
// no damage, a file that is gone is damage; both leave the place to others.
func TestAFileThatDoesNotOpenAgain(t *testing.T) {
	fs, files, m, readers := segmentFiles(t, 2, 1)
	p := m.order()[0]
	var failed error = &os.PathError{Op: "open", Err: syscall.EMFILE}
	fs.fail.Store(&failed)
	if err := m.compareOne(readers[0], p); !errors.Is(err, syscall.EMFILE) || len(Damages(err)) > 0 {
		t.Errorf("too many files: %v", err)
	}
	fs.fail.Store(nil)
	if err := m.compareOne(readers[0], p); err != nil {
		t.Errorf("later: %v", err)
	}
	if err := m.compareOne(readers[1], p); err != nil {
		t.Error(err)
	}
	if err := fs.Remove("0.seg"); err != nil {
		t.Fatal(err)
	}
	readers[0].DropIndex()
	if err := m.compareOne(readers[0], p); len(Damages(err)) != 1 || ReadFailed(err) ||
		!bytes.Contains([]byte(err.Error()), []byte("gone")) {
		t.Errorf("a file that is gone: %v", err)
	}
	if err := m.compareOne(readers[1], p); err != nil || files.Stats().Open != 1 {
		t.Errorf("%v, %+v", err, files.Stats())
	}
}

package startup

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
)

var (
	now    = time.Unix(1_700_000_000, 0)
	bucket = buckets.Info{ID: 7, Name: "b", Resolution: 1000, PPF: 60}
)

// key is the metric of which the directory has a segment.
func key() []byte { return metric.AppendPart(nil, "m") }

// options returns empty rooms.
func options(fs vfs.FS) Options {
	logger := slog.New(slog.DiscardHandler)
	o := Options{
		FS: fs, Dir: "/data", Logger: logger, Now: func() time.Time { return now },
		Log:     wal.Options{Sync: wal.Off, FileSize: 1 << 16, OnFailure: func(error) {}},
		Files:   segment.NewFiles(fs, 10, 0),
		Buckets: buckets.NewRegistry[*columns.Bucket](), Account: account.New(),
		Damage:    &damage.Notes{Logger: logger},
		SideFiles: func(*manifest.State, bool) {},
		NewBucket: func(info buckets.Info) *columns.Bucket {
			return columns.NewBucket(info, 60, head.NewArena(60))
		},
	}
	o.Segments = version.NewDir(fs, o.Dir, o.Files, logger)
	o.Versions = version.New(o.Segments.Retire)
	o.Columns = columns.New(columns.Options{
		Buckets: o.Buckets, Clock: clock.New(o.Now), Versions: o.Versions, NewSeries: func() {},
		Names: memory.New(0, o.Now, nil).NewStock(memory.StockOptions{Name: "names"}),
	})
	return o
}

// fill makes a directory with a bucket, a series and a segment that names it.
func fill(t *testing.T, fs vfs.FS) {
	t.Helper()
	o := options(fs)
	d, _, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	id := metric.Series(bucket.ID, key())
	series := segment.Series{Bucket: bucket.ID, Hash: segment.Hash(id), Key: key(), Group: 0,
		Column: 3}
	m := manifest.Segment{Seq: o.Segments.TakeNumber(), Kind: manifest.Flush}
	m.Generation = m.Seq
	e := manifest.Edit{PutBuckets: []buckets.Info{bucket}, NextSeq: o.Segments.NextNumber(),
		NextGroup: 1, ReplayPosition: 1, Accounts: manifest.Accounts{AccountLSN: 1}}
	w, err := o.Segments.Create(&m)
	if err != nil {
		t.Fatal(err)
	}
	w.AddBucket(bucket)
	w.AddSeries(series)
	w.Describe(int64(m.Seq), 0, 0)
	e.AddSegments = []manifest.Segment{m}
	w.SetState(e.Encode())
	seg, err := o.Segments.Finish(m, w)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(seg.Reader.Close(), d.Catalogue.Put([]segment.Series{series}),
		d.Catalogue.Flush())
	e.AddSegments[0], e.Catalogue = seg.Meta, d.Catalogue.Mark()
	if err = errors.Join(err, d.Manifest.Commit(e), d.Close()); err != nil {
		t.Fatal(err)
	}
}

// check says whether the rooms have what fill made.
func check(o *Options) error {
	b := o.Buckets.ID(bucket.ID)
	switch {
	case b == nil:
		return errors.New("the bucket is unknown")
	case len(o.Versions.Latest().Segments) != 1:
		return errors.New("the segment is not in the version")
	case o.Segments.NextNumber() != 2:
		return errors.New("the number of the segment is given again")
	}
	if p, ok := o.Columns.Locate(b.SeriesID(key()), key()); !ok || p.Column != 3 {
		return errors.New("the series does not have its column")
	}
	return nil
}

// The rooms have what MANIFEST, segments and catalogue say, and without the catalogue
// what the segments say.
func TestOpen(t *testing.T) {
	for _, lost := range []bool{false, true} {
		fs := vfs.NewMem()
		fill(t, fs)
		if lost {
			if err := fs.RemoveAll(fs.PathJoin("/data", datadir.Catalogue)); err != nil {
				t.Fatal(err)
			}
		}
		o := options(fs)
		d, found, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(&o); err != nil {
			t.Errorf("without the catalogue %t: %v", lost, err)
		}
		if found.Ownership.Rebuilt != lost || len(found.State.Segments) != 1 {
			t.Errorf("without the catalogue %t: %+v", lost, found)
		}
		if _, n := o.Damage.Names(); n > 0 != lost {
			t.Errorf("without the catalogue %t: %d damages", lost, n)
		}
		if _, _, err := Open(options(fs)); err == nil {
			t.Error("a directory was opened twice")
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A start that fails at any operation leaves nothing open, and the next one finds all.
func TestAFailedStartLeavesNothingOpen(t *testing.T) {
	failed, filled := 0, vfs.NewMem()
	fill(t, filled)
	for at, done := int32(1), false; !done; at++ {
		mem := vfs.NewMem()
		if _, err := vfs.Clone(filled, mem, "/data", "/data"); err != nil {
			t.Fatal(err)
		}
		var n atomic.Int32
		open := &openFiles{FS: mem}
		fs := errorfs.Wrap(open, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind != errorfs.OpFileClose && n.Add(1) == at {
				return syscall.EIO
			}
			return nil
		}))
		o := options(fs)
		d, _, err := Open(o)
		if done = n.Load() < at; done && err != nil {
			t.Errorf("nothing failed, and the start says %v", err)
		}
		if err == nil {
			_ = d.Close() // it may have met the failure
		} else if failed++; len(open.names()) > 0 {
			t.Errorf("operation %d fails: %q stay open after %v", at, open.names(), err)
		}
		again := options(mem)
		d, _, err = Open(again)
		if err == nil {
			err = errors.Join(check(&again), d.Close())
		}
		if err != nil {
			t.Fatalf("after operation %d failed: %v", at, err)
		}
	}
	if failed < 10 {
		t.Errorf("%d starts failed", failed)
	}
}

// openFiles is a file system that knows which files and locks are open.
type openFiles struct {
	vfs.FS

	mu   sync.Mutex
	open []string
}

func (fs *openFiles) names() []string {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return slices.Clone(fs.open)
}

// closer counts its name as open until it is closed.
func (fs *openFiles) closer(name string) func() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.open = append(fs.open, name)
	return sync.OnceFunc(func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		i := slices.Index(fs.open, name)
		fs.open = slices.Delete(fs.open, i, i+1)
	})
}

func (fs *openFiles) file(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &openFile{f, fs.closer(name)}, nil
}

func (fs *openFiles) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	return fs.file(name, f, err)
}

func (fs *openFiles) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.Open(name, opts...)
	return fs.file(name, f, err)
}

func (fs *openFiles) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (
	vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, c, opts...)
	return fs.file(name, f, err)
}

func (fs *openFiles) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	return fs.file(name, f, err)
}

func (fs *openFiles) Lock(name string) (io.Closer, error) {
	l, err := fs.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	return &openLock{l, fs.closer(name)}, nil
}

type openFile struct {
	vfs.File
	closed func()
}

func (f *openFile) Close() error {
	f.closed()
	return f.File.Close()
}

type openLock struct {
	io.Closer
	closed func()
}

func (l *openLock) Close() error {
	l.closed()
	return l.Closer.Close()
}

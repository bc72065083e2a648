package events

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write/logrecord"
)

// now is the clock of tests: 2020-09-13, in nanoseconds.
const now = 1_600_000_000_000_000_000

// node is a Local with what stands around it: a log that is a list of records, and a MANIFEST that
// is a list of files.
type node struct {
	t       rapid.TB
	fs      vfs.FS
	s       *Local
	account *account.Account
	buckets map[string]buckets.Info
	moment  sync.RWMutex // held alone by a flush that takes
	log     [][]byte
	state   manifest.State // but for its files
	files   map[uint64]manifest.File
	number  uint64
	damage  []string
	pending int64
	full    bool
	stopped bool
	yields  func(busy bool) bool
}

func newNode(t rapid.TB, infos ...buckets.Info) *node {
	n := &node{t: t, fs: vfs.NewMem(), buckets: make(map[string]buckets.Info),
		files: make(map[uint64]manifest.File)}
	for i, b := range infos {
		b.ID, b.PPF = uint64(i+1), max(b.PPF, 60)
		b.Resolution = max(b.Resolution, 1000)
		n.buckets[b.Name] = b
	}
	if err := n.fs.MkdirAll("events", 0o755); err != nil {
		t.Fatal(err)
	}
	n.open()
	return n
}

func (n *node) open() {
	n.account, n.pending = account.New(), 0
	s, err := New(Options{
		FS: n.fs, Dir: "", Logger: slog.New(slog.DiscardHandler), Now: func() int64 { return now },
		MaxFuture: time.Minute, MaxFile: 1 << 20, TakeNumber: func() uint64 {
			n.number++
			return n.number
		},
		Bucket: func(name string) (buckets.Info, error) {
			b, ok := n.buckets[name]
			if !ok {
				return b, buckets.UnknownError(name)
			}
			return b, nil
		},
		ByID: func(id uint64) (buckets.Info, bool) {
			for _, b := range n.buckets {
				if b.ID == id {
					return b, true
				}
			}
			return buckets.Info{}, false
		},
		Log: n, Account: n.account,
		Wait: func() {}, DiskFull: func() bool {
			return n.full
		}, Pending: func(d int64) { n.pending += d },
		Commit:  func(e manifest.FileChanges) error { n.commit(e); return nil },
		Stopped: func() bool { return n.stopped },
		Yields:  func(busy bool) bool { return n.yields != nil && n.yields(busy) },
		Damage: func(what string, err error) {
			n.damage = append(n.damage, fmt.Sprintf("%s: %v", what, err))
		},
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.s = s
	var files []manifest.File
	n.state.LostFiles = nil
	for _, f := range n.files {
		if _, err := n.fs.Stat(eventfile.Path(f.Seq)); err == nil {
			files = append(files, f)
		} else {
			n.state.LostFiles = append(n.state.LostFiles,
				manifest.LostFile{FileName: f.Name(), Items: f.Items, Ranges: f.Ranges})
		}
	}
	slices.SortFunc(files, func(a, b manifest.File) int { return int(a.Seq) - int(b.Seq) })
	n.state.Files = files
	if err := s.Load(&n.state, false); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) AppendHeaded(fn func(put func(head, body []byte) (wal.LSN, error)) error) error {
	n.moment.RLock()
	defer n.moment.RUnlock()
	return fn(func(head, body []byte) (wal.LSN, error) {
		n.log = append(n.log, slices.Concat(head, body))
		return wal.LSN(len(n.log)), nil
	})
}

func (n *node) RefuseEvents(bucket uint64, c *account.Counts) (wal.LSN, error) {
	n.log = append(n.log, logrecord.AppendEventsRefused(nil, bucket, 1, c))
	n.account.Add(bucket, 1, c)
	return wal.LSN(len(n.log)), nil
}

// flush flushes, and gives up before the commit where fail is true.
func (n *node) flush(fail bool) {
	n.moment.Lock()
	n.s.Take(wal.LSN(len(n.log) + 1))
	n.moment.Unlock()
	var e manifest.FileChanges
	if err := n.s.WriteFile(n.takeNumber(), &e); err != nil {
		n.t.Fatal(err)
	}
	if fail {
		n.s.PutBack()
		return
	}
	n.commit(e)
	n.s.Committed()
}

func (n *node) commit(e manifest.FileChanges) {
	for _, name := range e.Remove {
		delete(n.files, name.Seq)
	}
	for _, f := range e.Add {
		n.files[f.Seq] = f
	}
	if e.EventAccount != nil {
		n.state.EventAccount, n.state.EventAccountLSN = e.EventAccount, e.EventAccountLSN
	}
}

func (n *node) merge() {
	if err := n.s.Merger.Merge(context.Background()); err != nil {
		n.t.Fatal(err)
	}
}

// replay reopens the store and replays the log from a position on.
func (n *node) replay(from int) {
	n.open()
	for i, rec := range n.log[from:] {
		r, err := logrecord.Parse(rec)
		if err != nil {
			n.t.Fatal(err)
		}
		if err := (Side{n.s}).Replay(wal.LSN(from+i+1), &r); err != nil {
			n.t.Fatal(err)
		}
	}
}

func (n *node) takeNumber() uint64 { n.number++; return n.number }

func (n *node) write(bucket string, list []Event) Written {
	w, err := n.s.Write(bucket, list)
	if err != nil {
		n.t.Fatal(err)
	}
	return w
}

func (n *node) read(bucket string, start, end int64) (list []Event, gaps []Gap) {
	return n.readBy(n.s.Read, bucket, start, end)
}

func (n *node) readBack(bucket string, start, end int64) (list []Event, gaps []Gap) {
	return n.readBy(n.s.ReadBack, bucket, start, end)
}

func (n *node) readBy(read func(context.Context, string, int64, int64, func(*Event) error) ([]Gap,
	error), bucket string, start, end int64) (list []Event, gaps []Gap) {
	gaps, err := read(context.Background(), bucket, start, end, func(e *Event) error {
		list = append(list, Event{Time: e.Time, ID: e.ID, Body: bytes.Clone(e.Body)})
		return nil
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return list, gaps
}

func same(a, b []Event) bool {
	return slices.EqualFunc(a, b, func(a, b Event) bool {
		return a.Time == b.Time && a.ID == b.ID && bytes.Equal(a.Body, b.Body)
	})
}

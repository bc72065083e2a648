package events

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/account"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/eventfile"
	"dalmatiner/internal/logrecord"
	"dalmatiner/internal/wal"
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
	log     [][]byte
	files   map[uint64]File
	number  uint64
	damage  []string
	pending int64
	full    bool
}

func newNode(t rapid.TB, infos ...buckets.Info) *node {
	n := &node{t: t, fs: vfs.NewMem(), buckets: make(map[string]buckets.Info), files: make(map[uint64]File)}
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
		FS: n.fs, Dir: "events", Logger: slog.New(slog.DiscardHandler), Now: func() int64 { return now },
		MaxFuture: time.Minute, MaxFile: 1 << 20, TakeNumber: func() uint64 { n.number++; return n.number },
		Bucket: func(name string) (buckets.Info, error) {
			b, ok := n.buckets[name]
			if !ok {
				return b, buckets.Unknown(name)
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
		Inside: func(fn func() error) error { return fn() }, Log: n, Account: n.account,
		Wait: func() {}, DiskFull: func() bool { return n.full }, Pending: func(d int64) { n.pending += d },
		Damage: func(what string, err error) { n.damage = append(n.damage, fmt.Sprintf("%s: %v", what, err)) },
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.s = s
	readers := make(map[uint64]*eventfile.Reader)
	var files []File
	for _, f := range n.files {
		files = append(files, f)
		r, _, err := eventfile.Open(n.fs, "events/"+Path(f.Number), f.Number)
		if err == nil {
			readers[f.Number] = r
		}
	}
	slices.SortFunc(files, func(a, b File) int { return int(a.Number) - int(b.Number) })
	s.Load(files, readers)
}

func (n *node) AppendEvents(head, body []byte, apply func(wal.LSN)) error {
	n.log = append(n.log, slices.Concat(head, body))
	apply(wal.LSN(len(n.log)))
	return nil
}

func (n *node) RefuseEvents(bucket uint64, c *account.Counts) (wal.LSN, error) {
	head, body := logrecord.AppendEvents(nil, bucket, 1, c, nil)
	return wal.LSN(len(n.log) + 1), n.AppendEvents(head, body, func(wal.LSN) { n.account.Add(bucket, 1, c) })
}

// flush flushes, and gives up before the commit where fail is true.
func (n *node) flush(fail bool) {
	f := n.s.Capture()
	n.number++
	file, err := f.Write(n.number, uint64(len(n.log)+1))
	if err != nil {
		n.t.Fatal(err)
	}
	if fail {
		if err := f.Abort(false); err != nil {
			n.t.Fatal(err)
		}
		return
	}
	if file != nil {
		n.files[file.Number] = *file
	}
	f.Publish()
}

func (n *node) merge() {
	err := n.s.Merge(func() bool { return false }, func(c Change) error {
		for _, number := range c.Remove {
			delete(n.files, number)
		}
		if c.Add != nil {
			n.files[c.Add.Number] = *c.Add
		}
		return nil
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

// replay reopens the store and replays the log from a position on.
func (n *node) replay(from int) {
	n.open()
	for _, rec := range n.log[from:] {
		r, err := logrecord.Parse(rec)
		if err != nil {
			n.t.Fatal(err)
		}
		if err := n.s.Replay(&r, false); err != nil {
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
	gaps, err := n.s.Read(context.Background(), bucket, start, end, func(e *Event) error {
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

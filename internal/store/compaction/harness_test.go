package compaction

import (
	"context"
	"encoding/binary"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// began is when the tests' clock starts: chunk 1000 of a bucket of one second.
const began = 1000 * chunk.Slots

// node is what a Compactor has around it: files, versions, a MANIFEST, and a head that holds what
// the test says.
type node struct {
	t   *testing.T
	fs  vfs.FS
	now time.Time
	c   *Compactor

	buckets []buckets.Info
	held    map[segment.Hash]bool // by the head
	gone    map[segment.Hash]bool // series that are not known any more
	dropped []metric.SeriesID
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, fs: vfs.NewMem(), now: time.Unix(began, 0), held: map[segment.Hash]bool{},
		gone:    map[segment.Hash]bool{},
		buckets: []buckets.Info{{ID: 1, Name: "b", Resolution: 1000, PPF: 1000}}}
	for _, dir := range []string{"flush", "window", "overlay", "lost+found"} {
		if err := n.fs.MkdirAll("/data/"+dir, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	m, _, _, err := manifest.Open(n.fs, "/data", origin.Directory{}, log)
	if err != nil {
		t.Fatal(err)
	}
	dir := version.NewDir(n.fs, "/data", segment.NewFiles(n.fs, 100, 0), log)
	dir.RaiseNumber(1)
	now := func() time.Time { return n.now }
	n.c = New(Options{
		Now: now, Clock: clock.New(now), Logger: log, Dir: dir, Versions: version.New(dir.Retire),
		Gate:     new(version.Gate),
		Manifest: m, Account: account.New(), Damage: &damage.Notes{Logger: log}, Buckets: n, Series: n,
		Commit: m.Commit, Failed: func() error {
			return nil
		}, Sync: func() error { return nil }, Needed: func() uint64 { return 1 << 60 },
		Unknown: func(context.Context, uint64, metric.SeriesID, int64, int64) (bool, error) {
			return false, nil
		},
		Yields: func(bool) bool { return false }, Free: func() (int64, bool) { return 0, false },
		MaxFile: DefaultMaxFile, Merged: func() {},
	})
	t.Cleanup(func() {
		for _, seg := range n.c.o.Versions.Close() {
			_ = seg.Reader.Close()
		}
		_ = m.Close()
	})
	return n
}

// Buckets returns those of the test.
func (n *node) Buckets() []buckets.Info { return append([]buckets.Info(nil), n.buckets...) }

// BucketByID returns one of them.
func (n *node) BucketByID(id uint64) (info buckets.Info, ok bool) {
	for _, b := range n.buckets {
		if b.ID == id {
			return b, true
		}
	}
	return info, false
}

// Known is true but for what is gone.
func (n *node) Known(id metric.SeriesID) bool { return !n.gone[segment.Hash(id)] }
func (n *node) Going(metric.SeriesID) bool    { return false }

// NamesUnread is false.
func (n *node) NamesUnread() bool { return false }

// Each gives nothing.
func (n *node) Each(uint64, func(metric.SeriesID) bool) {}

// Remembers is false.
func (n *node) Remembers(uint64, metric.SeriesID, uint64) bool { return false }

// Idle gives nothing.
func (n *node) Idle(uint64) []segment.Hash { return nil }

// Unheld returns those that the test's head does not hold.
func (n *node) Unheld(hashes []segment.Hash) (out []segment.Hash) {
	for _, h := range hashes {
		if !n.held[h] && !n.gone[h] {
			out = append(out, h)
		}
	}
	return out
}

// Drop notes what goes.
func (n *node) Drop(_ uint64, ids []metric.SeriesID) error {
	for _, id := range ids {
		n.gone[segment.Hash(id)] = true
	}
	n.dropped = append(n.dropped, ids...)
	return nil
}

// hashOf is the id of the i-th series.
func hashOf(i int) (h segment.Hash) {
	binary.BigEndian.PutUint64(h[:], uint64(i+1)<<40)
	return h
}

// flush adds a flush with the chunks of series, one word each, and their names.
func (n *node) flush(key func(i int) []byte, series int, chunks ...int64) *version.Segment {
	n.t.Helper()
	d := n.c.o.Dir
	seq := d.TakeNumber()
	m := manifest.Segment{Seq: seq, Kind: manifest.Flush, Generation: seq}
	w, err := d.Create(&m)
	if err != nil {
		n.t.Fatal(err)
	}
	w.Describe(int64(seq), 0, 0)
	w.AddBucket(n.buckets[0])
	var words [chunk.Slots]uint64
	var enc chunk.Encoder
	for i := range series {
		w.AddSeries(segment.Series{Bucket: 1, Hash: hashOf(i), Key: key(i), Since: 1})
		for _, number := range chunks {
			words[number%chunk.Slots] = point.FromInt(int64(i))
			if err := w.Add(1, hashOf(i), number, 1, enc.Append(nil, 0, words[:])); err != nil {
				n.t.Fatal(err)
			}
			words[number%chunk.Slots] = point.Unset
		}
	}
	for _, number := range chunks {
		m.Ranges = append(m.Ranges, manifest.Range{Bucket: 1, First: number, Past: number + 1})
	}
	seg, err := d.Finish(m, w)
	if err != nil {
		n.t.Fatal(err)
	}
	if err := n.c.o.Manifest.Commit(manifest.Edit{AddSegments: []manifest.Segment{seg.Meta},
		NextSeq: d.NextNumber()}); err != nil {
		n.t.Fatal(err)
	}
	n.c.o.Versions.Publish(func(v *version.Version) { v.Add(seg) })
	return seg
}

package test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/wire"
)

// TestListings: LIST, LIST_PREFIX and BUCKETS by the bytes.
func TestListings(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir())
	slot := past(time.Minute)
	keys := [][]byte{key(t, "my", "key"), key(t, "my", "kez"), key(t, "myth"), key(t, "yet")}
	for _, k := range keys {
		send(t, n, "listed", k, slot, point.FromInt(1))
	}
	for name, c := range map[string]struct {
		request wire.Request
		want    [][]byte
	}{
		"all metrics": {wire.Request{Op: wire.OpList, Bucket: []byte("listed")}, keys},
		"a whole part": {
			wire.Request{Op: wire.OpListPrefix, Bucket: []byte("listed"), Key: key(t, "my")}, keys[:2]},
		"bytes inside parts": {
			wire.Request{Op: wire.OpListPrefix, Bucket: []byte("listed"), Key: []byte("\x02my\x03ke")},
			keys[:2]},
		"nothing": {
			wire.Request{Op: wire.OpListPrefix, Bucket: []byte("listed"), Key: key(t, "m")}, nil},
		"buckets": {wire.Request{Op: wire.OpBuckets},
			[][]byte{[]byte("dalmatinerdb"), []byte("listed")}},
	} {
		s := n.socket()
		s.ask(payload(t, c.request))
		names := s.names()
		if len(names) != len(c.want) {
			t.Errorf("%s: %q", name, names)
		}
		for _, w := range c.want {
			if !slices.Contains(names, string(w)) {
				t.Errorf("%s: %q lacks %q", name, names, w)
			}
		}
	}
}

// TestBucketLife: a bucket is created, changed and deleted over the wire, and
// its name used again; nothing of the old one ever comes back.
func TestBucketLife(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	n := startNode(t, dir)
	c := n.dial()
	want := wire.Info{Resolution: 2000, PointsPerFile: 1800, TTL: 900_000}
	if got, err := c.AddBucket(ctx, "life", want.Resolution, want.PointsPerFile,
		want.TTL); err != nil || got != want {
		t.Fatalf("created %+v: %v", got, err)
	}
	s := n.socket()
	s.ask(payload(t, wire.Request{Op: wire.OpInfo, Bucket: []byte("life")}))
	if got, raw := s.reply(),
		unhex(t, "00000000000007d0 0000000000000708 0000000000000000 00 00000000000dbba0"); !bytes.Equal(
		got, raw) {
		t.Errorf("info is %x, want %x", got, raw)
	}
	want.TTL = 100
	if got, err := c.SetTTL(ctx, "life", 100); err != nil || got != want {
		t.Fatalf("after the change %+v: %v", got, err)
	}
	// A slot is two seconds here: young is inside the TTL of 100, old is not.
	metric, young, old := key(t, "m"), past(0)/2-10, past(0)/2-1000
	send(t, n, "life", metric, young, point.FromInt(1))
	st := openAcked(t, n, "life")
	st.point(metric, old, point.FromInt(1))
	if ack := st.flush(); ack.Received != 1 || ack.Refused != 1 {
		t.Errorf("a point beyond the TTL is answered with %+v", ack)
	}
	if row := n.account("life"); row.Refused["expired"] != 1 || row.Accepted != 1 {
		t.Errorf("the account says %+v", row)
	}
	n.stop()
	n = startNode(t, dir)
	c = n.dial()
	if got, err := c.Info(ctx, "life"); err != nil || got != want {
		t.Fatalf("after a restart %+v: %v", got, err)
	}
	deleteAndReuse(t, n, dir, metric, young)
}

// deleteAndReuse deletes bucket life, restarts in both ways, and makes another
// of the same name.
func deleteAndReuse(t *testing.T, n *node, dir string, metric []byte, slot int64) {
	ctx := context.Background()
	if err := n.dial().DeleteBucket(ctx, "life"); err != nil {
		t.Fatal(err)
	}
	gone := func() {
		t.Helper()
		c := n.dial()
		if names, err := c.Buckets(ctx); err != nil || slices.Contains(names, "life") {
			t.Fatalf("buckets are %q: %v", names, err)
		}
		if words, err := c.Get(ctx, "life", metric, slot, 1); err == nil {
			t.Fatalf("a deleted bucket answers with %x", words)
		}
	}
	gone()
	n.kill()
	n = startNode(t, dir)
	gone()
	if _, err := n.dial().AddBucket(ctx, "life", 2000, 1800, 0); err != nil {
		t.Fatal(err)
	}
	empty := func() {
		t.Helper()
		c := n.dial()
		names, err := c.List(ctx, "life")
		if err != nil || len(names) != 0 {
			t.Fatalf("the new bucket holds %q: %v", names, err)
		}
		if words := get(t, c, "life", metric, slot-1000, 1100); slices.ContainsFunc(words,
			func(w uint64) bool {
				return w != 0
			}) {
			t.Fatal("the new bucket shows points of the old one")
		}
	}
	empty()
	n.stop()
	n = startNode(t, dir)
	empty()
	send(t, n, "life", metric, slot, point.FromInt(2))
	if words := get(t, n.dial(), "life", metric, slot, 1); words[0] != point.FromInt(2) {
		t.Errorf("the new bucket's point is %x", words)
	}
}

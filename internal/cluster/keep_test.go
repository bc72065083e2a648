package cluster

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/host/durable"
)

// A directory keeps its id. One whose file is damaged in any way is refused, with what to do.
func TestIdentity(t *testing.T) {
	fs := vfs.NewMem()
	id, err := identity(fs, "")
	if err != nil || id == (ring.ID{}) {
		t.Fatal(id, err)
	}
	if again, err := identity(fs, ""); err != nil || again != id {
		t.Fatalf("%s, then %s, %v", id, again, err)
	}
	text, err := durable.ReadFile(fs, idFile)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		for _, damaged := range [][]byte{
			text[:i], append(append(bytes.Clone(text[:i]), text[i]^1), text[i+1:]...)} {
			if err := durable.WriteFile(fs, "", idFile, damaged); err != nil {
				t.Fatal(err)
			}
			if got, err := identity(fs, ""); err == nil || !strings.Contains(err.Error(), "backup") {
				t.Fatalf("%q is taken for %s, %v", damaged, got, err)
			}
		}
	}
}

// drawBuckets draws what a node may know.
func drawBuckets(t *rapid.T) *replication.Buckets {
	b := replication.NewBuckets()
	name := rapid.SampledFrom([]string{"a", "b", "c"})
	clock := rapid.Uint64Range(1, 9)
	for range rapid.IntRange(0, 8).Draw(t, "changes") {
		if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
			b.Delete(name.Draw(t, "name"), clock.Draw(t, "clock"))
			continue
		}
		b.Create(replication.Bucket{Name: name.Draw(t, "name"),
			Resolution: rapid.Int64Range(1, 3).Draw(t, "resolution"),
			Timestamps: rapid.Bool().Draw(t, "hpts"),
			Lifetime:   rapid.Int64Range(0, 2).Draw(t, "ttl"), PPF: rapid.Int64Range(1, 2).Draw(t, "ppf"),
			Grace: rapid.Int64Range(0, 1).Draw(t, "grace"), Copies: rapid.IntRange(0, 3).Draw(t, "n")},
			clock.Draw(t, "clock"))
		if all := b.All(); rapid.Bool().Draw(t, "quorum") && len(all) > 0 {
			b.SetQuorum(all[0].ID(), rapid.IntRange(0, 15).Draw(t, "r"), rapid.IntRange(0, 15).Draw(t, "w"),
				clock.Draw(t, "clock"))
		}
	}
	return b
}

// What is known survives its encoding, and encodings merge to the same in any order.
func TestBucketsOnTheWire(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := drawBuckets(rt), drawBuckets(rt)
		ea, eb := appendBuckets(nil, a), appendBuckets(nil, b)
		back, err := parseBuckets(ea)
		if err != nil || !bytes.Equal(appendBuckets(nil, back), ea) {
			rt.Fatalf("%v is read as %v, %v", a, back, err)
		}
		ab, err := mergeBuckets(ea, eb)
		if err != nil {
			rt.Fatal(err)
		}
		ba, err := mergeBuckets(eb, ea)
		if err != nil || !bytes.Equal(ab, ba) {
			rt.Fatalf("%v and %v merge to %x and %x, %v", a, b, ab, ba, err)
		}
		a.Merge(b)
		if !bytes.Equal(appendBuckets(nil, a), ab) {
			rt.Fatal("encodings merge to something else than what they stand for")
		}
	})
}

// No bytes are taken of which others would make something else.
func FuzzParseBuckets(f *testing.F) {
	b := replication.NewBuckets()
	b.Delete("x", 3)
	b.Create(replication.Bucket{Name: "x", Resolution: 1000, PPF: 1}, 7)
	f.Add(appendBuckets(nil, b))
	f.Add(appendBuckets(nil, replication.NewBuckets()))
	f.Fuzz(func(t *testing.T, src []byte) {
		got, err := parseBuckets(src)
		if err == nil && !bytes.Equal(appendBuckets(nil, got), src) {
			// Numbers may be written longer than they need to be; what they say is the same.
			again, err := parseBuckets(appendBuckets(nil, got))
			if err != nil || len(again.All()) != len(got.All()) {
				t.Fatalf("%x is taken for %v, which is read as %v, %v", src, got, again, err)
			}
		}
	})
}

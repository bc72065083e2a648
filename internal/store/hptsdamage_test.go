package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/segment"
)

// Where damage takes the stamps of a segment, its values are served with the
// begin of their slots, never with stamps of an older segment; where it takes
// the values, the stamps are not served. The damage is named.
func TestDamageNeverMixesPairs(t *testing.T) {
	for _, bit := range []bool{false, true} {
		clock := newTestClock()
		o := testOptions(vfs.NewMem(), clock)
		s := mustOpen(t, o)
		info := stampedBucket(t, s)
		id := s.buckets.id(info.ID).seriesID(key(0))
		if bit {
			id = id.Stamp()
		}
		var file string
		for round := range uint64(2) { // the second corrects the first, and is damaged
			x := mustSession(t, s, "b")
			r := rand.New(rand.NewPCG(round, 1))
			for slot := uint64(epoch); slot < epoch+700; slot++ {
				for k := range 8 { // random bits, so that a chunk fills a block
					x.Stamped(key(k), slot, r.Uint64()|1<<63, slot*second+r.Uint64N(1<<54))
				}
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			f, err := s.Flush(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			file = f.Segment
		}
		before := readPairsOf(t, s, info)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		damageChunk(t, o.FS, "/data/"+file, info.ID, segment.Hash(id))
		s = mustOpen(t, o)
		after := readPairsOf(t, s, info)
		lost := 0
		for i, p := range after {
			slot := uint64(epoch + i)
			switch {
			case p == before[i]:
			case bit && p == [2]uint64{before[i][0], slot * second}:
				lost++
			case !bit && p == first(t)[i]:
				lost++
			default:
				t.Fatalf("slot %d holds %x, was %x", i, p, before[i])
			}
		}
		if names, _ := s.Damage(); lost == 0 || len(names) == 0 {
			t.Errorf("%d slots are affected, damage %v", lost, names)
		}
		s.Crash()
	}
}

// first returns what the first round of TestDamageNeverMixesPairs sent to the
// first series.
func first(t *testing.T) (pairs [700][2]uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(0, 1))
	for i := range pairs {
		for k := range 8 {
			w, stamp := r.Uint64()|1<<63, uint64(epoch+i)*second+r.Uint64N(1<<54)
			if k == 0 {
				pairs[i] = [2]uint64{w, stamp}
			}
		}
	}
	return pairs
}

func readPairsOf(t *testing.T, s *Store, info BucketInfo) (pairs [700][2]uint64) {
	t.Helper()
	values, stamps := make([]uint64, len(pairs)), make([]uint64, len(pairs))
	if err := s.ReadStamped(context.Background(), info, key(0), epoch, values, stamps); err != nil {
		t.Fatal(err)
	}
	for i := range pairs {
		pairs[i] = [2]uint64{values[i], stamps[i]}
	}
	return pairs
}

// damageChunk flips a bit in the middle of the first chunk of a series.
func damageChunk(t *testing.T, fs vfs.FS, path string, bucket uint64, h segment.Hash) {
	t.Helper()
	r, err := segment.Open(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	var chunk []byte
	if err := r.Chunks(bucket, h, 0, 1<<40, func(_ int64, data []byte) error {
		chunk = bytes.Clone(data)
		return nil
	}); err != nil || chunk == nil {
		t.Fatalf("the series has no chunk: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(all, chunk)
	if at < 0 {
		t.Fatal("the chunk is not in the file")
	}
	flipBit(t, fs, path, int64(at+len(chunk)/2)*8)
}

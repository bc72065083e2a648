package window

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/point"
	"dalmatiner/internal/segment"
)

const testSeries = 5

// points are slots of series; the last write of a slot wins.
type points map[[2]int64]uint64

// writeSegment makes a segment of points, chunk by chunk.
func writeSegment(t *rapid.T, fs vfs.FS, name string, p points) *segment.Reader {
	t.Helper()
	w, err := segment.Create(fs, name)
	if err != nil {
		t.Fatal(err)
	}
	var enc chunk.Encoder
	for series := range int64(testSeries) {
		for number := range int64(4) {
			var words [chunk.Slots]uint64
			n := 0
			for slot := range int64(chunk.Slots) {
				if v := p[[2]int64{series, number*chunk.Slots + slot}]; v != 0 {
					words[slot] = v
					n++
				}
			}
			if n > 0 {
				if err := w.Add(1, hash(series), number, n, enc.Append(nil, 0, words[:])); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	r, err := segment.Open(fs, name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func hash(series int64) segment.Hash {
	var h segment.Hash
	binary.BigEndian.PutUint64(h[:], uint64(series+1)*0x9e3779b97f4a7c15)
	return h
}

// merged returns the merge of sources as one run of bytes, and its points.
func merged(t *rapid.T, sources []Source, first, past int64) (encoded []byte, p points) {
	t.Helper()
	var m Merger
	p = make(points)
	damaged, err := m.Merge(context.Background(), 1, first, past, sources, func(h segment.Hash, number int64, n int, data []byte) error {
		encoded = fmt.Appendf(encoded, "%s %d %d ", h, number, n)
		encoded = append(encoded, data...)
		var words [chunk.Slots]uint64
		if err := chunk.DecodeRange(words[:], data, 0); err != nil {
			return err
		}
		for series := range int64(testSeries) {
			for slot, w := range words {
				if hash(series) == h && w != 0 {
					p[[2]int64{series, number*chunk.Slots + int64(slot)}] = w
					n--
				}
			}
		}
		if n != 0 {
			return fmt.Errorf("chunk %d of %s: the count is %d off", number, h, n)
		}
		return nil
	})
	if err != nil || damaged != nil {
		t.Fatal(err, damaged)
	}
	return encoded, p
}

// Equal points give equal bytes, however they came: in one segment, or cut
// into segments at random with stale values in the older ones.
func TestMergeDependsOnThePointsOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		fs := vfs.NewMem()
		truth := make(points)
		parts := make([]points, rapid.IntRange(1, 6).Draw(t, "segments"))
		for i := range parts {
			parts[i] = make(points)
		}
		for range r.IntN(3000) {
			at := [2]int64{r.Int64N(testSeries), r.Int64N(4 * chunk.Slots)}
			for i := r.IntN(len(parts)); i < len(parts); i += 1 + r.IntN(3) { // rewritten later
				parts[i][at] = point.FromInt(r.Int64N(50))
			}
		}
		for _, p := range parts {
			maps.Copy(truth, p)
		}
		var sources []Source
		for i, p := range parts {
			reader := writeSegment(t, fs, fmt.Sprintf("%d.seg", i), p)
			defer func() { _ = reader.Close() }()
			sources = append(sources, Source{Seq: uint64(i), Generation: uint64(i), Reader: reader})
		}
		r.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
		first, past := r.Int64N(3), 1+r.Int64N(4)
		got, gotPoints := merged(t, sources, first, past)
		one := writeSegment(t, fs, "truth.seg", truth)
		defer func() { _ = one.Close() }()
		want, _ := merged(t, []Source{{Reader: one}}, first, past)
		if !bytes.Equal(got, want) {
			t.Fatalf("%d segments merge to %d bytes, one to %d", len(parts), len(got), len(want))
		}
		for at, v := range truth {
			if n := at[1] / chunk.Slots; n >= first && n < past && gotPoints[at] != v {
				t.Fatalf("series %d slot %d holds %x, want %x", at[0], at[1], gotPoints[at], v)
			}
		}
	})
}

package window

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/store/recompute"
	"dalmatiner/internal/testkit/filetest"
)

const testSeries = 5

// points are slots of series; the last value of a slot wins, over any stale marker.
type points map[[2]int64]uint64

// encode is how a chunk of a segment is written.
type encode func(words []uint64) []byte

// encodeWhole encodes a chunk as the head does when it has all of it.
func encodeWhole(words []uint64) []byte {
	var enc chunk.Encoder
	return enc.Append(nil, 0, words)
}

// dense encodes a chunk as a merge does.
func dense(words []uint64) []byte {
	var enc chunk.Encoder
	return enc.AppendDense(nil, 0, words)
}

// encodeListed encodes a chunk as a list of pieces where that is possible.
func encodeListed(words []uint64) []byte {
	var enc chunk.Encoder
	var pieces [][]byte
	for at := 0; at < len(words); at += chunk.Lane {
		if p := enc.Append(nil, at, words[at:at+chunk.Lane]); len(p) > 0 {
			pieces = append(pieces, p)
		}
	}
	if data, _, err := chunk.AppendMultiPart(nil, pieces); err == nil {
		return data
	}
	return encodeWhole(words)
}

// writeSegment makes a segment of points, chunk by chunk.
func writeSegment(t *rapid.T, fs vfs.FS, name string, p points, form encode) *segment.Reader {
	t.Helper()
	w, err := segment.Create(fs, name)
	if err != nil {
		t.Fatal(err)
	}
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
				if err := w.Add(1, hash(series), number, n, form(words[:])); err != nil {
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

// runMerge returns the merge of sources as one run of bytes, with the file of a
// window that it makes, and its points.
func runMerge(t *rapid.T, sources []Source, window Range, first, past int64) (encoded []byte,
	p points) {
	t.Helper()
	var m Merger
	p = make(points)
	fs := vfs.NewMem()
	w, err := segment.Create(fs, "merged")
	if err != nil {
		t.Fatal(err)
	}
	w.Describe(1, window.First, uint32(window.Past-window.First))
	rollups := NewRollups(window)
	rollups.few = 1 // these series have 4 chunks
	damaged, err := m.Merge(context.Background(), 1, first, past, sources, func(c *Chunk) error {
		h, number, data := c.Hash, c.Number, c.Data
		if _, err := rollups.Add(w, h, number, &c.Header, c.Digest); err != nil {
			return err
		}
		n := c.Points
		if err := w.Add(1, h, number, n, data); err != nil {
			return err
		}
		if chunk.IsMultiPart(data) {
			return fmt.Errorf("chunk %d of %s was not encoded again", number, h)
		}
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
	if _, err := rollups.Flush(w); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	p.checkRollups(t, fs, window)
	return append(encoded, filetest.Read(t, fs, "merged")...), p
}

// checkRollups compares the rollups of a file with the points (I4). The values of
// these tests have so few bits that sums are exact in any order.
func (p points) checkRollups(t *rapid.T, fs vfs.FS, window Range) {
	t.Helper()
	r, err := segment.Open(fs, "merged")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for series := range int64(testSeries) {
		for _, l := range []segment.Rollup{segment.Small, segment.Large} {
			var got [segment.MaxSpans]chunk.Header
			spans, _, err := r.Rollups(l, 1, hash(series), &got)
			if err != nil {
				t.Fatal(err)
			}
			var digests [segment.MaxSpans]uint64
			if again, _, err := r.RollupDigests(l, 1, hash(series), &digests); err != nil || again != spans {
				t.Fatal(again, spans, err)
			}
			slots := l.Chunks() * chunk.Slots
			for i := range (window.Past - window.First) / l.Chunks() {
				want := p.header(series, window.First*chunk.Slots+i*slots, slots)
				digest := p.digest(series, window.First+i*l.Chunks(), l.Chunks())
				if present := spans>>i&1 != 0; present != (digest != 0) || present && got[i] != want {
					t.Fatalf("rollup %d of series %d, unit %d: %t %+v, want %+v", l, series, i, present, got[i],
						want)
				}
				if digest != digests[i] {
					t.Fatalf("rollup %d of series %d, unit %d: digest %x, want %x", l, series, i, digests[i],
						digest)
				}
			}
		}
	}
}

// digest is the sum over chunks, whose digests are made slot by slot.
func (p points) digest(series, first, chunks int64) (sum uint64) {
	for number := first; number < first+min(chunks, Small); number++ { // as for header
		var d uint64
		for slot := range chunk.Slots {
			w := p[[2]int64{series, number*chunk.Slots + int64(slot)}]
			d += chunk.DigestWords([]uint64{w}, slot)
		}
		sum += chunk.NumberedDigest(number, d)
	}
	return sum
}

// header is the aggregate of a range of slots, one by one.
func (p points) header(series, from, slots int64) (h chunk.Header) {
	var floats recompute.Float
	for i := range int(min(slots, Small*chunk.Slots)) { // these tests have no points behind them
		w := p[[2]int64{series, from + int64(i)}]
		if w <= point.Stale {
			continue
		}
		if h.Count == 0 {
			h.FirstOff, h.First, h.Last, h.Min, h.Max, h.Rises = i, w, w, w, w, true
		}
		h.Rises = h.Rises && !chunk.Less(w, h.Last)
		h.Count++
		h.LastOff, h.Last = i, w
		one := chunk.Summarize([]uint64{w}, 0)
		h.Sum.AddInts(one.Sum)
		floats.Add(one.Sum.Float)
		if chunk.Less(w, h.Min) {
			h.Min = w
		}
		if chunk.Less(h.Max, w) {
			h.Max = w
		}
	}
	h.Sum.Float = floats.Rounded()
	return h
}

// Equal points give equal bytes, however they came: in one segment, or cut
// into segments at random with stale values in the older ones, encoded as a
// whole or as a list of pieces.
func TestMergeDependsOnThePointsOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		forms := []encode{encodeWhole, encodeListed}
		fs := vfs.NewMem()
		truth := make(points)
		parts := make([]points, rapid.IntRange(1, 6).Draw(t, "segments"))
		for i := range parts {
			parts[i] = make(points)
		}
		markers := make([]int, testSeries) // of 100
		for i := range markers {
			markers[i] = []int{0, 0, 10, 100}[r.IntN(4)]
		}
		for range r.IntN(3000) {
			at := [2]int64{r.Int64N(testSeries), r.Int64N(4 * chunk.Slots)}
			for i := r.IntN(len(parts)); i < len(parts); i += 1 + r.IntN(3) { // rewritten later
				if parts[i][at] = value(r); r.IntN(100) < markers[at[0]] {
					parts[i][at] = point.Stale
				}
			}
		}
		for _, p := range parts {
			for at, w := range p {
				truth[at] = point.Overwrite(w, truth[at])
			}
		}
		var sources []Source
		for i, p := range parts {
			// Of two of one generation the window lies over the other.
			form, window := forms[r.IntN(2)], i%2 == 1
			if window {
				form = dense
			}
			reader := writeSegment(t, fs, fmt.Sprintf("%d.seg", i), p, form)
			defer func() { _ = reader.Close() }()
			sources = append(sources, Source{Seq: uint64(i), Generation: uint64(i / 2), Window: window,
				Reader: reader})
		}
		r.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
		first, past := r.Int64N(3), 1+r.Int64N(4)
		window := Range{Bucket: 1, Past: rapid.SampledFrom([]int64{Small, Large}).Draw(t, "window")}
		got, gotPoints := runMerge(t, sources, window, first, past)
		one := writeSegment(t, fs, "truth.seg", truth, encodeWhole)
		defer func() { _ = one.Close() }()
		want, _ := runMerge(t, []Source{{Reader: one}}, window, first, past)
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

// Merges and readers lay segments over each other in one order.
func TestOrderIsThatOfTheMerge(t *testing.T) {
	kinds := []manifest.Kind{manifest.Flush, manifest.Overlay, manifest.Window}
	for _, a := range kinds {
		for _, b := range kinds {
			for _, g := range []uint64{1, 2, 3} {
				x, y := manifest.Segment{Kind: a, Generation: 2}, manifest.Segment{Kind: b, Generation: g}
				want := 0
				switch {
				case g < 2 || g == 2 && a == manifest.Window && b != manifest.Window:
					want = 1
				case g > 2 || b == manifest.Window && a != manifest.Window:
					want = -1
				}
				if got := Order(x, y); got != want {
					t.Errorf("kind %d generation 2 and kind %d generation %d: %d, want %d", a, b, g, got, want)
				}
			}
		}
	}
}

// value is an integer, or now and then a float.
func value(r *rand.Rand) uint64 {
	if r.IntN(500) == 0 {
		return point.FromFloat(float64(r.Int64N(1<<38)) / (1 << 20))
	}
	return point.FromInt(r.Int64N(50))
}

// A list of pieces is encoded as a whole even where no other source holds the
// chunk; anything else is copied.
func TestMergeEncodesALoneMultiPartChunk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := vfs.NewMem()
		p := make(points)
		lanes := rapid.IntRange(2, chunk.Slots/chunk.Lane).Draw(t, "lanes")
		for slot := range int64(lanes * chunk.Lane) {
			p[[2]int64{0, slot}] = point.FromInt(rapid.Int64Range(0, 9).Draw(t, "value"))
		}
		var got [2][]byte
		for i, form := range []encode{encodeWhole, encodeListed} {
			r := writeSegment(t, fs, fmt.Sprintf("%d.seg", i), p, form)
			got[i], _ = runMerge(t, []Source{{Reader: r}}, Range{Bucket: 1, Past: Small}, 0, 4)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got[0], got[1]) {
			t.Fatalf("%d lanes: %d bytes from a whole, %d from a list", lanes, len(got[0]), len(got[1]))
		}
	})
}

package window

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/segment"
)

// layer is a source, or a hole, of one slot for the model.
type layer struct {
	at   hole.Position
	hole bool
	file uint64 // that made the hole
	word uint64
}

// pile is the model: what is left of a slot, and how many points holes took, by their file.
func pile(layers []layer, hidden map[uint64]uint64) (word uint64) {
	slices.SortStableFunc(layers, func(a, b layer) int {
		if c := a.at.Compare(b.at); c != 0 || a.hole == b.hole {
			return c
		}
		if a.hole { // a source at the position of a hole lies over it
			return -1
		}
		return 1
	})
	for _, l := range layers {
		switch {
		case l.hole && word != 0:
			hidden[l.file]++
			word = 0
		case !l.hole && l.word != 0:
			word = l.word
		}
	}
	return word
}

func randomPosition(r *rand.Rand) hole.Position {
	return hole.Position{Generation: 1 + r.Uint64N(3), Window: r.IntN(2) == 0}
}

// randomPoints sets runs of slots in the first chunks of some series.
func randomPoints(r *rand.Rand, value *int64) points {
	p := points{}
	for range 1 + r.IntN(6) {
		series, from := r.Int64N(testSeries), r.Int64N(2*chunk.Slots-200)
		for slot := from; slot < from+1+r.Int64N(200); slot++ {
			*value++
			p[[2]int64{series, slot}] = point.FromInt(*value)
		}
	}
	return p
}

// TestMergesUnderHoles: of what lies below a hole nothing is in the output, of what lies
// above it all, slot by slot; of two sources of a generation the window wins, in whatever
// order they are given; what was left out is counted, once, under the file that was lost.
func TestMergesUnderHoles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		value := int64(0)
		var sources []Source
		var held []points
		used := map[hole.Position]bool{}
		for n := range 1 + r.IntN(4) {
			at := randomPosition(r)
			if used[at] {
				continue
			}
			used[at] = true
			p, form := randomPoints(r, &value), encodeWhole
			if r.IntN(3) == 0 {
				form = encodeListed
			}
			held = append(held, p)
			sources = append(sources, Source{Seq: uint64(n + 1), Generation: at.Generation,
				Window: at.Window, Reader: writeSegment(t, vfs.NewMem(), "s", p, form)})
		}
		defer func() {
			for _, s := range sources {
				_ = s.Reader.Close()
			}
		}()
		var holes []hole.Hole
		for range r.IntN(4) {
			p, from := hole.PrefixOf(hash(r.Int64N(testSeries))), r.Int64N(2*chunk.Slots)
			holes = append(holes, hole.Hole{Bucket: 1, Low: p, High: p, From: from, Past: from + 1 +
				r.Int64N(900), At: randomPosition(r),
				Cause: []hole.Cause{hole.Block, hole.File, hole.LogRecord}[r.IntN(3)], Source: 70})
		}
		holes = hole.Join(holes)
		m := Merger{Holes: hole.NewSet(1, holes)}
		got := points{}
		damaged, err := m.Merge(context.Background(), 1, 0, 4, sources, func(c *Chunk) error {
			var words [chunk.Slots]uint64
			if err := chunk.DecodeRange(words[:], c.Data, 0); err != nil {
				return err
			}
			if c.Digest != chunk.DigestWords(words[:], 0) {
				return errors.New("the digest is that of other words")
			}
			for series := range int64(testSeries) {
				for slot, w := range words {
					if hash(series) == c.Hash && w != 0 {
						got[[2]int64{series, c.Number*chunk.Slots + int64(slot)}] = w
					}
				}
			}
			return nil
		})
		if err != nil || damaged != nil || len(m.Lost.Holes) > 0 {
			t.Fatal(damaged, err, m.Lost.Holes)
		}
		checkPile(t, &m, sources, held, holes, got)
	})
}

func checkPile(t *rapid.T, m *Merger, sources []Source, held []points, holes []hole.Hole,
	got points) {
	hidden := map[uint64]uint64{}
	for series := range int64(testSeries) {
		for slot := range int64(3 * chunk.Slots) {
			var layers []layer
			for i := range sources {
				layers = append(layers, layer{at: sources[i].position(), word: held[i][[2]int64{series, slot}]})
			}
			for _, h := range holes {
				if h.Low == hole.PrefixOf(hash(series)) && h.From <= slot && slot < h.Past {
					l := layer{at: h.At, hole: true}
					if h.Cause == hole.File {
						l.file = h.Source
					}
					layers = append(layers, l)
				}
			}
			if want := pile(layers, hidden); got[[2]int64{series, slot}] != want {
				t.Fatalf("series %d slot %d is %d, want %d: %+v", series, slot,
					point.Int(got[[2]int64{series, slot}]), point.Int(want), layers)
			}
		}
	}
	total, want := uint64(0), uint64(0)
	for _, n := range m.Lost.Hidden {
		total += n
	}
	for _, n := range hidden {
		want += n
	}
	// Of holes at one position it is not said which one takes a point.
	if total != want || (total > 0) != (len(m.Lost.Covered) > 0) {
		t.Fatalf("%v points are hidden, of %v, want %v", m.Lost.Hidden, m.Lost.Covered, hidden)
	}
}

// junk is a chunk that no encoder makes.
func junk(words []uint64) []byte { return append(encodeWhole(words), 0x5a) }

// TestAChunkThatDoesNotDecodeInAMerge: where it was marked, nothing that lies below it is in
// the output, and a hole at its position says so; else it is a gap over what lies below.
// Of a source the first maxBad of them are named.
func TestAChunkThatDoesNotDecodeInAMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		older, newer := points{}, points{}
		for series := range int64(testSeries) {
			for number := range int64(4) {
				older[[2]int64{series, number*chunk.Slots + 3}] = point.FromInt(1)
				newer[[2]int64{series, number*chunk.Slots + 5}] = point.FromInt(2)
			}
		}
		marked := r.Int64N(testSeries)
		p := hole.PrefixOf(hash(marked))
		marks := hole.MarksOf([]hole.Mark{{Bucket: 1, First: 1, Past: 3, Low: p, High: p}})
		sources := []Source{
			{Seq: 2, Generation: 2, Reader: writeSegment(t, vfs.NewMem(), "new", newer, junk), Marks: marks},
			{Seq: 1, Generation: 1, Reader: writeSegment(t, vfs.NewMem(), "old", older, encodeWhole)},
		}
		defer func() { _, _ = sources[0].Reader.Close(), sources[1].Reader.Close() }()
		var m Merger
		out := map[segment.Hash]map[int64]int{}
		damaged, err := m.Merge(context.Background(), 1, 0, 4, sources, func(c *Chunk) error {
			if out[c.Hash] == nil {
				out[c.Hash] = map[int64]int{}
			}
			out[c.Hash][c.Number] = c.Header.Count
			return nil
		})
		if err != nil || len(damaged) != 1 || len(segment.Damages(damaged[2])) != maxBad {
			t.Fatalf("%d chunks of %d are named: %v, %v", len(segment.Damages(damaged[2])), 4*testSeries,
				damaged, err)
		}
		for series := range int64(testSeries) {
			for number := range int64(4) {
				want := 1
				if series == marked && 1 <= number && number < 3 {
					want = 0
				}
				if n := out[hash(series)][number]; n != want {
					t.Fatalf("chunk %d of series %d, of which %d is marked, has %d points, want %d", number,
						series, marked, n, want)
				}
			}
		}
		want := []hole.Hole{
			{Bucket: 1, Low: p, High: p, From: chunk.Slots, Past: 3 * chunk.Slots,
				At: hole.Position{Generation: 2}, Cause: hole.Block, Source: 2}}
		if !slices.Equal(m.Lost.Holes, want) || m.Lost.Hidden[0] != 2 || !m.Lost.Covered[1] ||
			m.Lost.Covered[2] {
			t.Fatalf("%+v, want holes %v", m.Lost, want)
		}
	})
}

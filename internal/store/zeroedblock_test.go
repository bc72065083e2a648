package store

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
)

// wideSeries is enough for every kind of block of a segment to be there several times.
const wideSeries = 600

// zeroedBytes is how much of a file is zeroed at a time.
const zeroedBytes = 1 << 10

// wideWorld has so many series of a few slots that 1 KiB is a part of each kind of data in each
// file. Its files are a window with rollups, a flush that writes over a chunk of every other
// series, and a flush that deletes each third. The last one has the tombstones, and some of these
// series begin anew in it.
type wideWorld struct {
	*holeLayers
	bucket uint64
	files  []wideFile // the oldest first
	hashes map[segment.Hash]int
	slots  []map[int64][]uint64 // by layer and series: what is read of words, 0 where there is none
}

// wideFile is a segment and what it holds.
type wideFile struct {
	meta   manifest.Segment
	data   []byte
	chunks []wideChunk         // in the order of the index
	leaves map[int64][]wideKey // what a leaf of the index holds
}

type wideChunk struct {
	hash     segment.Hash
	number   int64
	from, to int64 // its block in the file
}

const (
	firstChunk  = epoch / chunk.Slots                                 // that the tests read
	windowChunk = firstChunk - firstChunk%segment.FewChunks           // of the window that it lies in
	wideSlots   = (windowChunk+segment.FewChunks)*chunk.Slots - epoch // to the end of that window
)

// deleted reports whether a series was deleted before the last flush, again whether that
// has points of it.
func deleted(i int) bool { return i%3 == 0 }
func again(i int) bool   { return i%6 == 0 || i%5 == 0 }

func newWideWorld(t *testing.T) *wideWorld {
	w := &wideWorld{holeLayers: newHoleLayers(t), hashes: make(map[segment.Hash]int)}
	w.write(func(i int) []int64 {
		if i%2 == 1 {
			return []int64{5, chunk.Slots + 9}
		}
		slots := []int64{5} // and in every other chunk of the window, for rollups
		for number := range int64(segment.FewChunks) {
			if number += windowChunk; number != firstChunk {
				slots = append(slots, (number-firstChunk)*chunk.Slots+9)
			}
		}
		return slots
	})
	w.merge()
	w.write(func(i int) []int64 {
		if i%2 == 0 {
			return []int64{5, 6}
		}
		return nil
	})
	b := w.s.buckets.Get("b")
	w.bucket = b.ID
	for i := range wideSeries {
		if i == holeSeries {
			continue // that of merges
		}
		w.hashes[segment.Hash(b.SeriesID(key(i)))] = i
		if deleted(i) {
			if _, err := w.s.DeleteSeries(t.Context(), "b", deletion.Choice{Key: key(i)},
				false); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.write(func(i int) []int64 {
		if again(i) {
			return []int64{6, 7}
		}
		return nil
	})
	for _, seg := range w.s.versions.Latest().Segments {
		w.addFile(seg.Meta)
	}
	w.s.Crash()
	return w
}

// write writes and flushes a layer.
func (w *wideWorld) write(slots func(i int) []int64) {
	w.t.Helper()
	x, layer := mustSession(w.t, w.s, "b"), make(map[[2]int64]uint64)
	for i := range wideSeries {
		if i == holeSeries {
			continue
		}
		for _, slot := range slots(i) {
			v := point.FromInt(int64(len(w.words)*wideSeries+i)*1000 + slot)
			layer[[2]int64{int64(i), slot}] = v
			x.Point(key(i), uint64(epoch+slot), v)
		}
	}
	if err := x.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.words = append(w.words, layer)
	table := make(map[int64][]uint64)
	for at, v := range layer {
		if table[at[0]] == nil {
			table[at[0]] = make([]uint64, wideSlots)
		}
		if at[1] >= 0 && at[1] < wideSlots {
			table[at[0]][at[1]] = v
		}
	}
	w.slots = append(w.slots, table)
	mustFlush(w.t, w.s)
}

// addFile reads where the chunks of a whole segment lie.
func (w *wideWorld) addFile(meta manifest.Segment) {
	w.t.Helper()
	path := "/data/" + datadir.Segment(meta.Kind, meta.Seq)
	image, err := durable.ReadFile(w.o.FS, path)
	if err != nil {
		w.t.Fatal(err)
	}
	f := wideFile{meta: meta, data: image}
	r, err := segment.Open(w.o.FS, path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	err = r.Each(func(_ uint64, h segment.Hash, number int64, data []byte) error {
		f.chunks = append(f.chunks, wideChunk{hash: h, number: number})
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	f.locate(w.t)
	w.files = append(w.files, f)
}

// locate flips one byte of every block of data and index, and notes what is missing then: chunks
// that are compressed or shared cannot be looked for in the file.
func (f *wideFile) locate(t *testing.T) {
	t.Helper()
	f.leaves = make(map[int64][]wideKey)
	for at := int64(0); ; {
		fs, damaged := vfs.NewMem(), bytes.Clone(f.data)
		damaged[at] ^= 1
		if err := durable.WriteFile(fs, "", "flipped", damaged); err != nil {
			t.Fatal(err)
		}
		r, err := segment.Open(fs, "flipped")
		if err != nil {
			t.Fatal(err)
		}
		bad := segment.Damages(r.Verify())
		if len(bad) != 1 || bad[0].Offset != at {
			t.Fatalf("a flipped byte at %d is %v", at, bad)
		}
		if bad[0].Part != "data" && bad[0].Part != "index" {
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			return
		}
		past, seen := at+bad[0].Length, make(map[wideKey]bool)
		_ = r.Each(func(_ uint64, h segment.Hash, number int64, _ []byte) error {
			seen[wideKey{h, number}] = true
			return nil
		})
		for i := range f.chunks {
			switch c := &f.chunks[i]; {
			case seen[wideKey{c.hash, c.number}]:
			case bad[0].Part == "data":
				c.from, c.to = at, past
			default:
				f.leaves[at] = append(f.leaves[at], wideKey{c.hash, c.number})
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		at = past
	}
}

// loss is what a rule of the design says is gone with the damaged parts of a file.
type loss struct {
	chunks map[wideKey]bool                          // that cannot be read
	hides  func(p metric.SeriesID, chunk int64) bool // what lies below
	parts  map[string]bool                           // that are damaged
}

type wideKey struct {
	hash   segment.Hash
	number int64
}

func (k wideKey) compare(other wideKey) int {
	return cmp.Or(bytes.Compare(k.hash[:], other.hash[:]), cmp.Compare(k.number, other.number))
}

// lossOf asks the file itself what is damaged, and its image from before what lay there.
func (w *wideWorld) lossOf(fs vfs.FS, f *wideFile) loss {
	w.t.Helper()
	l := loss{chunks: make(map[wideKey]bool), parts: make(map[string]bool)}
	var ranges []segment.DamageError
	r, err := segment.Open(fs, "/data/"+datadir.Segment(f.meta.Kind, f.meta.Seq))
	if err == nil {
		err = r.Verify()
		defer r.Close()
	}
	for _, d := range segment.Damages(err) {
		l.parts[d.Part] = true
		ranges = append(ranges, *d)
	}
	everything := l.parts["footer"] || l.parts["directory"]
	var leaves [][2]wideKey // the first of a damaged one and the first behind it
	var all []wideKey
	for _, c := range f.chunks {
		all = append(all, wideKey{c.hash, c.number})
	}
	for _, d := range ranges {
		if d.Part != "index" {
			continue
		}
		held := f.leaves[d.Offset]
		if len(held) == 0 {
			w.t.Fatalf("a leaf without series at %d", d.Offset)
		}
		first, past := held[0],
			wideKey{hash: segment.Hash(bytes.Repeat([]byte{0xff}, len(segment.Hash{})))}
		if i := slices.Index(all, held[len(held)-1]) + 1; i < len(all) {
			past = all[i]
		}
		leaves = append(leaves, [2]wideKey{first, past})
	}
	inLeaf := func(k wideKey) bool {
		return everything || slices.ContainsFunc(leaves, func(l [2]wideKey) bool {
			return l[0].compare(k) <= 0 && k.compare(l[1]) < 0
		})
	}
	for _, c := range f.chunks {
		damaged := slices.ContainsFunc(ranges, func(d segment.DamageError) bool {
			return d.Part == "data" && d.Offset <= c.from && c.to <= d.Offset+d.Length
		})
		if k := (wideKey{c.hash, c.number}); damaged || inLeaf(k) {
			l.chunks[k] = true
		}
	}
	l.hides = func(id metric.SeriesID, number int64) bool {
		k := wideKey{segment.Hash(id), number}
		return (l.chunks[k] || inLeaf(k)) && f.meta.Marks.Has(w.bucket, hole.PrefixOf(id), number)
	}
	return l
}

// expect returns what slots of a series are when a file has lost something.
func (w *wideWorld) expect(n int, id metric.SeriesID, damaged *wideFile, l *loss) (words []uint64,
	unknown []bool) {
	words, unknown = make([]uint64, wideSlots), make([]bool, wideSlots)
	for layer := range w.words {
		if deleted(n) && (layer < len(w.words)-1 || !again(n)) {
			continue
		}
		f, table := w.fileOf(layer), w.slots[layer][int64(n)]
		for from := int64(0); from < wideSlots; from += chunk.Slots {
			number, past := firstChunk+from/chunk.Slots, min(from+chunk.Slots, wideSlots)
			hidden := f == damaged && l.hides(id, number)
			lost := f == damaged && l.chunks[wideKey{segment.Hash(id), number}]
			for slot := from; slot < past; slot++ {
				if hidden {
					words[slot], unknown[slot] = 0, true
				}
				if table != nil && table[slot] != 0 && !lost {
					words[slot], unknown[slot] = table[slot], false
				}
			}
		}
	}
	return words, unknown
}

// fileOf returns the file of a layer: a window, and two flushes.
func (w *wideWorld) fileOf(layer int) *wideFile {
	var of []*wideFile
	for i := range w.files {
		if len(w.files[i].chunks) > 100 {
			of = append(of, &w.files[i])
		}
	}
	if len(of) != len(w.words) {
		w.t.Fatalf("%d files with the chunks of many series, want %d", len(of), len(w.words))
	}
	return of[layer]
}

// TestAZeroedKiBHidesWhatItHeld zeroes 1 KiB anywhere in each file. Exactly what the
// design names is gone: of data and index the chunks, and what lies below those that
// were marked; nothing of rollups, names, tombstones and buckets. No more is unknown and
// nothing deleted is back, before and behind a merge and another start.
func TestAZeroedKiBHidesWhatItHeld(t *testing.T) {
	t.Parallel()
	w := newWideWorld(t)
	image, step := w.o.FS, int64(zeroedBytes*3/4)
	if testing.Short() {
		step = zeroedBytes * 5
	}
	alone := make(map[string]int) // places at which one kind alone was damaged
	// places at which names of the window were: names are shorter than what is zeroed
	named := 0
	for layer := range w.words {
		f := w.fileOf(layer)
		size, step := int64(len(f.data)), step
		for n, at := 0, int64(layer)*517; at < size; n, at = n+1, at+step {
			if !testing.Short() && at >= size-2*zeroedBytes {
				step = zeroedBytes / 4 // names and what is behind them are shorter
			}
			o := w.o
			o.FS = vfs.NewMem()
			if ok, err := vfs.Clone(image, o.FS, "/data", "/data"); !ok || err != nil {
				t.Fatal(ok, err)
			}
			zero(t, o.FS, "/data/"+datadir.Segment(f.meta.Kind, f.meta.Seq), at, min(zeroedBytes, size-at))
			l := w.lossOf(o.FS, f)
			if layer == 0 && l.parts["series"] {
				named++
			}
			if len(l.parts) == 1 {
				for part := range maps.Keys(l.parts) {
					alone[fmt.Sprint(layer, " ", part)]++
				}
			}
			z := &wideWorld{holeLayers: &holeLayers{t: t, s: mustOpen(t, o), clock: w.clock, o: o,
				words: w.words, merges: w.merges}, files: w.files, hashes: w.hashes, slots: w.slots,
				bucket: w.bucket}
			what := fmt.Sprintf("%s, 1 KiB at %d of %d, %v", datadir.Segment(f.meta.Kind, f.meta.Seq), at,
				size, slices.Sorted(maps.Keys(l.parts)))
			z.checkLoss(what, f, &l)
			if n%4 == 0 {
				z.merge()
				z.checkLoss(what+", merged", f, &l)
				z.reopen()
				z.checkLoss(what+", merged and opened again", f, &l)
			}
			z.s.Crash()
		}
	}
	t.Logf("places by layer and part: %v", alone)
	if !testing.Short() && (alone["0 rollups"] < 3 || named < 1 || alone["0 data"] < 2 ||
		alone["0 index"] < 3 || alone["2 series"] < 3) {
		t.Errorf("places by layer and part: %v", alone)
	}
	w.s = mustOpen(t, w.o)
}

func (w *wideWorld) checkLoss(what string, f *wideFile, l *loss) {
	w.t.Helper()
	for h, n := range w.hashes {
		words, unknown := w.expect(n, metric.SeriesID(h), f, l)
		w.checkSeries(what, n, words, unknown)
	}
}

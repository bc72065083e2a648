package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/testkit/filetest"
	"dalmatiner/internal/testkit/frozen"
)

// frozenSegment is a segment of one kind.
type frozenSegment struct {
	*model
	words      map[place][]uint64 // of each chunk, from its first slot on
	encoder    chunk.Encoder
	generation int64
	first      int64
	window     uint32 // chunks; 0 = none
	reversed   bool   // the chunks are added from the last one on
}

func newFrozen(generation, first int64, window uint32, of ...buckets.Info) *frozenSegment {
	return &frozenSegment{model: &model{chunks: map[place][]byte{}, buckets: of, compress: true},
		words:      map[place][]uint64{},
		generation: generation, first: first, window: window}
}

// add encodes words as a chunk of series n, or of its stamps.
func (f *frozenSegment) add(bucket uint64, n uint64, timestamp bool, number int64, words []uint64) {
	h := testHash(n)
	h[15] &^= 0x80
	if timestamp {
		h[15] |= 0x80
	}
	p := place{bucket, h, number}
	f.words[p] = words
	f.chunks[p] = f.encoder.Append(nil, 0, words)
}

// name adds the identity of series n.
func (f *frozenSegment) name(bucket uint64, n, since, below uint64, incarnation ...uint64) {
	h := testHash(n)
	h[15] &^= 0x80
	s := Series{Bucket: bucket, Hash: h, Group: uint32(n / 256), Column: uint16(n % 256), Since: since,
		DeleteSequence: below}
	if len(incarnation) > 0 {
		s.Incarnation = incarnation[0]
	}
	if below == 0 {
		s.Key = fmt.Appendf(nil, "\x05cloud\x06%06d", n)
	}
	f.series = append(f.series, s)
}

func constants(v int64) []uint64 { return slices.Repeat([]uint64{point.FromInt(v)}, chunk.Slots) }

// ramp is n slots, of which every seventh is not set.
func ramp(v int64, n int) []uint64 {
	words := make([]uint64, n)
	for i := range words {
		if i%7 != 6 {
			words[i] = point.FromInt(v + int64(i*i%11))
		}
	}
	return words
}

func floats(v float64, n int) []uint64 {
	words := make([]uint64, n)
	for i := range words {
		words[i] = point.FromFloat((v + float64(i%13)) / 100)
	}
	return words
}

// frozenSegments are one segment of each kind.
func frozenSegments() map[string]*frozenSegment {
	plain := buckets.Info{ID: 1, Name: "plain", Resolution: 1000, PPF: 604800}
	brief := buckets.Info{ID: 3, Name: "brief\x00\xff", Resolution: 60_000, PPF: 1440, TTL: 10_080,
		Grace: 5e9}
	timestamped := buckets.Info{ID: 1 << 31, Name: "stamped", Resolution: 1000, PPF: 604800,
		HPTS: true}

	flush := newFrozen(12, 0, 0, plain, brief, timestamped)
	flush.reversed, flush.compress = true, false
	for n := range uint64(300) {
		flush.add(1, n, false, 2083334, ramp(int64(n), 20))
		flush.name(1, n, n*64, 0)
	}
	for n := range uint64(4) {
		flush.add(3, 1000+n, false, 34722, floats(float64(n), chunk.Slots))
		flush.add(3, 1000+n, false, 34722+1<<33, ramp(-5, 60)) // in a leaf of its own
		flush.name(3, 1000+n, 0, 0)
		flush.add(1<<31, 2000+n, false, 2083334, ramp(int64(n), 60))
		flush.add(1<<31, 2000+n, true, 2083334, ramp(1000*int64(n), 60))
		flush.name(1<<31, 2000+n, 70_000, 0)
	}
	flush.name(1, 500, 70_100, 13, 1<<60+1) // deleted
	flush.name(1, 501, 70_101, 0, 1<<60)    // deleted before, and sent again

	overlay := newFrozen(14, 0, 0, plain)
	for n := range uint64(5) {
		overlay.add(1, n, false, 2083330, ramp(-int64(n), 3))
		overlay.add(1, n, false, 2083333, ramp(int64(n), 700))
	}
	hours := newFrozen(15, 2083330, SmallChunks, plain)
	day := newFrozen(16, 2083200, LargeChunks, plain, timestamped)
	for n := range uint64(3) {
		for c := range int64(SmallChunks) {
			hours.add(1, n, false, 2083330+c, ramp(c, 30+int(c)))
		}
		for c := int64(n) * 25; c < LargeChunks; c += 1 + int64(n) { // with spans that have no points
			day.add(1, n, false, 2083200+c, constants(c%5+int64(n)))
		}
	}
	day.add(1, 9, false, 2083207, floats(3, 100))
	timestamps := newFrozen(17, 2083330, SmallChunks, plain, timestamped)
	for n := range uint64(3) {
		for c := range int64(2) {
			timestamps.add(1<<31, n, false, 2083335+c, floats(float64(c), 90))
			timestamps.add(1<<31, n, true, 2083335+c, ramp(c*1_000_000, 90))
		}
	}
	return map[string]*frozenSegment{"flush": flush, "overlay": overlay, "window": hours, "day": day,
		"stamps": timestamps}
}

// rollup computes a rollup of a series from the headers of its chunks.
func (f *frozenSegment) rollup(t *testing.T, l Rollup, p place) (spans uint16,
	all [MaxSpans]chunk.Header) {
	t.Helper()
	for i := range int(int64(f.window) / l.Chunks()) {
		var of chunk.Node
		for c := range l.Chunks() / SmallChunks {
			var small chunk.Node
			for k := range int64(SmallChunks) {
				data, ok := f.chunks[place{p.bucket, p.hash, f.first + int64(i)*l.Chunks() + c*SmallChunks + k}]
				if !ok {
					continue
				}
				h, err := chunk.ParseHeader(data)
				if err != nil {
					t.Fatal(err)
				}
				small.Append(&h, int(k)*chunk.Slots)
			}
			if unit := small.Header(); unit.Count > 0 {
				of.Append(&unit, int(c)*SmallChunks*chunk.Slots)
			}
		}
		if all[i] = of.Header(); all[i].Count > 0 {
			spans |= 1 << i
		}
	}
	return spans, all
}

// write makes the file.
func (f *frozenSegment) write(t *testing.T) []byte {
	t.Helper()
	fs := vfs.NewMem()
	w, err := Create(fs, testPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range f.buckets {
		w.AddBucket(b)
	}
	if f.compress {
		w.Compress()
	}
	w.Describe(f.generation, f.first, f.window)
	order := f.order()
	if f.reversed {
		slices.Reverse(order)
	}
	for _, p := range order {
		h, err := chunk.ParseHeader(f.chunks[p])
		if err == nil {
			err = w.Add(p.bucket, p.hash, p.chunk, h.Count, f.chunks[p])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range f.keys() {
		for l := range rollups {
			spans, all := f.rollup(t, l, p)
			var data []byte
			for i := range all {
				if spans>>i&1 != 0 {
					data = chunk.AppendRollup(data, &all[i])
				}
			}
			if spans == 0 {
				continue
			}
			if err := w.AddRollups(l, p.bucket, p.hash, spans, testDigests(l, p.hash, spans),
				data); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range f.series {
		w.AddSeries(s)
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return filetest.Read(t, fs, testPath)
}

// The format is frozen: what is added gives the bytes of the files, and these
// give back everything that was added.
func TestFrozenSegments(t *testing.T) {
	var parts [kinds]uint32
	for name, f := range frozenSegments() {
		t.Run(name, func(t *testing.T) {
			frozen.Same(t, name+".seg", f.write(t))
			r := open(t, memFile(t, frozen.Read(t, name+".seg")), testPath)
			if err := r.Verify(); err != nil {
				t.Error(err)
			}
			if err := f.compare(r); err != nil {
				t.Error(err)
			}
			f.comparePoints(t, r)
			i := r.Info()
			if i.Generation != f.generation || i.WindowFirst != f.first || i.WindowChunks != f.window {
				t.Errorf("%+v, want generation %d and window %d, %d", i, f.generation, f.first, f.window)
			}
			for k, n := range r.footer().blocks {
				parts[k] = max(parts[k], n)
			}
		})
	}
	for k, n := range parts {
		if least := map[kind]uint32{kindData: 2, kindLeaf: 2}[kind(k)]; n < max(1, least) {
			t.Errorf("%d blocks of %s at most", n, kind(k))
		}
	}
}

// comparePoints reads every point and every rollup.
func (f *frozenSegment) comparePoints(t *testing.T, r *Reader) {
	t.Helper()
	var got [chunk.Slots]uint64
	err := r.Each(func(bucket uint64, h Hash, number int64, data []byte) error {
		clear(got[:])
		want := f.words[place{bucket, h, number}]
		if err := chunk.DecodeRange(got[:], data, 0); err != nil {
			return err
		}
		if !slices.Equal(got[:len(want)], want) {
			t.Errorf("chunk %d of %s holds %x, held %x", number, h, got[:len(want)], want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, p := range f.keys() {
		for l := range rollups {
			want, headers := f.rollup(t, l, p)
			var got [MaxSpans]chunk.Header
			spans, _, err := r.Rollups(l, p.bucket, p.hash, &got)
			if err != nil || spans != want {
				t.Fatalf("spans %#x of %s, want %#x: %v", spans, p.hash, want, err)
			}
			if err := sameDigests(r, l, p.bucket, p.hash, want); err != nil {
				t.Error(err)
			}
			for i := range got {
				if spans>>i&1 != 0 && got[i] != headers[i] {
					t.Errorf("entry %d of %s is %+v, was %+v", i, p.hash, got[i], headers[i])
				}
			}
		}
	}
}

// A footer of another format is refused by its number, and it is not damage.
func TestAnotherFormatIsNamed(t *testing.T) {
	_, data := smallSegment(t)
	foot := data[len(data)-footerSize:]
	for _, version := range []uint32{0, 1, format + 1, 1 << 31} {
		binary.LittleEndian.PutUint32(foot[ownSize+8:], version)
		seal(foot, int64(len(data)-footerSize))
		_, err := Open(memFile(t, data), testPath)
		if !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(),
				fmt.Sprintf("%s: unknown segment format: version %d, this program reads version %d", testPath,
					version, format)) ||
			len(Damages(err)) != 0 {
			t.Errorf("format %d: %v", version, err)
		}
	}
}

package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"dalmatiner/internal/model/buckets"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

const testPath = "test.seg"

// place is where the model keeps a chunk.
type place struct {
	bucket uint64
	hash   Hash
	chunk  int64
}

// model is a segment as a map.
type model struct {
	chunks  map[place][]byte
	points  int64
	series  []Series
	buckets []buckets.Info

	compress bool
}

func (m *model) order() []place {
	return slices.SortedFunc(maps.Keys(m.chunks), func(a, b place) int {
		ka, kb := appendFence(nil, a.bucket, &a.hash, a.chunk),
			appendFence(nil, b.bucket, &b.hash, b.chunk)
		return bytes.Compare(ka, kb)
	})
}

// timestamp says whether a place holds timestamps, which are no points.
func (m *model) timestamp(p place) bool {
	return p.hash[15] >= 0x80 && slices.ContainsFunc(m.buckets, func(b buckets.Info) bool {
		return b.ID == p.bucket && b.HPTS
	})
}

// namedCount returns how many series there are without those of timestamps.
func (m *model) namedCount() int64 {
	series := make(map[place]bool)
	for p := range m.chunks {
		if p.chunk = 0; !m.timestamp(p) {
			series[p] = true
		}
	}
	return int64(len(series))
}

// tester is the part of testing.TB that rapid.T has too.
type tester interface {
	Helper()
	Fatal(args ...any)
}

// write adds the chunks of the model in the given order and finishes.
func (m *model) write(tb tester, fs vfs.FS, path string, order []place) Info {
	tb.Helper()
	w, err := Create(fs, path)
	if err != nil {
		tb.Fatal(err)
	}
	for _, b := range m.buckets {
		w.AddBucket(b)
	}
	if m.compress {
		w.Compress()
	}
	w.Describe(7, 240, LargeChunks)
	m.writeRollups(tb, w)
	for i, p := range order {
		if err := w.Add(p.bucket, p.hash, p.chunk, i, m.chunks[p]); err != nil {
			tb.Fatal(err)
		}
		if !m.timestamp(p) {
			m.points += int64(i)
		}
	}
	for _, s := range m.series {
		w.AddSeries(s)
	}
	info, err := w.Finish()
	if err != nil {
		tb.Fatal(err)
	}
	return info
}

func testHash(n uint64) (h Hash) {
	binary.BigEndian.PutUint64(h[:], n*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(h[8:], n)
	return h
}

// testModel has enough for several blocks of every kind.
func testModel(series, chunks, size int) *model {
	m := &model{chunks: map[place][]byte{}}
	for s := range series {
		h := testHash(uint64(s))
		for c := range chunks {
			data := bytes.Repeat([]byte{byte(s), byte(c), byte(s * c)}, size/3+1)[:size]
			m.chunks[place{uint64(s % 3), h, int64(c)}] = data
		}
		m.series = append(m.series, Series{Bucket: uint64(s % 3), Hash: h, Group: uint32(s / 256),
			Column: uint16(s % 256),
			Key:    fmt.Appendf(nil, "\x05cloud\x04host\x06%06d", s)})
	}
	for b := range 3 {
		m.buckets = append(m.buckets, buckets.Info{ID: uint64(b), Name: fmt.Sprintf("bucket%d", b),
			Resolution: 1000,
			PPF:        604800, TTL: math.MaxInt64, Grace: int64(b), HPTS: b == 1})
	}
	return m
}

func open(tb testing.TB, fs vfs.FS, path string) *Reader {
	tb.Helper()
	r, err := Open(fs, path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = r.Close() })
	return r
}

func drawModel(t *rapid.T) *model {
	m := &model{chunks: map[place][]byte{}, compress: rapid.Bool().Draw(t, "compress")}
	hashes := make([]Hash, rapid.IntRange(1, 40).Draw(t, "hashes"))
	for i := range hashes {
		hashes[i] = testHash(rapid.Uint64().Draw(t, "hash"))
	}
	// Sizes around the block size and chunk numbers around the 32 bits of a
	// leaf are what the layout depends on.
	size := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(blockSize-20, blockSize+20),
		rapid.Just(maxChunk))
	chunk := rapid.OneOf(rapid.Int64Range(0, 50), rapid.Int64Range(math.MaxUint32-2, math.MaxUint32+2),
		rapid.Int64())
	for range rapid.IntRange(0, 300).Draw(t, "chunks") {
		p := place{rapid.Uint64Range(0, 2).Draw(t, "bucket"), rapid.SampledFrom(hashes).Draw(t, "series"),
			chunk.Draw(t, "chunk")}
		fill := byte(len(m.chunks) + 1)
		if m.compress { // some are equal
			fill = rapid.ByteRange(1, 8).Draw(t, "fill")
		}
		m.chunks[p] = bytes.Repeat([]byte{fill}, size.Draw(t, "size"))
	}
	for i := range rapid.IntRange(0, 20).Draw(t, "identities") {
		key := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "key")
		if i == 7 {
			key = bytes.Repeat([]byte{7}, MaxName)
		}
		m.series = append(m.series, Series{Bucket: uint64(i), Hash: hashes[i%len(hashes)],
			Group: uint32(i), Column: uint16(i), Key: key})
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "buckets") {
		m.buckets = append(m.buckets, buckets.Info{ID: uint64(i), Name: string([]byte{byte(i)}),
			Resolution: rapid.Int64().Draw(t, "resolution"),
			PPF:        int64(i), TTL: -1, Grace: int64(i), HPTS: i%2 == 0})
	}
	return m
}

func TestSegmentHoldsWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		fs := vfs.NewMem()
		order := rapid.Permutation(m.order()).Draw(t, "order")
		info := m.write(t, fs, testPath, order)
		r, err := Open(fs, testPath)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if r.Info() != info || info.Points != m.points || info.Chunks != int64(len(m.chunks)) ||
			info.Series != m.namedCount() {
			t.Fatalf("Info is %+v on disk, %+v from the writer, want %d points, %d chunks and %d series",
				r.Info(), info, m.points, len(m.chunks), m.namedCount())
		}
		if err := r.Verify(); err != nil {
			t.Fatal(err)
		}
		if err := m.compare(r); err != nil {
			t.Fatal(err)
		}
		p := place{rapid.Uint64Range(0, 3).Draw(t, "b"), testHash(rapid.Uint64().Draw(t, "h")), 0}
		if len(order) > 0 && rapid.Bool().Draw(t, "known") {
			p = rapid.SampledFrom(order).Draw(t, "p")
		}
		from, to := p.chunk-rapid.Int64Range(0, 60).Draw(t, "before"),
			p.chunk+rapid.Int64Range(0, 60).Draw(t, "after")
		if err := m.compareChunks(r, p.bucket, p.hash, from, to); err != nil {
			t.Fatal(err)
		}
		if err := m.compareCursor(r, p.bucket, p.hash, from, to,
			rapid.Int64Range(1, 20).Draw(t, "step")); err != nil {
			t.Fatal(err)
		}
		if err := m.compareRollups(r, p.bucket, p.hash); err != nil {
			t.Fatal(err)
		}
		if err := m.compareRange(r, p.bucket, from); err != nil {
			t.Fatal(err)
		}
	})
}

// compare reads everything back.
func (m *model) compare(r *Reader) error {
	order := m.order()
	i := 0
	err := r.Each(func(b uint64, h Hash, c int64, data []byte) error {
		if i >= len(order) || order[i] != (place{b, h, c}) || !bytes.Equal(data, m.chunks[order[i]]) {
			return fmt.Errorf("chunk %d of %d is not what was added: %d %s %d", i, len(order), b, h, c)
		}
		i++
		return nil
	})
	if err != nil {
		return err
	}
	if i != len(order) {
		return fmt.Errorf("%d chunks, want %d", i, len(order))
	}
	i = 0
	err = r.Series(func(s Series) error {
		if want := m.series[i]; s.Bucket != want.Bucket || s.Hash != want.Hash || s.Group != want.Group ||
			s.Column != want.Column || s.Since != want.Since || s.DeleteSequence != want.DeleteSequence ||
			!bytes.Equal(s.Key, want.Key) {
			return fmt.Errorf("identity %d is %+v, want %+v", i, s, want)
		}
		i++
		return nil
	})
	if err != nil {
		return err
	}
	if i != len(m.series) {
		return fmt.Errorf("%d identities, want %d", i, len(m.series))
	}
	got, err := r.Buckets()
	if err != nil {
		return err
	}
	if fmt.Sprint(got) != fmt.Sprint(m.buckets) {
		return fmt.Errorf("buckets %v, want %v", got, m.buckets)
	}
	return nil
}

func (m *model) compareChunks(r *Reader, b uint64, h Hash, from, to int64) error {
	var got, want []place
	err := r.Chunks(b, h, from, to, func(c int64, data []byte) error {
		if p := (place{b, h, c}); !bytes.Equal(data, m.chunks[p]) {
			return fmt.Errorf("wrong data for %v", p)
		}
		got = append(got, place{b, h, c})
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range m.order() {
		if p.bucket == b && p.hash == h && p.chunk >= from && p.chunk < to {
			want = append(want, p)
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("chunks [%d, %d) of %d %s: got %v, want %v", from, to, b, h, got, want)
	}
	return nil
}

// compareRange reads the chunks of a bucket from a number on, and counts them.
func (m *model) compareRange(r *Reader, b uint64, first int64) error {
	var got, want []place
	err := r.Range(b, first, math.MaxInt64, func(b uint64, h Hash, c int64, _ []byte) error {
		got = append(got, place{b, h, c})
		return nil
	})
	bytes, wantBytes := 0, 0
	for _, p := range m.order() {
		if p.bucket == b && p.chunk >= first && p.chunk < math.MaxInt64 {
			want = append(want, p)
		}
		if p.bucket == b {
			wantBytes += len(m.chunks[p])
		}
	}
	if err == nil && !slices.Equal(got, want) {
		return fmt.Errorf("range of bucket %d from %d: got %v, want %v", b, first, got, want)
	}
	if err == nil {
		err = r.Entries(b, func(_ int64, n int) { bytes += n })
	}
	if err == nil && bytes != wantBytes {
		return fmt.Errorf("the entries of bucket %d have %d bytes, want %d", b, bytes, wantBytes)
	}
	return err
}

func TestWriterRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		use  func(w *Writer)
		want string
	}{
		"an empty chunk": {func(w *Writer) { _ = w.Add(1, Hash{}, 0, 0, nil) }, "has 0 bytes"},
		"a chunk too long": {func(w *Writer) {
			_ = w.Add(1, Hash{}, 0, 0, make([]byte, maxChunk+1))
		}, "has 65536 bytes"},
		"a key too long": {func(w *Writer) {
			w.AddSeries(Series{Key: make([]byte, MaxName+1)})
		}, "series key of 65537 bytes"},
		"a bucket name too long": {func(w *Writer) {
			w.AddBucket(buckets.Info{Name: strings.Repeat("x", MaxName+1)})
		}, "bucket name of 65537 bytes"},
		"a chunk twice in a row": {func(w *Writer) {
			_ = w.Add(1, Hash{}, 5, 0, []byte{1})
			_ = w.Add(1, Hash{}, 5, 0, []byte{2})
		}, "chunk 5 of series"},
		"a chunk twice apart": {func(w *Writer) {
			_ = w.Add(1, Hash{}, 5, 0, []byte{1})
			_ = w.Add(1, Hash{1}, 5, 0, []byte{1})
			_ = w.Add(1, Hash{}, 5, 0, []byte{1})
		}, "was added twice"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			w, err := Create(fs, testPath)
			if err != nil {
				t.Fatal(err)
			}
			tc.use(w)
			if _, err := w.Finish(); err == nil || !bytes.Contains([]byte(err.Error()), []byte(tc.want)) {
				t.Fatalf("Finish: %v, want %q", err, tc.want)
			}
			if err := w.Abort(); err != nil {
				t.Fatal(err)
			}
			if _, err := fs.Stat(testPath); err == nil {
				t.Fatal("the file is still there after Abort")
			}
			if err := w.Add(1, Hash{}, 0, 0, []byte{1}); !errors.Is(err, errFinished) {
				t.Fatalf("Add after Abort: %v", err)
			}
		})
	}
}

// TestSeekEqualsTheScan: whatever numbers a row has, a look-up finds the entry that
// going through it finds.
func TestSeekEqualsTheScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b leafBuilder
		at := rapid.SampledFrom([]int64{math.MinInt64, -5, 0, math.MaxInt64 - math.MaxUint32}).Draw(t,
			"first")
		step := rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, 3), rapid.Int64Range(1, 1<<27))
		var numbers []int64
		for range rapid.IntRange(1, 30).Draw(t, "entries") {
			b.add(1, &Hash{}, entry{chunk: at})
			numbers = append(numbers, at)
			at += step.Draw(t, "step")
		}
		l := leaf(b.appendTo(nil))
		from := rapid.IntRange(0, len(numbers)).Draw(t, "from")
		to := rapid.IntRange(from, len(numbers)).Draw(t, "to")
		want := rapid.OneOf(rapid.SampledFrom(numbers), rapid.Int64Range(numbers[0], at),
			rapid.Int64()).Draw(t, "chunk")
		scan := from
		for scan < to && numbers[scan] < want {
			scan++
		}
		if got := l.seek(from, to, want); got != scan {
			t.Fatalf("entry %d of %v[%d:%d] for %d, want %d", got, numbers, from, to, want, scan)
		}
	})
}

func TestVisitorErrorEndsTheWalk(t *testing.T) {
	fs := vfs.NewMem()
	m := testModel(4, 3, 10)
	m.write(t, fs, testPath, m.order())
	r := open(t, fs, testPath)
	// A DamageError of the visitor's own is no damage of this file.
	stop := &DamageError{File: "another"}
	calls := 0
	err := r.Each(func(uint64, Hash, int64, []byte) error { calls++; return stop })
	if err != error(stop) || calls != 1 {
		t.Fatalf("Each: %v after %d calls", err, calls)
	}
	if err := r.Series(func(Series) error { return stop }); err != error(stop) {
		t.Fatalf("Series: %v", err)
	}
}

func TestIndexIsLoadedLazilyAndDropped(t *testing.T) {
	fs := vfs.NewMem()
	m := testModel(2000, 2, 10)
	order := m.order()
	m.write(t, fs, testPath, order)
	r := open(t, fs, testPath)
	if n := r.IndexBytes(); n != 0 {
		t.Fatalf("%d bytes of index after Open", n)
	}
	lookup := func(p place) int64 {
		if err := m.compareChunks(r, p.bucket, p.hash, p.chunk, p.chunk+1); err != nil {
			t.Fatal(err)
		}
		return r.IndexBytes()
	}
	one := lookup(order[0])
	if again := lookup(order[1]); one == 0 || again != one {
		t.Fatalf("%d bytes after one look-up, %d after the next in the same leaf", one, again)
	}
	if more := lookup(order[len(order)-1]); more <= one {
		t.Fatalf("%d bytes after a look-up in another leaf, %d before", more, one)
	}
	r.DropIndex()
	if n := r.IndexBytes(); n != 0 {
		t.Fatalf("%d bytes of index after DropIndex", n)
	}
	lookup(order[0])
}

func TestConcurrentReaders(t *testing.T) {
	fs := vfs.NewMem()
	m := testModel(300, 4, 700)
	order := m.order()
	m.write(t, fs, testPath, order)
	r := open(t, fs, testPath)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				p := order[(i*31+g*17)%len(order)]
				if err := m.compareOne(r, p); err != nil {
					t.Error(err)
					return
				}
				switch {
				case g == 0 && i%20 == 0:
					r.DropIndex()
				case g == 1 && i%100 == 0:
					if err := m.compare(r); err != nil {
						t.Error(err)
					}
				}
				_ = r.IndexBytes()
			}
		})
	}
	wg.Wait()
}

// compareOne looks one chunk up.
func (m *model) compareOne(r *Reader, p place) error {
	n := 0
	err := r.Chunks(p.bucket, p.hash, p.chunk, p.chunk+1, func(c int64, data []byte) error {
		n++
		if !bytes.Equal(data, m.chunks[p]) {
			return fmt.Errorf("wrong data for %v", p)
		}
		return nil
	})
	if err == nil && n != 1 {
		err = fmt.Errorf("%d chunks for %v", n, p)
	}
	return err
}

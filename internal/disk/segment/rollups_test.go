package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
)

// keys returns the series of the model in the order of the index.
func (m *model) keys() (keys []place) {
	for _, p := range m.order() {
		p.chunk = 0
		if n := len(keys); n == 0 || keys[n-1] != p {
			keys = append(keys, p)
		}
	}
	return keys
}

// modelRollups are the rollups that every series of a model has, different ones
// for each.
func modelRollups(l Rollup, h Hash) (spans uint16, all [MaxSpans]chunk.Header) {
	spans = 1
	if l == Small {
		spans = (uint16(h[15]) | uint16(h[14])<<4) & (1<<MaxSpans - 1)
		spans |= 1 << (h[15] % MaxSpans)
	}
	for i := range all {
		if spans>>i&1 == 0 {
			continue
		}
		v := int64(h[0]) << i
		all[i] = chunk.Header{Count: 1 + i, FirstOff: i, LastOff: 3 * i, First: point.FromInt(v),
			Last: point.FromInt(v + 1),
			Min:  point.FromInt(-v), Max: point.FromInt(v + 2), Sum: chunk.Sum{Lo: 9 * uint64(h[0]) << i},
			Rises: i%2 == 0}
	}
	return spans, all
}

func (m *model) writeRollups(tb tester, w *Writer) {
	tb.Helper()
	for _, p := range m.keys() {
		for l := range rollups {
			var data []byte
			spans, all := modelRollups(l, p.hash)
			for i := range all {
				if spans>>i&1 != 0 {
					data = chunk.AppendRollup(data, &all[i])
				}
			}
			if err := w.AddRollups(l, p.bucket, p.hash, spans, testDigests(l, p.hash, spans),
				data); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

// testDigests are numbers that stand for the digests of a series.
func testDigests(l Rollup, h Hash, spans uint16) (list []uint64) {
	for i := range MaxSpans {
		if spans>>i&1 != 0 {
			list = append(list, testDigest(l, h, i))
		}
	}
	return list
}

func testDigest(l Rollup, h Hash, i int) uint64 {
	return (binary.LittleEndian.Uint64(h[:])|1)*0x9e3779b97f4a7c15 + uint64(l)<<60 + uint64(i)
}

// sameDigests compares the digests of a series with what was written.
func sameDigests(r *Reader, l Rollup, bucket uint64, h Hash, want uint16) error {
	var got [MaxSpans]uint64
	spans, _, err := r.RollupDigests(l, bucket, h, &got)
	if err != nil || spans != want {
		return fmt.Errorf("digests of rollup %d of %s have spans %#x, want %#x: %v", l, h, spans, want,
			err)
	}
	for i, d := range got {
		if spans>>i&1 != 0 && d != testDigest(l, h, i) {
			return fmt.Errorf("digest %d of rollup %d of %s is %x, want %x", i, l, h, d, testDigest(l, h, i))
		}
	}
	return nil
}

// sameRollups compares what a reader gave with what was written.
func sameRollups(l Rollup, h Hash, spans uint16, got *[MaxSpans]chunk.Header) error {
	want, all := modelRollups(l, h)
	if spans != want {
		return fmt.Errorf("rollup %d of %s has spans %#x, want %#x", l, h, spans, want)
	}
	for i := range all {
		if spans>>i&1 != 0 && got[i] != all[i] {
			return fmt.Errorf("rollup %d of %s, unit %d: %+v, want %+v", l, h, i, got[i], all[i])
		}
	}
	return nil
}

// compareRollups reads the rollups of a series that the model may have.
func (m *model) compareRollups(r *Reader, b uint64, h Hash) error {
	known := false
	for _, p := range m.keys() {
		known = known || p.bucket == b && p.hash == h
	}
	for l := range rollups {
		var got [MaxSpans]chunk.Header
		spans, _, err := r.Rollups(l, b, h, &got)
		if err != nil {
			return err
		}
		if !known && spans != 0 {
			return fmt.Errorf("rollups %#x of a series that was not added", spans)
		}
		if !known {
			continue
		}
		if err := errors.Join(sameRollups(l, h, spans, &got),
			sameDigests(r, l, b, h, spans)); err != nil {
			return err
		}
	}
	return nil
}

// compareCursor walks a series, reading every step-th chunk only.
func (m *model) compareCursor(r *Reader, b uint64, h Hash, from, to, step int64) error {
	var c Cursor
	if err := c.Open(r, b, h, from, to); err != nil {
		return err
	}
	want := []place{}
	for _, p := range m.order() {
		if p.bucket == b && p.hash == h && p.chunk >= from && p.chunk < to {
			want = append(want, p)
		}
	}
	for len(want) > 0 {
		n, ok := c.Chunk()
		if !ok || n != want[0].chunk {
			return fmt.Errorf("the cursor is at %d, %t, want %d", n, ok, want[0].chunk)
		}
		data, err := c.Data(n + step/2)
		if err != nil || !bytes.Equal(data, m.chunks[want[0]]) {
			return fmt.Errorf("chunk %d has %d bytes, want %d, %w", n, len(data), len(m.chunks[want[0]]),
				err)
		}
		next := n + step
		if err := c.Advance(next); err != nil {
			return err
		}
		for len(want) > 0 && (next < n || want[0].chunk < next) {
			want = want[1:]
		}
		if next < n {
			return errors.Join(closeCursor(&c))
		}
	}
	if n, ok := c.Chunk(); ok {
		return fmt.Errorf("the cursor is at %d behind the last chunk", n)
	}
	return closeCursor(&c)
}

func closeCursor(c *Cursor) error {
	_, err := c.Close()
	return err
}

func TestWriterRefusesRollups(t *testing.T) {
	entry := chunk.AppendRollup(nil,
		&chunk.Header{Count: 1, First: point.FromInt(1), Last: point.FromInt(1)})
	for name, add := range map[string]func(w *Writer) error{
		"of no window": func(w *Writer) error {
			return w.AddRollups(Large, 1, Hash{}, 1, []uint64{7}, entry)
		},
		"without spans": func(w *Writer) error {
			w.Describe(1, 0, SmallChunks)
			return w.AddRollups(Small, 1, Hash{}, 0, nil, entry)
		},
		"behind the window": func(w *Writer) error {
			w.Describe(1, 0, SmallChunks)
			return w.AddRollups(Small, 1, Hash{}, 2, []uint64{7}, entry)
		},
		"without digests": func(w *Writer) error {
			w.Describe(1, 0, SmallChunks)
			return w.AddRollups(Small, 1, Hash{}, 1, nil, entry)
		},
		"in another order": func(w *Writer) error {
			w.Describe(1, 0, SmallChunks)
			if err := w.AddRollups(Small, 1, Hash{1}, 1, []uint64{7}, entry); err != nil {
				t.Fatal(err)
			}
			return w.AddRollups(Small, 1, Hash{}, 1, []uint64{7}, entry)
		},
	} {
		w, err := Create(vfs.NewMem(), testPath)
		if err != nil {
			t.Fatal(err)
		}
		if err := add(w); err == nil || !strings.Contains(err.Error(), "rollups") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := w.Finish(); err == nil {
			t.Errorf("%s: the segment was finished", name)
		}
		if err := w.Abort(); err != nil {
			t.Fatal(err)
		}
	}
}

// A series that lies outside the first and the last of a segment costs no read.
func TestSeriesOutsideTheSegmentAreNotLookedFor(t *testing.T) {
	m := testModel(90, 3, 100)
	fs := vfs.NewMem()
	m.write(t, fs, testPath, m.order())
	r := open(t, fs, testPath)
	if err := r.Chunks(1, Hash{}, math.MinInt64, math.MaxInt64, nil); err != nil {
		t.Fatal(err)
	}
	before := r.IndexBytes()
	var h Hash
	for i := range h {
		h[i] = 0xff
	}
	var rollups [MaxSpans]chunk.Header
	for _, bucket := range []uint64{2, 3} {
		var c Cursor
		if err := c.Open(r, bucket, h, 0, 3); err != nil {
			t.Fatal(err)
		}
		if _, ok := c.Chunk(); ok {
			t.Fatal("a chunk of a series that is not there")
		}
		if spans, read, err := r.Rollups(Large, bucket, h, &rollups); spans != 0 || read != 0 ||
			err != nil {
			t.Fatalf("spans %#x, %d bytes read, %v", spans, read, err)
		}
	}
	if got := r.IndexBytes(); got != before {
		t.Fatalf("%d bytes of the index in memory, %d before", got, before)
	}
}

// BenchmarkRollups looks up a series in one of 365 windows of a day.
func BenchmarkRollups(b *testing.B) {
	const series = 10_000
	m := testModel(series, 1, 30)
	fs := vfs.NewMem()
	m.write(b, fs, testPath, m.order())
	r, err := Open(fs, testPath)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	var dst [MaxSpans]chunk.Header
	i := 0
	for b.Loop() {
		s := uint64(i*7919) % series
		if spans, _, err := r.Rollups(Large, s%3, testHash(s), &dst); spans == 0 || err != nil {
			b.Fatal(spans, err)
		}
		i++
	}
}

// TestASeriesOfOneSmallUnit has no row in the larger rollups, and reads like one that has.
func TestASeriesOfOneSmallUnit(t *testing.T) {
	fs := vfs.NewMem()
	write := func(window uint32, spans uint16) *Reader {
		w, err := Create(fs, testPath)
		if err != nil {
			t.Fatal(err)
		}
		w.Compress()
		w.Describe(1, 0, window)
		for n := range uint64(3) {
			if err := w.Add(1, Hash{byte(n)}, int64(n), 1, []byte{1}); err != nil {
				t.Fatal(err)
			}
		}
		for n := range uint64(3) {
			_, all := modelRollups(Small, Hash{byte(n)})
			var data []byte
			var digests []uint64
			for i := range all {
				if spans>>i&1 != 0 {
					all[i].Count, all[i].FirstOff, all[i].LastOff = 5, 3, 90
					data = chunk.AppendRollup(data, &all[i])
					digests = append(digests, n+7)
				}
			}
			if err := w.AddRollups(Small, 1, Hash{byte(n)}, spans, digests, data); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		return open(t, fs, testPath)
	}
	var got, small [MaxSpans]chunk.Header
	var digests [MaxSpans]uint64
	r := write(LargeChunks, 1<<4)
	if _, _, err := r.Rollups(Small, 1, Hash{1}, &small); err != nil {
		t.Fatal(err)
	}
	want := small[4]
	want.FirstOff += 4 * SmallChunks * chunk.Slots
	want.LastOff += 4 * SmallChunks * chunk.Slots
	spans, read, err := r.Rollups(Large, 1, Hash{1}, &got)
	if err != nil || spans != 1 || got[0] != want || read != 0 {
		t.Errorf("spans %#x, %+v with %d bytes, want %+v: %v", spans, got[0], read, want, err)
	}
	if spans, _, err := r.RollupDigests(Large, 1, Hash{1}, &digests); err != nil || spans != 1 ||
		digests[0] != 8 {
		t.Errorf("spans %#x, digest %d: %v", spans, digests[0], err)
	}
	none := Hash{1, 1}
	if spans, _, err := r.Rollups(Large, 1, none, &got); err != nil || spans != 0 {
		t.Errorf("spans %#x of a series that is not there: %v", spans, err)
	}
	if spans, _, err := write(SmallChunks, 1).Rollups(Large, 1, Hash{1}, &got); err != nil ||
		spans != 0 {
		t.Errorf("spans %#x in a window that has no day: %v", spans, err)
	}
	if spans, _, err := write(LargeChunks, 3).Rollups(Large, 1, Hash{1}, &got); spans != 0 ||
		!IsDamage(err) {
		t.Errorf("spans %#x where a row is missing: %v", spans, err)
	}
}

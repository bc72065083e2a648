package segment

import (
	"slices"
	"testing"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/testkit/filetest"
)

// TestEveryChunkIsReadOrLost: with any one block or the directory damaged, each chunk of
// the segment is either read or named as lost, by a look-up, a cursor and a scan, and
// only with damage to the index is more named than was there.
func TestEveryChunkIsReadOrLost(t *testing.T) {
	m := testModel(300, 7, 40)
	whole := func() []byte {
		fs := memFile(t, nil)
		m.write(t, fs, testPath, m.order())
		return filetest.Read(t, fs, testPath)
	}()
	r := open(t, memFile(t, whole), testPath)
	d, err := r.directory()
	if err != nil {
		t.Fatal(err)
	}
	offsets := []int64{r.footer().dirOff}
	for i := range d.blocks {
		offsets = append(offsets, d.offset(i))
	}
	if len(d.leaves) < 3 {
		t.Fatalf("%d leaves, want some", len(d.leaves))
	}
	for _, off := range offsets {
		data := slices.Clone(whole)
		data[off] ^= 1
		r := open(t, memFile(t, data), testPath)
		m.readOrLost(t, r)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// onlyOf demands that parts named by a scan are of its bucket.
func onlyOf(t *testing.T, bucket uint64, parts []hole.Mark) []hole.Mark {
	t.Helper()
	if i := slices.IndexFunc(parts, func(p hole.Mark) bool { return p.Bucket != bucket }); i >= 0 {
		t.Errorf("a scan of bucket %d names a part of %d", bucket, parts[i].Bucket)
	}
	return parts
}

// scan scans every bucket of the model, and returns the chunks it was given, those it was told
// are lost, and the parts in which more may be.
func (m *model) scan(t *testing.T, r *Reader, lo, hi int64) (scanned, lost map[place]bool,
	parts []hole.Mark) {
	t.Helper()
	scanned, lost = make(map[place]bool), make(map[place]bool)
	buckets := make(map[uint64]bool)
	for p := range m.chunks {
		buckets[p.bucket] = true
	}
	for b := range buckets {
		_ = r.Scan(b, lo, hi, func(bucket uint64, h Hash, c int64, data []byte) error {
			if data == nil {
				lost[place{bucket, h, c}] = true
			} else {
				scanned[place{bucket, h, c}] = true
			}
			return nil
		}, func(more []hole.Mark) { parts = append(parts, onlyOf(t, b, more)...) })
	}
	return scanned, lost, parts
}

func (m *model) readOrLost(t *testing.T, r *Reader) {
	t.Helper()
	type series struct {
		bucket uint64
		hash   Hash
	}
	all := make(map[series]bool)
	for p := range m.chunks {
		all[series{p.bucket, p.hash}] = true
	}
	lo, hi := r.Info().MinChunk, r.Info().MaxChunk+1
	scanned, lost, parts := m.scan(t, r, lo, hi)
	for s := range all {
		read, gone := make(map[int64]bool), make(map[int64]bool)
		_ = r.SeriesChunks(s.bucket, s.hash, lo, hi, func(c int64, _ []byte) error {
			read[c] = true
			return nil
		}, func(first, past int64) {
			for c := first; c < past; c++ {
				gone[c] = true
			}
		})
		var c Cursor
		broken := c.Open(r, s.bucket, s.hash, lo, hi) != nil
		seen := make(map[int64]bool)
		for n, ok := c.Chunk(); ok; n, ok = c.Chunk() {
			data, err := c.Data(hi)
			if err != nil {
				t.Fatal(err)
			}
			seen[n] = data != nil
			if err := c.Advance(n + 1); err != nil {
				t.Fatal(err)
			}
		}
		gaps := slices.Clone(c.LostGaps())
		_, _ = c.Close()
		for n := lo; n < hi; n++ {
			p := place{s.bucket, s.hash, n}
			_, was := m.chunks[p]
			if was && read[n] == gone[n] || !was && read[n] {
				t.Fatalf("%v is read: %v, lost: %v, was there: %v", p, read[n], gone[n], was)
			}
			inPart := slices.ContainsFunc(parts, func(k hole.Mark) bool {
				marks := hole.Marks{List: []hole.Mark{k}}
				return marks.Has(uint64(p.bucket), hole.PrefixOf(p.hash), n)
			})
			if was && scanned[p] == (lost[p] || inPart) {
				t.Fatalf("%v is scanned: %v, lost: %v %v", p, scanned[p], lost[p], inPart)
			}
			inGap := broken || slices.ContainsFunc(gaps, func(g Gap) bool {
				return g.First <= n && n < g.Past
			})
			there, known := seen[n]
			if was && !there && known == inGap || there && !read[n] {
				t.Fatalf("%v is at the cursor: %v %v, in a gap: %v", p, known, there, inGap)
			}
		}
	}
}

// What a leaf may hold is named to the prefix: the parts of a leaf follow each other without
// a gap and without an overlap, from the prefix of its first key to that of the first key
// behind it.
func TestPartsOfALeafFollowEachOther(t *testing.T) {
	m := testModel(300, 7, 40)
	fs := memFile(t, nil)
	m.write(t, fs, testPath, m.order())
	r := open(t, fs, testPath)
	defer func() { _ = r.Close() }()
	d, err := r.directory()
	if err != nil {
		t.Fatal(err)
	}
	info, wide := r.Info(), 0
	for i := range d.leaves {
		parts := d.lostIn(i, &info)
		lo, hi := d.span(i, &info)
		if len(parts) == 0 || parts[0].Low != hole.PrefixOf(lo.hash) {
			t.Fatalf("leaf %d begins with %+v, its first key is %v", i, parts, lo)
		}
		last := parts[len(parts)-1].High
		if end := hole.PrefixOf(hi.hash); last != end && (last != end-1 || hi.chunk > info.MinChunk) {
			t.Errorf("leaf %d ends with %v, the next one begins with %v at chunk %d", i, last, end, hi.chunk)
		}
		for k := 1; k < len(parts); k++ {
			if parts[k].Low != parts[k-1].High+1 {
				t.Errorf("leaf %d: a part from %v on follows one to %v", i, parts[k].Low, parts[k-1].High)
			}
			if parts[k].Low < parts[k].High {
				wide++
			}
		}
	}
	if wide == 0 {
		t.Error("no leaf has more than two prefixes")
	}
}

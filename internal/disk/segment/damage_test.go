package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/testkit/filetest"
)

// smallSegment is a segment with every kind of block in few bytes.
func smallSegment(tb testing.TB) (*model, []byte) {
	tb.Helper()
	m := testModel(3, 2, 7)
	fs := vfs.NewMem()
	m.write(tb, fs, testPath, m.order())
	return m, filetest.Read(tb, fs, testPath)
}

// memFile is a file system with data at testPath.
func memFile(tb testing.TB, data []byte) vfs.FS {
	tb.Helper()
	fs := vfs.NewMem()
	f, err := fs.Create(testPath, vfs.WriteCategoryUnspecified)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := f.Write(slices.Clone(data)); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return fs
}

// survivors reads all there is and fails on anything that m does not hold. It
// returns the number of records and chunks read, and the damage met.
func (m *model) survivors(tb testing.TB, fs vfs.FS) (n int, bad []*DamageError) {
	tb.Helper()
	note := func(err error) {
		found := Damages(err)
		if err != nil && len(found) == 0 {
			tb.Fatalf("an error that is no damage: %v", err)
		}
		bad = append(bad, found...)
	}
	r, err := Open(fs, testPath)
	if err != nil {
		note(err)
		return 0, bad
	}
	defer r.Close()
	one := func(b uint64, h Hash, c int64, data []byte) error {
		if want, ok := m.chunks[place{b, h, c}]; !ok || string(want) != string(data) {
			tb.Fatalf("chunk %d of %s in bucket %d was never written like this", c, h, b)
		}
		n++
		return nil
	}
	note(r.Each(one))
	for p := range m.chunks {
		note(r.Chunks(p.bucket, p.hash, p.chunk, p.chunk+1, func(c int64, data []byte) error {
			return one(p.bucket, p.hash, c, data)
		}))
	}
	for _, p := range m.keys() {
		for l := range rollups {
			var got [MaxSpans]chunk.Header
			spans, _, err := r.Rollups(l, p.bucket, p.hash, &got)
			note(err)
			if spans == 0 {
				continue
			}
			if err := sameRollups(l, p.hash, spans, &got); err != nil {
				tb.Fatal(err)
			}
			n++
		}
	}
	note(r.Series(func(s Series) error {
		if i := slices.IndexFunc(m.series, func(o Series) bool {
			return o.Hash == s.Hash
		}); i < 0 || fmt.Sprint(m.series[i]) != fmt.Sprint(s) {
			tb.Fatalf("identity %+v was never written", s)
		}
		n++
		return nil
	}))
	found, err := r.Buckets()
	note(err)
	for _, b := range found {
		if !slices.ContainsFunc(m.buckets, func(o buckets.Info) bool {
			return fmt.Sprint(o) == fmt.Sprint(b)
		}) {
			tb.Fatalf("bucket %+v was never written", b)
		}
		n++
	}
	note(r.Verify())
	return n, bad
}

// all is what survivors reads of an intact file.
func (m *model) all() int {
	return 2*len(m.chunks) + 2*len(m.keys()) + len(m.series) + len(m.buckets)
}

// I5: a flipped bit is found and what it hits is not returned.
func TestI5EverySingleBitFlipIsDamage(t *testing.T) {
	m, data := smallSegment(t)
	for i := range len(data) * 8 {
		data[i/8] ^= 1 << (i % 8)
		n, bad := m.survivors(t, memFile(t, data))
		data[i/8] ^= 1 << (i % 8)
		if len(bad) == 0 {
			t.Fatalf("bit %d of byte %d: no damage reported", i%8, i/8)
		}
		if n >= m.all() {
			t.Fatalf("bit %d of byte %d: reported as %v, but all %d records were returned", i%8, i/8, bad[0],
				n)
		}
		for _, e := range bad {
			if e.File != testPath || e.Offset > int64(i/8) || e.Offset+e.Length <= int64(i/8) &&
				e.Part != partFooter {
				t.Fatalf("byte %d was damaged, the error names %+v", i/8, *e)
			}
		}
	}
}

// I5, I6: a file cut short is damage at Open.
func TestI5EveryTruncationIsDamage(t *testing.T) {
	_, data := smallSegment(t)
	for n := range len(data) {
		_, err := Open(memFile(t, data[:n]), testPath)
		if bad := Damages(err); len(bad) != 1 || bad[0].Part != partFooter {
			t.Fatalf("%d of %d bytes: %v", n, len(data), err)
		}
	}
	if _, err := Open(memFile(t, append(slices.Clone(data), 0)), testPath); len(Damages(err)) != 1 {
		t.Fatalf("one byte more: %v", err)
	}
}

// I5: damage to one block costs the content of that block and no other.
func TestI5OtherBlocksStayReadable(t *testing.T) {
	m := testModel(600, 3, 100)
	fs := vfs.NewMem()
	m.write(t, fs, testPath, m.order())
	data := filetest.Read(t, fs, testPath)
	r := open(t, fs, testPath)
	d, err := r.directory()
	if err != nil {
		t.Fatal(err)
	}
	for k := kindData; k < kinds; k++ {
		block := r.footer().first(k+1) - 1
		at := d.offset(block)
		data[at] ^= 0x40
		n, bad := m.survivors(t, memFile(t, data))
		data[at] ^= 0x40
		for _, e := range bad {
			if e.Offset != at || e.Length != d.offset(block+1)-at || e.Part != k.String() ||
				e.Want == e.Got {
				t.Fatalf("%s: damage is %+v, want offset %d", k, *e, at)
			}
		}
		if len(bad) == 0 || n < m.all()/2 || n >= m.all() {
			t.Fatalf("%s: %d of %d records are readable, %d errors", k, n, m.all(), len(bad))
		}
	}
}

func TestI5BlockInTheWrongPlaceIsDamage(t *testing.T) {
	m := testModel(600, 3, blockSize/8)
	fs := vfs.NewMem()
	m.write(t, fs, testPath, m.order())
	data := filetest.Read(t, fs, testPath)
	r := open(t, fs, testPath)
	d, err := r.directory()
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := d.offset(0), d.offset(1), d.offset(2)
	if b-a != c-b {
		t.Fatalf("blocks 0 and 1 have %d and %d bytes, the test needs equal ones", b-a, c-b)
	}
	copy(data[b:c], data[a:b])
	if n, bad := m.survivors(t, memFile(t, data)); n >= m.all() || len(bad) == 0 ||
		bad[0].Offset != b {
		t.Fatalf("%d of %d records, damage %v", n, m.all(), bad)
	}
}

func TestDamageErrorsAreBounded(t *testing.T) {
	m := testModel(600, 3, blockSize/4)
	fs := vfs.NewMem()
	m.write(t, fs, testPath, m.order())
	data := filetest.Read(t, fs, testPath)
	r := open(t, fs, testPath)
	d, err := r.directory()
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.footer().first(kindLeaf) {
		data[d.offset(i)] ^= 1
	}
	err = open(t, memFile(t, data), testPath).Each(func(uint64, Hash, int64, []byte) error {
		return nil
	})
	if n := len(Damages(err)); n != maxDamages {
		t.Fatalf("%d errors, want %d", n, maxDamages)
	}
	if want := fmt.Sprintf("and %d more damaged ranges",
		r.footer().first(kindLeaf)-maxDamages); !strings.HasSuffix(err.Error(), want) {
		t.Fatalf("the error does not end in %q", want)
	}
}

func TestLaterFormatIsNamed(t *testing.T) {
	_, data := smallSegment(t)
	foot := data[len(data)-footerSize:]
	binary.LittleEndian.PutUint32(foot[ownSize+8:], 99)
	seal(foot, int64(len(data)-footerSize))
	_, err := Open(memFile(t, data), testPath)
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "version 99") ||
		len(Damages(err)) != 0 {
		t.Fatalf("Open: %v", err)
	}
}

// seal makes the last four bytes of a block its checksum.
func seal(block []byte, offset int64) {
	n := len(block) - crcSize
	binary.LittleEndian.PutUint32(block[n:], blockCRC(block[:n], offset))
}

// A crash at any point leaves no segment under its final name, or the whole
// one.
func TestCrashLeavesNoneOrAll(t *testing.T) {
	m := testModel(300, 3, 700)
	const final = "final.seg"
	fs := vfs.NewCrashableMem()
	check := func(step string, whole bool) {
		t.Helper()
		for _, percent := range []int{0, 30, 70, 100} {
			crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent,
				RNG: rand.New(rand.NewPCG(1, uint64(percent)))})
			r, err := Open(crashed, final)
			if err != nil {
				if whole || len(Damages(err)) > 0 {
					t.Fatalf("after %s, %d%% of unsynced data: %v", step, percent, err)
				}
				continue
			}
			if err := m.compare(r); err != nil {
				t.Fatalf("after %s, %d%% of unsynced data: %v", step, percent, err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	w, err := Create(fs, testPath)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range m.order() {
		if err := w.Add(p.bucket, p.hash, p.chunk, 1, m.chunks[p]); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			check("Add", false)
		}
	}
	for _, s := range m.series {
		w.AddSeries(s)
	}
	for _, b := range m.buckets {
		w.AddBucket(b)
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	check("Finish", false)
	if err := fs.Rename(testPath, final); err != nil {
		t.Fatal(err)
	}
	check("rename", false)
	dir, err := fs.OpenDir("")
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Sync(); err != nil {
		t.Fatal(err)
	}
	check("directory sync", true)
}

func FuzzOpen(f *testing.F) {
	_, data := smallSegment(f)
	f.Add(data, false)
	f.Add(data, true)
	f.Add(data[:len(data)-1], false)
	m := sharedModel(20)
	fs := vfs.NewMem()
	m.write(f, fs, testPath, m.order())
	f.Add(filetest.Read(f, fs, testPath), true)
	f.Add(data[len(data)-footerSize:], true)
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		if sealed {
			// Valid checksums let the fuzzer behind them.
			data = slices.Clone(data)
			sealAll(data)
		}
		r, err := Open(memFile(t, data), testPath)
		if err != nil {
			return
		}
		defer r.Close()
		lookups := 0
		_ = r.Each(func(b uint64, h Hash, c int64, data []byte) error {
			if lookups++; lookups > 1000 {
				return errFinished
			}
			return r.Chunks(b, h, c-1, c+2, func(int64, []byte) error { return nil })
		})
		_ = r.Series(func(s Series) error { _ = len(s.Key); return nil })
		_, _ = r.Buckets()
		_ = r.Verify()
	})
}

// sealAll gives every block that the directory of data names its checksum.
func sealAll(data []byte) {
	if len(data) < footerSize {
		return
	}
	end := len(data) - footerSize
	foot := data[end:]
	at := binary.LittleEndian.Uint64(foot[ownSize+16:])
	if at <= uint64(end) {
		for dir, last := data[at:end], uint64(0); len(dir) >= 2*offsetSize; dir = dir[offsetSize:] {
			from, to := binary.LittleEndian.Uint64(dir), binary.LittleEndian.Uint64(dir[offsetSize:])
			if from != last || to > at || to < from+crcSize {
				break
			}
			seal(data[from:to], int64(from))
			last = to
		}
		binary.LittleEndian.PutUint32(foot[ownSize+12:], blockCRC(data[at:end], int64(at)))
	}
	seal(foot, int64(end))
}

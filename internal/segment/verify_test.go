package segment

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/filetest"
)

// A file whose checksums are right and whose content is not is found by Verify,
// and no reader leaves its bounds.
func TestVerifyFindsWhatChecksumsDoNot(t *testing.T) {
	m := testModel(90, 3, 100)
	fs := vfs.NewMem()
	m.write(t, fs, testPath, m.order())
	intact := filetest.Read(t, fs, testPath)
	r := open(t, fs, testPath)
	d, err := r.directory()
	if err != nil {
		t.Fatal(err)
	}
	first := r.footer().first(kindLeaf)
	at, end := d.offset(first), d.offset(first+1)-crcSize
	rows := leaf(intact[at:end]).rows()
	entry0 := int(at) + leafHead + rows*rowSize
	small := int(d.offset(r.footer().first(kindSmall)))
	foot := len(intact) - footerSize
	le := binary.LittleEndian
	for name, tc := range map[string]struct {
		change func(b []byte)
		want   string
	}{
		"rows out of order": {func(b []byte) {
			row := b[int(at)+leafHead+rowSize:]
			for i := range 16 {
				row[i], row[rowSize+i] = row[rowSize+i], row[i]
			}
		}, "out of order"},
		"a chunk twice":             {func(b []byte) { copy(b[entry0+entrySize:][:4], b[entry0:][:4]) }, "out of order"},
		"another first entry":       {func(b []byte) { le.PutUint64(b[at+12:], 1<<40) }, "not the one of the directory"},
		"a block that is not there": {func(b []byte) { le.PutUint32(b[entry0+4:], 1<<20) }, "points outside the data"},
		"an offset beyond its end":  {func(b []byte) { le.PutUint16(b[entry0+8:], 65535) }, "points outside the data"},
		"a length behind the block": {func(b []byte) { le.PutUint16(b[entry0+10:], 65535) }, "points outside the data"},
		"more rows than bytes":      {func(b []byte) { le.PutUint16(b[at+8:], 65535) }, "65535 rows"},
		"a row behind the entries":  {func(b []byte) { le.PutUint16(b[int(at)+leafHead+16+rowSize:], 65535) }, "starts at entry 65535"},
		"another number of chunks":  {func(b []byte) { le.PutUint64(b[foot+48:], 7) }, "the file holds"},
		"another number of keys":    {func(b []byte) { le.PutUint64(b[foot+112:], 7) }, "identities and buckets"},
		"more rows of rollups":      {func(b []byte) { le.PutUint16(b[small+8:], 65535) }, "does not hold its rows"},
		"a rollup of no spans":      {func(b []byte) { le.PutUint16(b[small+rollupHead+16:], 0) }, "spans 0x0"},
		"a rollup cut short":        {func(b []byte) { b[small+rollupHead+18]-- }, "damaged chunk"},
		"another window":            {func(b []byte) { le.PutUint32(b[foot+120:], SmallChunks) }, "of a window of 10 chunks"},
		"another first row":         {func(b []byte) { b[small]++ }, "first row is not"},
		"rollups out of order": {func(b []byte) {
			row := b[small+rollupHead+RollupRow:]
			for i := range 16 {
				row[i], row[RollupRow+i] = row[RollupRow+i], row[i]
			}
		}, "out of order"},
		"a key behind its block": {func(b []byte) { b[d.offset(r.footer().first(kindSeries))+30] = 0x6f }, "record is cut short"},
		"a block of no bytes":    {func(b []byte) { copy(b[r.footer().dirOff+8:][:8], make([]byte, 8)) }, "block 0 of"},
	} {
		t.Run(name, func(t *testing.T) {
			data := slices.Clone(intact)
			tc.change(data)
			sealAll(data)
			r := open(t, memFile(t, data), testPath)
			err := r.Verify()
			if bad := Damages(err); len(bad) == 0 || !strings.Contains(bad[0].Detail, tc.want) {
				t.Fatalf("Verify: %v, want %q", err, tc.want)
			}
			for _, err := range []error{
				r.Each(func(uint64, Hash, int64, []byte) error { return nil }),
				r.Series(func(Series) error { return nil }),
			} {
				if err != nil && len(Damages(err)) == 0 {
					t.Fatal(err)
				}
			}
		})
	}
}

// A block that many entries point to, not one after the other, is one damage.
func TestDamageIsReportedOnce(t *testing.T) {
	m := testModel(900, 1, 100)
	order := m.order()
	rand.New(rand.NewPCG(3, 3)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	fs := vfs.NewMem()
	m.write(t, fs, testPath, order)
	data := filetest.Read(t, fs, testPath)
	data[0] ^= 1
	n := 0
	err := open(t, memFile(t, data), testPath).Each(func(uint64, Hash, int64, []byte) error { n++; return nil })
	if bad := Damages(err); len(bad) != 1 || n == 0 || n >= len(order)-1 {
		t.Fatalf("%d of %d chunks, %d errors: %v", n, len(order), len(bad), err)
	}
}

// More adjacent blocks than the states of one read: small blocks, which this
// writer does not make of itself.
func TestReadOfManySmallBlocks(t *testing.T) {
	m := testModel(1, 3*maxRun, 10)
	fs := vfs.NewMem()
	w, err := Create(fs, testPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.order() {
		if err := w.Add(p.bucket, p.hash, p.chunk, 1, m.chunks[p]); err != nil {
			t.Fatal(err)
		}
		if err := w.endBlock(kindData); err != nil {
			t.Fatal(err)
		}
	}
	m.series, m.buckets = nil, nil
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := m.compare(open(t, fs, testPath)); err != nil {
		t.Fatal(err)
	}
	data := filetest.Read(t, fs, testPath)
	const block, size = maxRun + 5, 10 + crcSize
	data[block*size] ^= 1
	p := m.order()[0]
	err = open(t, memFile(t, data), testPath).Chunks(p.bucket, p.hash, 0, 3*maxRun, func(c int64, _ []byte) error {
		if c == block {
			t.Fatalf("chunk %d is damaged and was returned", c)
		}
		return nil
	})
	if bad := Damages(err); len(bad) != 1 || bad[0].Offset != block*size {
		t.Fatalf("damage is %v", err)
	}
}

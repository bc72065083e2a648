package segment

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/zstd"
	"dalmatiner/internal/model/identity"
	"dalmatiner/internal/testkit/filetest"
)

// badContent is a change of a file that leaves its checksums right, and what Verify says of it.
type badContent struct {
	change func(b []byte) []byte
	want   string
}

// badContents are changes of the file of r, which has its footer at foot.
func badContents(t *testing.T, r *Reader, foot int) map[string]badContent {
	d, err := r.directory()
	if err != nil {
		t.Fatal(err)
	}
	small := r.footer().first(kindSmall)
	index := func(change func(l, entry0 []byte)) func([]byte) []byte {
		return func(b []byte) []byte { return replaceLeaf(t, b, r.footer().first(kindLeaf), change) }
	}
	block := func(i int, change func(b []byte)) func([]byte) []byte {
		return func(b []byte) []byte {
			return replaceBlock(t, b, i, func(b []byte) []byte { change(b); return b })
		}
	}
	whole := func(change func(b []byte)) func([]byte) []byte {
		return func(b []byte) []byte { change(b); return b }
	}
	le := binary.LittleEndian
	return map[string]badContent{
		"rows out of order": {index(func(l, _ []byte) { swapHashes(l[leafHead+rowSize:], rowSize) }),
			"out of order"},
		"another first entry": {index(func(l, _ []byte) { le.PutUint64(l[12:], 1<<40) }),
			"not the one of the directory"},
		"a block that is not there": {index(func(_, e []byte) { le.PutUint32(e[4:], 1<<20) }),
			"points outside the data"},
		"an offset beyond its end": {index(func(_, e []byte) { le.PutUint16(e[8:], 65535) }),
			"points outside the data"},
		"a length behind the block": {index(func(_, e []byte) { le.PutUint16(e[10:], 65535) }),
			"points outside the data"},
		"more rows than bytes": {block(r.footer().first(kindLeaf), func(b []byte) { b[16] = 0x7f }),
			errPacked.Error()},
		"no rows": {block(r.footer().first(kindLeaf), func(b []byte) { b[16] = 0 }),
			errPacked.Error()},
		"another number of chunks": {whole(func(b []byte) { le.PutUint64(b[foot+48:], 7) }),
			"the file holds"},
		"another number of keys": {whole(func(b []byte) { le.PutUint64(b[foot+112:], 7) }),
			"identities and buckets"},
		"more rows of rollups": {block(small, func(b []byte) { le.PutUint16(b[8:], 65535) }),
			"does not hold its rows"},
		"a rollup of no spans": {block(small, func(b []byte) { le.PutUint16(b[rollupHead+16:], 0) }),
			"spans 0x0"},
		"a rollup cut short": {block(small, func(b []byte) { b[rollupHead+18]-- }),
			"damaged chunk"},
		"another window": {whole(func(b []byte) { le.PutUint32(b[foot+120:], SmallChunks) }),
			"of a window of 10 chunks"},
		"another first row": {block(small, func(b []byte) { b[0]++ }), "first row is not"},
		"rollups out of order": {block(small, func(b []byte) {
			swapHashes(b[rollupHead+RollupRow:], RollupRow)
		}), "out of order"},
		"more names than there are": {block(r.footer().first(kindSeries), func(b []byte) { b[0]++ }),
			identity.ErrPacked.Error()},
		"a block of no bytes": {whole(func(b []byte) {
			copy(b[r.footer().dirOff+8:][:8], make([]byte, 8))
		}), "block 0 of"},
		"a stored form of none": {whole(func(b []byte) { b[d.offset(small)] = 7 }),
			zstd.ErrBlock.Error()},
		"data of no stored form": {whole(func(b []byte) { b[0] = 7 }), zstd.ErrBlock.Error()},
	}
}

// A file whose checksums are right and whose content is not is found by Verify,
// and no reader leaves its bounds.
func TestVerifyFindsWhatChecksumsDoNot(t *testing.T) {
	m := testModel(90, 3, 100)
	fs := vfs.NewMem()
	m.write(t, fs, testPath, m.order())
	intact := filetest.Read(t, fs, testPath)
	r := open(t, fs, testPath)
	for name, tc := range badContents(t, r, len(intact)-tailSize) {
		t.Run(name, func(t *testing.T) {
			data := tc.change(slices.Clone(intact))
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
	rand.New(rand.NewPCG(3, 3)).Shuffle(len(order), func(i, j int) {
		order[i], order[j] = order[j], order[i]
	})
	fs := vfs.NewMem()
	m.write(t, fs, testPath, order)
	data := filetest.Read(t, fs, testPath)
	data[0] ^= 1
	n := 0
	err := open(t, memFile(t, data), testPath).Each(func(uint64, Hash, int64, []byte) error {
		n++
		return nil
	})
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
	const block, size = maxRun + 5, 1 + 10 + crcSize
	data[block*size] ^= 1
	p := m.order()[0]
	err = open(t, memFile(t, data), testPath).Chunks(p.bucket, p.hash, 0, 3*maxRun,
		func(c int64, _ []byte) error {
			if c == block {
				t.Fatalf("chunk %d is damaged and was returned", c)
			}
			return nil
		})
	if bad := Damages(err); len(bad) != 1 || bad[0].Offset != block*size {
		t.Fatalf("damage is %v", err)
	}
}

// replaceBlock returns a file in which block i has other content, and all else is as it was.
func replaceBlock(t *testing.T, data []byte, i int, change func(content []byte) []byte) []byte {
	t.Helper()
	r := open(t, memFile(t, data), testPath)
	d, err := r.directory()
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	var offsets []int64
	for n := range d.blocks {
		block := data[d.offset(n) : d.offset(n+1)-crcSize]
		if n == i {
			old, _, err := zstd.Content(nil, block, maxBlock)
			if err != nil {
				t.Fatal(err)
			}
			block = append([]byte{zstd.Plain}, change(slices.Clone(old))...)
		}
		at := int64(len(out))
		offsets = append(offsets, at)
		out = append(out, block...)
		out = binary.LittleEndian.AppendUint32(out, blockCRC(block, at))
	}
	foot := *r.footer()
	foot.dirOff = int64(len(out))
	dir := appendDirectory(nil, offsets, foot.dirOff, d.raw[(d.blocks+1)*offsetSize:])
	foot.dirCRC = blockCRC(dir, foot.dirOff)
	out = append(out, dir...)
	foot.info.Size = int64(len(out)) + footerSize
	return appendFooter(out, &foot)
}

// replaceLeaf is replaceBlock for a leaf that is unpacked.
func replaceLeaf(t *testing.T, data []byte, i int, change func(l, entry0 []byte)) []byte {
	t.Helper()
	return replaceBlock(t, data, i, func(packed []byte) []byte {
		l, err := unpackLeaf(nil, packed)
		if err != nil {
			t.Fatal(err)
		}
		change(l, l[leafHead+l.rows()*rowSize:])
		packed, _ = l.appendPacked(nil)
		return packed
	})
}

// swapHashes swaps the hash of a row with that of the next.
func swapHashes(b []byte, row int) {
	for i := range 16 {
		b[i], b[row+i] = b[row+i], b[i]
	}
}

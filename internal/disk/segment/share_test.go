package segment

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/dedup"
	"dalmatiner/internal/testkit/filetest"
)

// noise is n bytes that do not compress.
func noise(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// sharedModel has series of which all chunks of a number are equal, beside others, so that
// every kind of share is in it: by many series, by one series with itself, of short chunks.
func sharedModel(series int) *model {
	m := &model{chunks: map[place][]byte{}, compress: true}
	for s := range series {
		h := testHash(uint64(s) * 7919)
		for c := range int64(6) {
			data := noise(uint64(c), 700) // equal for all series
			switch {
			case s%5 == 0:
				data = noise(uint64(s)<<8|uint64(c), 500)
			case s%5 == 1:
				data = noise(uint64(s), 300) // equal within the series
			case s%5 == 2:
				data = []byte{byte(c)} // too short to be shared
			}
			m.chunks[place{1, h, c}] = data
		}
	}
	return m
}

// writeFile writes a model and returns the file.
func (m *model) writeFile(t *testing.T) []byte {
	t.Helper()
	fs := vfs.NewMem()
	m.write(t, fs, testPath, m.order())
	return filetest.Read(t, fs, testPath)
}

// TestEqualChunksAreStoredOnce: the data blocks hold each chunk once for 64 series, and all of
// them read it.
func TestEqualChunksAreStoredOnce(t *testing.T) {
	m := sharedModel(300)
	file := m.writeFile(t)
	r := open(t, memFile(t, file), testPath)
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
	if err := m.compare(r); err != nil {
		t.Fatal(err)
	}
	d, err := r.directory()
	if err != nil {
		t.Fatal(err)
	}
	// 120 series share the chunks of six numbers, which is two copies each.
	least := 60*6*500 + 60*300 + 6*2*700
	data := int(d.offset(r.footer().first(kindLeaf)))
	if data < least-least/50 || data > least+least/50 {
		t.Errorf("%d bytes of data blocks, want about %d", data, least)
	}
	if info := r.Info(); info.Chunks != 1800 || info.DataBytes != 60*6*(500+300+1)+120*6*700 {
		t.Errorf("%+v does not count what was added", info)
	}
}

// TestNoCopyIsForMoreSeries: what a damaged data block takes from series that have nothing else
// in it is bounded.
func TestNoCopyIsForMoreSeries(t *testing.T) {
	m := sharedModel(1000)
	r := open(t, memFile(t, m.writeFile(t)), testPath)
	d, err := r.directory()
	if err != nil {
		t.Fatal(err)
	}
	type copyOf struct {
		block uint32
		off   uint16
	}
	sharers := make(map[copyOf]map[Hash]bool)
	for i := range d.leaves {
		l, err := d.leaf(i, nil)
		if err != nil {
			t.Fatal(err)
		}
		for row := range l.rows() {
			for n := l.rowFirst(row); n < l.rowPast(row); n++ {
				e := l.entry(n)
				c := copyOf{e.block, e.off}
				if sharers[c] == nil {
					sharers[c] = make(map[Hash]bool)
				}
				sharers[c][Hash(l.rowHash(row))] = true
			}
		}
	}
	most := 0
	for _, series := range sharers {
		most = max(most, len(series))
	}
	if most != dedup.MaxSharers {
		t.Errorf("a copy is shared by %d series, want %d", most, dedup.MaxSharers)
	}
}

// TestEverySharerIsReadOrLost: with any one block damaged, each chunk of all series is read or
// named as lost, also where its bytes lie among those of another series.
func TestEverySharerIsReadOrLost(t *testing.T) {
	m := sharedModel(150)
	whole := m.writeFile(t)
	r := open(t, memFile(t, whole), testPath)
	d, err := r.directory()
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for i := range d.blocks {
		data := slices.Clone(whole)
		data[d.offset(i)] ^= 1
		r := open(t, memFile(t, data), testPath)
		m.readOrLost(t, r)
		if i >= int(r.footer().blocks[kindData]) {
			continue
		}
		n := 0
		err := r.Scan(1, 0, 6, func(_ uint64, _ Hash, _ int64, data []byte) error {
			if data == nil {
				n++
			}
			return nil
		}, nil)
		if bad := Damages(err); len(bad) != 1 || bad[0].Offset != d.offset(i) {
			t.Errorf("block %d: %v", i, err)
		}
		lost = max(lost, n)
	}
	if least := 6 * dedup.MaxSharers / 2; lost < least {
		t.Errorf("no block takes more than %d chunks, want %d", lost, least)
	}
}

// TestGroupsBehindNoise: groups that do not compress hide none behind them that do.
func TestGroupsBehindNoise(t *testing.T) {
	m := &model{chunks: map[place][]byte{}, compress: true}
	var all, packed int
	for c := range int64(800) {
		data := noise(uint64(c), 700)
		if c%400 >= 200 { // four groups of each kind, in turns
			for i := range data {
				data[i] &= 15
			}
			packed += len(data) / 2
		} else {
			packed += len(data)
		}
		all += len(data)
		m.chunks[place{1, testHash(1), c}] = data
	}
	if n := len(m.writeFile(t)); n > packed+all/16 {
		t.Errorf("%d bytes of chunks take %d, want about %d", all, n, packed)
	}
}

package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"dalmatiner/internal/codec/chunk"
)

// Rollup is a unit of time for which a window keeps the aggregates of each of its series, so
// that a long range need not be read chunk by chunk.
type Rollup int

// The rollups: Small has units of SmallChunks, Large of LargeChunks.
const (
	Small Rollup = iota
	Large
	rollups
)

// The sizes of rollups.
const (
	// SmallChunks and LargeChunks are how many chunks a unit has. The number of its first
	// chunk is a multiple of that. With slots of a second a unit is two hours, or a day.
	SmallChunks = 10
	LargeChunks = chunk.MaxRollup / chunk.Slots

	// FewChunks is the number of chunks below which a series in a window has no rollups: the
	// headers of so few chunks take no longer to read than they are worth.
	FewChunks = SmallChunks

	// MaxSpans is the most units of one rollup that a window has.
	MaxSpans = LargeChunks / SmallChunks

	// RollupRow is how many bytes a series takes in a rollup besides its entries: hash,
	// spans, and where the entries end.
	RollupRow = 16 + 2 + 2

	// RollupDigest is how many bytes of an entry are its digest.
	RollupDigest = digestSize
)

// Chunks returns how many chunks a unit of the rollup has.
func (l Rollup) Chunks() int64 { return [rollups]int64{SmallChunks, LargeChunks}[l] }

func (l Rollup) kind() kind { return kindSmall + kind(l) }

const (
	rollupHead = 8 + 2 // bucket, rows
	digestSize = 8
)

// rollupWriter gathers the rows of one rollup, cut into blocks.
type rollupWriter struct {
	rows, data []byte // of the open block
	bucket     uint64
	last       Hash
	any        bool
	section    section // of finished blocks
	fences     []byte
}

// AddRollups adds the entries that a series has in a rollup. Bit i of spans is set if the
// i-th unit of the window has chunks. For each of these units, in order, data has what
// chunk.AppendRollup wrote, and digests has the sum of chunk.NumberedDigest over its chunks.
// Both are copied. A series with one unit of Small needs none of Large, which says the same.
// Describe must have named the window before. Series come in the order of
// bucket and hash.
func (w *Writer) AddRollups(l Rollup, bucket uint64, h Hash, spans uint16, digests []uint64,
	data []byte) error {
	if w.err != nil {
		return w.err
	}
	v := &w.rollups[l]
	units := int64(w.foot.info.WindowChunks) / l.Chunks()
	size := len(digests)*digestSize + len(data)
	if spans == 0 || int64(spans)>>units != 0 || len(data) == 0 ||
		len(digests) != bits.OnesCount16(spans) || rollupHead+RollupRow+size > leafBody {
		return w.fail(fmt.Errorf("segment: %d bytes of rollups and %d digests for spans %#x of a "+
			"window of %d chunks",
			len(data), len(digests), spans, w.foot.info.WindowChunks))
	}
	if v.any && (bucket < v.bucket || bucket == v.bucket && bytes.Compare(h[:], v.last[:]) <= 0) {
		return w.fail(fmt.Errorf("segment: rollups of series %s in bucket %d come behind those of %s "+
			"in %d", h, bucket, v.last, v.bucket))
	}
	size += rollupHead + len(v.rows) + RollupRow + len(v.data)
	if len(v.rows) > 0 && (bucket != v.bucket || size > leafBody) {
		v.end()
	}
	if len(v.rows) == 0 {
		v.fences = appendFence(v.fences, bucket, &h, 0)
	}
	v.bucket, v.last, v.any = bucket, h, true
	for _, d := range digests {
		v.data = binary.LittleEndian.AppendUint64(v.data, d)
	}
	v.data = append(v.data, data...)
	v.rows = append(v.rows, h[:]...)
	v.rows = binary.LittleEndian.AppendUint16(v.rows, spans)
	v.rows = binary.LittleEndian.AppendUint16(v.rows, uint16(len(v.data)))
	return nil
}

// end finishes the open block.
func (v *rollupWriter) end() {
	if len(v.rows) == 0 {
		return
	}
	s := &v.section
	s.buf = binary.LittleEndian.AppendUint64(s.buf, v.bucket)
	s.buf = binary.LittleEndian.AppendUint16(s.buf, uint16(len(v.rows)/RollupRow))
	s.buf = append(append(s.buf, v.rows...), v.data...)
	s.finish()
	v.rows, v.data = v.rows[:0], v.data[:0]
}

// writeRollups writes the blocks of all rollups and appends their fences and the
// last key.
func (w *Writer) writeRollups(fences []byte) ([]byte, error) {
	for l := range rollups {
		v := &w.rollups[l]
		v.end()
		if err := w.writeSection(&v.section, l.kind()); err != nil {
			return nil, err
		}
		fences = append(fences, v.fences...)
	}
	if w.lastKey == nil {
		w.lastKey = make([]byte, fenceSize)
	}
	return append(fences, w.lastKey...), nil
}

// rollupBlock is a checked block of rollups as it lies in the file, without its
// CRC.
type rollupBlock []byte

func parseRollupBlock(src []byte) (rollupBlock, error) {
	b := rollupBlock(src)
	if len(src) < rollupHead || b.rows() == 0 || len(src) < rollupHead+b.rows()*RollupRow {
		return nil, fmt.Errorf("a block of rollups of %d bytes does not hold its rows", len(src))
	}
	past := 0
	for i := range b.rows() {
		_, spans, end := b.row(i)
		if spans == 0 || spans>>MaxSpans != 0 || end <= past+digestSize*bits.OnesCount16(spans) {
			return nil, fmt.Errorf("row %d of a block of rollups has spans %#x and ends at %d, the one "+
				"before at %d", i, spans, end, past)
		}
		past = end
	}
	if want := rollupHead + b.rows()*RollupRow + past; want != len(src) {
		return nil, fmt.Errorf("a block of rollups of %d bytes, its rows take %d", len(src), want)
	}
	return b, nil
}

func (b rollupBlock) bucket() uint64 { return binary.LittleEndian.Uint64(b) }
func (b rollupBlock) rows() int      { return int(binary.LittleEndian.Uint16(b[8:])) }

// row returns the series of row i, its spans and where its entries end.
func (b rollupBlock) row(i int) (hash []byte, spans uint16, end int) {
	row := b[rollupHead+i*RollupRow:][:RollupRow]
	return row[:16], binary.LittleEndian.Uint16(row[16:]), int(binary.LittleEndian.Uint16(row[18:]))
}

// data returns the digests of row i, and its entries behind them.
func (b rollupBlock) data(i int) []byte {
	start := 0
	if i > 0 {
		_, _, start = b.row(i - 1)
	}
	_, _, end := b.row(i)
	return b[rollupHead+b.rows()*RollupRow:][start:end]
}

// find returns the first row whose hash is not below h.
func (b rollupBlock) find(h *Hash) int {
	lo, hi := 0, b.rows()
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if row, _, _ := b.row(mid); bytes.Compare(row, h[:]) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// decode reads the entries of row i into dst, by unit of the window.
func (b rollupBlock) decode(i int, dst *[MaxSpans]chunk.Header) (spans uint16, err error) {
	_, spans, _ = b.row(i)
	src := b.data(i)[digestSize*bits.OnesCount16(spans):]
	for n := range MaxSpans {
		if spans>>n&1 == 0 {
			continue
		}
		if dst[n], src, err = chunk.ParseRollup(src); err != nil {
			return 0, err
		}
	}
	if len(src) != 0 {
		return 0, fmt.Errorf("%d bytes behind the rollups of a series", len(src))
	}
	return spans, nil
}

// digests reads the digests of row i into dst, by unit of the window.
func (b rollupBlock) digests(i int, dst *[MaxSpans]uint64) (spans uint16) {
	_, spans, _ = b.row(i)
	src := b.data(i)
	for n := range MaxSpans {
		if spans>>n&1 != 0 {
			dst[n] = binary.LittleEndian.Uint64(src)
			src = src[digestSize:]
		}
	}
	return spans
}

// Rollups reads the entries that a series has in a rollup. It sets dst[i] to the aggregates of
// the i-th unit of the window where bit i of spans is set, and leaves the others as they are.
// spans is 0 if the segment keeps no rollups of the series: it has fewer than FewChunks chunks,
// or none, or the segment is no window. read is how many
// bytes came from the file. What is read stays in memory until DropIndex.
func (r *Reader) Rollups(l Rollup, bucket uint64, h Hash, dst *[MaxSpans]chunk.Header) (
	spans uint16, read int64, err error) {
	at, ok, err := r.rollupRow(l, bucket, h)
	if l == Large && err == nil && !ok {
		var small [MaxSpans]chunk.Header
		unit, read, err := r.onlySmall(bucket, h, at.read, func(at rollupPosition) error {
			_, err := at.block.decode(at.row, &small)
			return err
		})
		if err != nil || unit < 0 {
			return 0, read, err
		}
		var large chunk.Node
		large.Append(&small[unit], unit*SmallChunks*chunk.Slots)
		dst[0] = large.Header()
		return 1, read, nil
	}
	if err != nil || !ok {
		return 0, at.read, err
	}
	if spans, err = at.block.decode(at.row, dst); err != nil {
		return 0, at.read, at.d.malformedRollups(at.number, err)
	}
	return spans, at.read, nil
}

// RollupDigests is Rollups for the digests: dst[i] is the sum of chunk.NumberedDigest over the
// chunks of the i-th unit.
func (r *Reader) RollupDigests(l Rollup, bucket uint64, h Hash,
	dst *[MaxSpans]uint64) (spans uint16, read int64, err error) {
	at, ok, err := r.rollupRow(l, bucket, h)
	if l == Large && err == nil && !ok {
		var small [MaxSpans]uint64
		unit, read, err := r.onlySmall(bucket, h, at.read, func(at rollupPosition) error {
			at.block.digests(at.row, &small)
			return nil
		})
		if err != nil || unit < 0 {
			return 0, read, err
		}
		dst[0] = small[unit]
		return 1, read, nil
	}
	if err != nil || !ok {
		return 0, at.read, err
	}
	return at.block.digests(at.row, dst), at.read, nil
}

// onlySmall returns the one unit of Small that a series without a row in Large has, and lets
// decode read the row of it; -1 if the series is not there. read goes on with its argument.
func (r *Reader) onlySmall(bucket uint64, h Hash, read int64,
	decode func(at rollupPosition) error) (unit int, _ int64, err error) {
	if int64(r.footer().info.WindowChunks) < LargeChunks {
		return -1, read, nil
	}
	at, ok, err := r.rollupRow(Small, bucket, h)
	if read += at.read; err != nil || !ok {
		return -1, read, err
	}
	_, spans, _ := at.block.row(at.row)
	if err = decode(at); err == nil && bits.OnesCount16(spans) != 1 {
		err = fmt.Errorf("series %s has spans %#x, and no row in the larger rollups", h, spans)
	}
	if err != nil {
		return -1, read, at.d.malformedRollups(at.number, err)
	}
	return bits.TrailingZeros16(spans), read, nil
}

// rollupPosition is where a series stands in a rollup.
type rollupPosition struct {
	d      *directory
	number int // of the block, among those of all rollups
	block  rollupBlock
	row    int
	read   int64
}

// rollupRow looks for a series in a rollup.
func (r *Reader) rollupRow(l Rollup, bucket uint64,
	h Hash) (at rollupPosition, ok bool, err error) {
	at.d, err = r.directory()
	if err != nil || !at.d.holds(bucket, &h) {
		return at, false, err
	}
	var buf [fenceSize]byte
	first, past := at.d.rollupRange(l)
	n := len(at.d.leaves)
	at.number = at.d.searchFences(n+first, n+past, appendFence(buf[:0], bucket, &h, 0)) - n
	if at.number < first {
		return at, false, nil
	}
	at.block, at.read, err = at.d.rollupBlock(at.number, nil)
	if err != nil || at.block.bucket() != bucket {
		return at, false, err
	}
	if at.row = at.block.find(&h); at.row == at.block.rows() {
		return at, false, nil
	}
	hash, _, _ := at.block.row(at.row)
	return at, bytes.Equal(hash, h[:]), nil
}

// rollupRange returns the blocks of a rollup, among those of all rollups.
func (d *directory) rollupRange(l Rollup) (first, past int) {
	if l == Small {
		return 0, d.small
	}
	return d.small, len(d.rollups)
}

// rollupBlock returns a block of rollups, from memory or from the file; then read
// is its size. It stays in memory unless the caller lends memory for it.
func (d *directory) rollupBlock(i int, lent *scratch) (b rollupBlock, read int64, err error) {
	if b := d.rollups[i].Load(); b != nil {
		return *b, 0, nil
	}
	s := lent
	if s == nil {
		s = scratches.Get().(*scratch)
		defer scratches.Put(s)
	}
	block := d.foot.first(kindSmall) + i
	read = d.size(block)
	raw, err := d.readBlock(s, block, kindSmall)
	if err != nil {
		return nil, read, err
	}
	if lent == nil {
		raw = slices.Clone(raw)
	}
	if b, err = parseRollupBlock(raw); err != nil {
		return nil, read, d.malformedRollups(i, err)
	}
	if kept := b; lent == nil && d.rollups[i].CompareAndSwap(nil, &kept) {
		d.loaded.Add(int64(cap(raw)))
	}
	return b, read, nil
}

func (d *directory) malformedRollups(i int, err error) *DamageError {
	return d.malformed(d.foot.first(kindSmall)+i, kindSmall, err.Error())
}

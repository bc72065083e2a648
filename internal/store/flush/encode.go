package flush

import (
	"cmp"
	"slices"
	"unsafe"

	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/head"
)

// Captures is what a flush takes from groups.
type Captures struct {
	Groups []*head.Group
	List   []head.Capture // of Groups, in their order
}

// Add adds what a group gave.
func (f *Captures) Add(g *head.Group, c *head.Capture) {
	f.Groups, f.List = append(f.Groups, g), append(f.List, *c)
}

// Empty reports whether there is no chunk in any.
func (f *Captures) Empty() bool {
	return !slices.ContainsFunc(f.List, func(c head.Capture) bool { return !c.Empty() })
}

// Chunk is one chunk on its way to the segment.
type Chunk struct {
	ID     metric.SeriesID
	Bucket uint64
	Points int16
	Marked bool // it may lie over something older
	Number int64
	Data   []byte
}

const (
	// DefaultShareSize is about how much memory a flush takes to put chunks in order: for
	// those that it copies, and for lists. All chunks at once could be as much as
	// what is flushed, when there is least of it.
	DefaultShareSize = 20 << 20

	// maxShares bounds the shares of a bucket's series: the first byte of their
	// ids tells them apart.
	maxShares = 256

	// ListCost is what a chunk of a share takes beside its bytes: its place in the
	// list and two keys.
	ListCost = 56*9/8 + 2*8

	// slabSize is the size of the buffers that hold the chunks of a share.
	slabSize = 1 << 20

	// piecesAhead columns before its turn a flush asks for the pieces of one, and
	// chunksAhead chunks before its turn for the bytes of one, whose place in the list
	// it has asked for as many before that. What comes from memory takes as long as
	// some of them.
	piecesAhead = 8
	chunksAhead = 16
)

// shares returns in how many shares of about so much memory chunks are put of which
// so many bytes are copied.
func shares(copied, chunks, share int64) int {
	n := 1
	for int64(n)*share < copied+chunks*ListCost && n < maxShares {
		n *= 2
	}
	return n
}

// ShareNeed returns the memory in which chunks of one bucket are put in order: the
// bytes that are copied for a share, and its lists. Of several shares one is larger than
// others.
func ShareNeed(copied, chunks, share int64) int64 {
	n := int64(shares(copied, chunks, share))
	need := (copied + chunks*ListCost) / n
	if n > 1 {
		need += need / 8
	}
	return need
}

// Each calls emit with the chunks of all captures, by bucket, series id and
// number, in shares of about so much memory. data is valid during the call.
func (e *Encoder) Each(f *Captures, share int64, emit func(*Chunk) error) error {
	order := make([]int, len(f.List))
	for i := range order {
		order[i] = i
	}
	bucket := func(i int) uint64 { return f.Groups[i].Bucket }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(bucket(a), bucket(b)) })
	for len(order) > 0 {
		n, copied, chunks := 0, int64(0), int64(0)
		for n < len(order) && bucket(order[n]) == bucket(order[0]) {
			copied += f.List[order[n]].CopiedBytes()
			chunks += f.List[order[n]].Chunks()
			n++
		}
		parts := shares(copied, chunks, share)
		e.reserve(int(chunks) / parts)
		for i := range parts {
			if err := e.encode(f, order[:n], i, parts); err != nil {
				return err
			}
			if err := e.emit(emit); err != nil {
				return err
			}
		}
		order = order[n:]
	}
	return nil
}

// emit calls emit with the chunks of a share in order. They lie in any order in
// memory that is larger than a cache.
func (e *Encoder) emit(emit func(*Chunk) error) error {
	keys := e.order.of(e.all)
	for i, at := range keys {
		if n := i + 2*chunksAhead; n < len(keys) {
			kernel.Fetch(uintptr(unsafe.Pointer(&e.all[uint32(keys[n])])), 2)
		}
		if n := i + chunksAhead; n < len(keys) {
			fetchAll(e.all[uint32(keys[n])].Data)
		}
		if err := emit(&e.all[uint32(at)]); err != nil {
			return err
		}
	}
	return nil
}

// fetchAll asks for all bytes of data.
func fetchAll(data []byte) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	first := at &^ 63
	kernel.Fetch(first, int(at+uintptr(len(data))-first)/64+1)
}

// Encoder encodes one share after the other in the same memory.
type Encoder struct {
	flusher head.Flusher
	columns [head.Width]uint8 // of a group, those of the share
	all     []Chunk
	order   chunkOrder
	slabs   [][]byte // filled up to the one at
	at      int
}

// reserve makes room for shares of about so many chunks.
func (e *Encoder) reserve(chunks int) {
	e.all = slices.Grow(e.all[:0], chunks+chunks/8)
}

// encode sets all to one share of the chunks of some captures. They are made
// group by group, where a group's sealed blocks are in the cache, and only then put in
// order: going through the sealed blocks in the order of the ids costs a third more of a
// flush.
func (e *Encoder) encode(f *Captures, captures []int, share, shares int) error {
	e.all, e.at = e.all[:0], 0
	for i := range e.slabs {
		e.slabs[i] = e.slabs[i][:0]
	}
	for _, i := range captures {
		c := &f.List[i]
		columns := e.choose(c.Columns(), share, shares)
		for n := -piecesAhead; n < len(columns); n++ {
			if next := n + piecesAhead; next < len(columns) {
				c.Fetch(int(columns[next]))
			}
			if n < 0 {
				continue
			}
			col := int(columns[n])
			err := e.flusher.Column(c, col, func(number int64, points int, data []byte, stays,
				marked bool) error {
				if !stays {
					data = e.keep(data)
				}
				e.all = append(e.all, Chunk{c.Columns().ID(col), f.Groups[i].Bucket, int16(points), marked,
					number, data})
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// choose returns the columns of a share.
func (e *Encoder) choose(all *head.Columns, share, shares int) []uint8 {
	n := 0
	for col := range all.Len() {
		if all.Has(col) && int(all.ID(col)[0])*shares/maxShares == share {
			e.columns[n] = uint8(col)
			n++
		}
	}
	return e.columns[:n]
}

// keep returns a copy of data that is valid for the rest of the share.
func (e *Encoder) keep(data []byte) []byte {
	for ; e.at < len(e.slabs); e.at++ {
		slab := e.slabs[e.at]
		if n := len(slab); n+len(data) <= cap(slab) {
			e.slabs[e.at] = append(slab, data...)
			return e.slabs[e.at][n:]
		}
	}
	e.slabs = append(e.slabs, append(make([]byte, 0, max(slabSize, len(data))), data...))
	return e.slabs[e.at]
}

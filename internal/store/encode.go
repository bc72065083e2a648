package store

import (
	"cmp"
	"slices"

	"dalmatiner/internal/head"
	"dalmatiner/internal/metric"
)

// encoded is one chunk on its way to the segment.
type encoded struct {
	id     metric.SeriesID
	bucket uint32
	points int32
	number int64
	data   []byte
}

const (
	// encodeShare is about how many bytes of chunks a flush puts in order at a
	// time. All of them at once would be as much memory as what is flushed, when
	// there is least of it.
	encodeShare = 16 << 20

	// maxShares bounds the shares of a bucket's series: the first byte of their
	// ids tells them apart.
	maxShares = 256

	// listCost is what a chunk of a share takes beside its bytes: its place in the
	// list and two keys.
	listCost = 56*9/8 + 2*8

	// slabSize is the size of the buffers that hold the chunks of a share.
	slabSize = 1 << 20
)

// shares returns in how many shares of about so many bytes some bytes are put.
func shares(bytes, share int64) int {
	n := 1
	for int64(n)*share < bytes && n < maxShares {
		n *= 2
	}
	return n
}

// shareNeed returns the memory in which chunks of one bucket are put in order: the
// bytes of a share, and their lists. Of several shares one is larger than others.
func shareNeed(bytes, chunks, share int64) int64 {
	n := int64(shares(bytes, share))
	need := (bytes + chunks*listCost) / n
	if n > 1 {
		need += need / 8
	}
	return need
}

// each calls emit with the chunks of all captures, by bucket, series id and
// number, in shares of about so many bytes. data is valid during the call.
func (e *shareEncoder) each(f *flushing, share int64, emit func(*encoded) error) error {
	order := make([]int, len(f.captures))
	for i := range order {
		order[i] = i
	}
	bucket := func(i int) uint32 { return f.groups[i].Bucket }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(bucket(a), bucket(b)) })
	for len(order) > 0 {
		n, bytes, chunks := 0, int64(0), int64(0)
		for n < len(order) && bucket(order[n]) == bucket(order[0]) {
			bytes += f.captures[order[n]].Bytes()
			chunks += f.captures[order[n]].Chunks()
			n++
		}
		parts := shares(bytes, share)
		e.reserve(int(chunks) / parts)
		for i := range parts {
			if err := e.encode(f, order[:n], i, parts); err != nil {
				return err
			}
			for _, at := range e.order.of(e.all) {
				if err := emit(&e.all[uint32(at)]); err != nil {
					return err
				}
			}
		}
		order = order[n:]
	}
	return nil
}

// shareEncoder encodes one share after the other in the same memory.
type shareEncoder struct {
	flusher head.Flusher
	all     []encoded
	order   chunkOrder
	slabs   [][]byte // filled up to the one at
	at      int
}

// reserve makes room for shares of about so many chunks.
func (e *shareEncoder) reserve(chunks int) {
	e.all = slices.Grow(e.all[:0], chunks+chunks/8)
}

// encode sets all to one share of the chunks of some captures. They are made
// group by group, where a group's tiles are in the cache, and only then put in
// order: going through the tiles in the order of the ids costs a third more of a
// flush.
func (e *shareEncoder) encode(f *flushing, captures []int, share, shares int) error {
	e.all, e.at = e.all[:0], 0
	for i := range e.slabs {
		e.slabs[i] = e.slabs[i][:0]
	}
	for _, i := range captures {
		c := &f.captures[i]
		for col := range c.Columns().Len() {
			if !c.Columns().Has(col) {
				continue
			}
			id := c.Columns().ID(col)
			if int(id[0])*shares/maxShares != share {
				continue
			}
			err := e.flusher.Column(c, col, func(number int64, points int, data []byte) error {
				e.all = append(e.all, encoded{id, f.groups[i].Bucket, int32(points), number, e.keep(data)})
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// keep returns a copy of data that is valid for the rest of the share.
func (e *shareEncoder) keep(data []byte) []byte {
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

package names

import "dalmatiner/internal/model/metric"

const (
	firstBlock = 512
	blockSize  = 1 << 16 // of all but the first; the longest key fits in

	// perName is what an entry takes in the map: 32 bytes, and what the map has free.
	perName = 56
)

// name is what is known of a series.
type name struct {
	bucket uint64
	key    []byte
	named  bool // the key is known
}

// generation holds names that go together. Keys lie in blocks, and entries hold no pointer: the
// garbage collector has nothing to look at. Keys that were handed out stay as long as somebody
// has them.
type generation struct {
	index  map[metric.SeriesID]entry
	blocks [][]byte
	bytes  int64
}

// entry says where a key is.
type entry struct {
	bucket         uint64
	block          uint32 // its number, from 1; 0: no key is known
	offset, length uint16
}

func (g *generation) find(id metric.SeriesID) (name, bool) {
	e, ok := g.index[id]
	switch {
	case !ok:
		return name{}, false
	case e.block == 0:
		return name{bucket: e.bucket}, true
	}
	from, past := int(e.offset), int(e.offset)+int(e.length)
	return name{bucket: e.bucket, key: g.blocks[e.block-1][from:past:past], named: true}, true
}

// put adds a name, with a copy of its key, which it returns.
func (g *generation) put(id metric.SeriesID, n name) name {
	if g.index == nil {
		g.index = make(map[metric.SeriesID]entry)
	}
	e := entry{bucket: n.bucket}
	if n.named {
		block := g.room(len(n.key))
		from := len(*block)
		*block = append(*block, n.key...)
		e.block, e.offset, e.length = uint32(len(g.blocks)), uint16(from), uint16(len(n.key))
		n.key = (*block)[from:len(*block):len(*block)]
	}
	if _, replaced := g.index[id]; !replaced {
		g.bytes += perName
	}
	g.index[id] = e
	return n
}

// room returns the last block. It has room for n bytes: blocks never move, since keys point there.
func (g *generation) room(n int) *[]byte {
	last := len(g.blocks) - 1
	if last < 0 || cap(g.blocks[last])-len(g.blocks[last]) < n {
		size := firstBlock
		if last >= 0 {
			size = min(2*cap(g.blocks[last]), blockSize)
		}
		size = max(size, n)
		g.blocks = append(g.blocks, make([]byte, 0, size))
		g.bytes += int64(size)
		last++
	}
	return &g.blocks[last]
}

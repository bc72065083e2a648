package postings

import "github.com/RoaringBitmap/roaring/v2"

// Builder makes lists of ids that are all known: in a tenth of the time that adding them one by one
// takes.
type Builder struct {
	begins []uint32 // of each list in ids
	past   []uint32
	ids    []uint32
}

// NewBuilder returns a builder of lists that have at most so many ids each.
func NewBuilder(most []uint32) *Builder {
	b := &Builder{begins: make([]uint32, len(most)), past: make([]uint32, len(most))}
	n := uint32(0)
	for list, m := range most {
		b.begins[list], b.past[list] = n, n
		n += m
	}
	b.ids = make([]uint32, n)
	return b
}

// Add adds an id to a list. The ids of a list come in ascending order.
func (b *Builder) Add(list, id uint32) {
	b.ids[b.past[list]] = id
	b.past[list]++
}

// Lists returns the lists. The builder must not be used any more.
func (b *Builder) Lists() (l Lists) {
	l.heads = make([]head, len(b.begins))
	var dense []uint64
	for list, begin := range b.begins {
		ids := b.ids[begin:b.past[list]]
		if len(ids) <= maxShort {
			l.store(&l.heads[list], ids)
			continue
		}
		var m *roaring.Bitmap
		if m, dense = bitmapOf(ids, dense); m == nil {
			m = roaring.BitmapOf(ids...)
		}
		l.heads[list] = head{at: uint32(len(l.long)), n: isLong}
		l.long = append(l.long, m)
	}
	return l
}

// bitmapOf makes the bitmap of ids that lie so close to each other that their bits are less than
// they are; else nil. buf is memory that is returned.
func bitmapOf(ids []uint32, buf []uint64) (*roaring.Bitmap, []uint64) {
	n := int(ids[len(ids)-1]/64) + 1
	if n > len(ids) {
		return nil, buf
	}
	if cap(buf) < n {
		buf = make([]uint64, n)
	}
	buf = buf[:n]
	clear(buf)
	for _, id := range ids {
		buf[id/64] |= 1 << (id % 64)
	}
	return roaring.FromDense(buf, true), buf
}

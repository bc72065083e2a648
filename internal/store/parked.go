package store

import "encoding/binary"

// parkedNames are the names of a bucket's series that have no column. They lie
// one behind the other in pieces of memory without a pointer per series, so that
// a known series costs its name, a length, 12 bytes here and its entry in the
// index. The bucket's lock guards it.
type parkedNames struct {
	pieces [][]byte
	at     []uint64    // by number: place of the name, noName for a free number
	left   []seriesRef // by number: the column it had last, which the catalogue has
	free   []uint32    // numbers
	live   int         // bytes of names in use
	dead   int         // bytes of names that were removed
}

const (
	pieceBits = 18
	pieceSize = 1 << pieceBits // several of the longest names

	noName = 1<<64 - 1
)

// add takes a name in and returns its number. left is the column the series had
// last.
func (p *parkedNames) add(key []byte, left seriesRef) seriesRef {
	need := binary.MaxVarintLen32 + len(key)
	n := len(p.pieces)
	if n == 0 || len(p.pieces[n-1])+need > pieceSize {
		p.pieces = append(p.pieces, make([]byte, 0, pieceSize))
		n++
	}
	piece := &p.pieces[n-1]
	at := uint64((n-1)<<pieceBits | len(*piece))
	*piece = append(binary.AppendUvarint(*piece, uint64(len(key))), key...)
	p.live += len(*piece) - int(at&(pieceSize-1))
	if len(p.free) == 0 {
		p.at, p.left = append(p.at, at), append(p.left, left)
		return parkedRef(uint32(len(p.at) - 1))
	}
	number := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.at[number], p.left[number] = at, left
	return parkedRef(number)
}

// remove gives a number back and returns the column that the series had last.
func (p *parkedNames) remove(ref seriesRef) (left seriesRef) {
	number := ref.number()
	left = p.left[number]
	n := len(parkedName(p.pieces, p.at[number]))
	n += len(binary.AppendUvarint(nil, uint64(n)))
	p.live -= n
	p.dead += n
	p.at[number] = noName
	p.free = append(p.free, number)
	if p.dead > p.live+pieceSize {
		p.compact()
	}
	return left
}

// compact copies the names in use together. Views that were taken before keep
// the old memory.
func (p *parkedNames) compact() {
	old := *p
	*p = parkedNames{}
	for number, at := range old.at {
		if at == noName {
			p.at, p.left = append(p.at, noName), append(p.left, 0)
			p.free = append(p.free, uint32(number))
			continue
		}
		numbers := p.free
		p.free = nil // the number stays
		p.add(parkedName(old.pieces, at), old.left[number])
		p.free = numbers
	}
}

// find returns the numbers of the names that takes wants.
func (p *parkedNames) find(takes func(key []byte) bool) (refs []seriesRef) {
	for number, at := range p.at {
		if at != noName && takes(parkedName(p.pieces, at)) {
			refs = append(refs, parkedRef(uint32(number)))
		}
	}
	return refs
}

// key returns a name, which must not be written to.
func (p *parkedNames) key(ref seriesRef) []byte { return parkedName(p.pieces, p.at[ref.number()]) }

// is reports whether a reference is to a name.
func (p *parkedNames) is(ref seriesRef, key []byte) bool {
	return int(ref.number()) < len(p.at) && p.at[ref.number()] != noName && string(p.key(ref)) == string(key)
}

// len returns how many series are parked.
func (p *parkedNames) len() int { return len(p.at) - len(p.free) }

// bytes returns the memory of it all.
func (p *parkedNames) bytes() int64 {
	return int64(len(p.pieces))*pieceSize + int64(cap(p.at))*8 + int64(cap(p.left)+cap(p.free))*4
}

// parkedView is what was parked at one moment.
type parkedView struct {
	pieces [][]byte
	at     []uint64
}

func (p *parkedNames) view() parkedView {
	return parkedView{append([][]byte(nil), p.pieces...), append([]uint64(nil), p.at...)}
}

// each calls fn for every name until it returns false. The key must not be
// written to.
func (v parkedView) each(fn func(key []byte) bool) bool {
	for _, at := range v.at {
		if at != noName && !fn(parkedName(v.pieces, at)) {
			return false
		}
	}
	return true
}

func parkedName(pieces [][]byte, at uint64) []byte {
	b := pieces[at>>pieceBits][at&(pieceSize-1):]
	n, used := binary.Uvarint(b)
	end := used + int(n)
	return b[used:end:end]
}

package series

import "encoding/binary"

// InactiveNames holds the names of a bucket's series that have no column. They lie
// one behind the other in pieces of memory without a pointer per series, so that
// a known series costs its name, a length, 12 bytes here and its entry in the
// index. The bucket's lock guards it.
type InactiveNames struct {
	pieces [][]byte
	at     []uint64 // by number: place of the name, noName for a free number
	left   []Ref    // by number: the column it had last, which the catalogue has
	free   []uint32 // numbers
	live   int      // bytes of names in use
	dead   int      // bytes of names that were removed
}

const (
	pieceBits = 18
	pieceSize = 1 << pieceBits // several of the longest names

	noName = 1<<64 - 1
)

// Add takes a name in and returns its number. left is the column the series had
// last.
func (p *InactiveNames) Add(key []byte, left Ref) Ref {
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
		return inactiveRef(uint32(len(p.at) - 1))
	}
	number := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.at[number], p.left[number] = at, left
	return inactiveRef(number)
}

// Remove gives a number back and returns the column that the series had last.
func (p *InactiveNames) Remove(ref Ref) (left Ref) {
	number := ref.number()
	left = p.left[number]
	n := len(nameAt(p.pieces, p.at[number]))
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
func (p *InactiveNames) compact() {
	old := *p
	*p = InactiveNames{}
	for number, at := range old.at {
		if at == noName {
			p.at, p.left = append(p.at, noName), append(p.left, 0)
			p.free = append(p.free, uint32(number))
			continue
		}
		numbers := p.free
		p.free = nil // the number stays
		p.Add(nameAt(old.pieces, at), old.left[number])
		p.free = numbers
	}
}

// Find returns the numbers of the names that takes wants.
func (p *InactiveNames) Find(takes func(key []byte) bool) (refs []Ref) {
	for number, at := range p.at {
		if at != noName && takes(nameAt(p.pieces, at)) {
			refs = append(refs, inactiveRef(uint32(number)))
		}
	}
	return refs
}

// Key returns a name, which must not be written to.
func (p *InactiveNames) Key(ref Ref) []byte { return nameAt(p.pieces, p.at[ref.number()]) }

// LookupKey is Key for a reference that may be another bucket's, or out of date.
func (p *InactiveNames) LookupKey(ref Ref) (key []byte, ok bool) {
	if n := int(ref.number()); n < len(p.at) && p.at[n] != noName {
		return p.Key(ref), true
	}
	return nil, false
}

// Column returns the column that a series had last.
func (p *InactiveNames) Column(ref Ref) Ref { return p.left[ref.number()] }

// Is reports whether a reference is to a name.
func (p *InactiveNames) Is(ref Ref, key []byte) bool {
	return int(ref.number()) < len(p.at) && p.at[ref.number()] != noName &&
		string(p.Key(ref)) == string(key)
}

// Len returns how many names there are.
func (p *InactiveNames) Len() int { return len(p.at) - len(p.free) }

// Bytes returns the memory of it all.
func (p *InactiveNames) Bytes() int64 {
	return int64(len(p.pieces))*pieceSize + int64(cap(p.at))*8 + int64(cap(p.left)+cap(p.free))*4
}

// InactiveView is the names of one moment.
type InactiveView struct {
	pieces [][]byte
	at     []uint64
}

func (p *InactiveNames) View() InactiveView {
	return InactiveView{append([][]byte(nil), p.pieces...), append([]uint64(nil), p.at...)}
}

// Each calls fn for every name until it returns false. The key must not be
// written to.
func (v InactiveView) Each(fn func(key []byte) bool) bool {
	for _, at := range v.at {
		if at != noName && !fn(nameAt(v.pieces, at)) {
			return false
		}
	}
	return true
}

func nameAt(pieces [][]byte, at uint64) []byte {
	b := pieces[at>>pieceBits][at&(pieceSize-1):]
	n, used := binary.Uvarint(b)
	end := used + int(n)
	return b[used:end:end]
}

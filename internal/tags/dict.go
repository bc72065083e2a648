package tags

import (
	"bytes"
	"dalmatiner/internal/tags/arena"
	"encoding/binary"
	"iter"

	"github.com/zeebo/xxh3"
)

// table finds numbers by hashes: open addressing, in the order of the hashes but for collisions.
type table struct {
	slots []uint64 // hash<<32 | number+1; 0 = free
	n     int
}

const minTable = 16

// home is where a hash belongs. Hashes may come in their order, as a walk gives them: without
// the factor they would fill one end of a table that grows.
func (t *table) home(hash uint32) int {
	return int(uint64(hash*0x9e3779b1) * uint64(len(t.slots)) >> 32)
}

func (t *table) next(at int) int {
	if at++; at == len(t.slots) {
		return 0
	}
	return at
}

// add adds a number. Numbers may have equal hashes.
func (t *table) add(hash, number uint32) {
	if t.n*4 >= len(t.slots)*3 {
		t.resize(len(t.slots) * 5 / 4)
	}
	t.put(uint64(hash)<<32 | uint64(number) + 1)
	t.n++
}

// grow makes room for so many more numbers.
func (t *table) grow(n int) {
	if n = (t.n+n)*4/3 + 1; n > len(t.slots) {
		t.resize(n)
	}
}

func (t *table) resize(n int) {
	old := t.slots
	t.slots = make([]uint64, max(minTable, n))
	for _, s := range old {
		if s != 0 {
			t.put(s)
		}
	}
}

func (t *table) put(s uint64) {
	at := t.home(uint32(s >> 32))
	for t.slots[at] != 0 {
		at = t.next(at)
	}
	t.slots[at] = s
}

// remove removes a number that was added with that hash, and closes the gap.
func (t *table) remove(hash, number uint32) {
	at := t.home(hash)
	for t.slots[at] != uint64(hash)<<32|uint64(number)+1 {
		at = t.next(at)
	}
	t.n--
	for gap := at; ; {
		at = t.next(at)
		s := t.slots[at]
		if s == 0 {
			t.slots[gap] = 0
			return
		}
		// s may move into the gap unless its home lies behind it, cyclically.
		home := t.home(uint32(s >> 32))
		if (at-home+len(t.slots))%len(t.slots) >= (at-gap+len(t.slots))%len(t.slots) {
			t.slots[gap], gap = s, at
		}
	}
}

// search goes through the numbers of a hash: more is false when there are no more.
type search struct {
	t    *table
	at   int
	hash uint32
}

func (t *table) search(hash uint32) search {
	if len(t.slots) == 0 {
		return search{}
	}
	return search{t: t, at: t.home(hash), hash: hash}
}

func (s *search) next() (number uint32, more bool) {
	if s.t == nil {
		return 0, false
	}
	for {
		slot := s.t.slots[s.at]
		if slot == 0 {
			return 0, false
		}
		s.at = s.t.next(s.at)
		if uint32(slot>>32) == s.hash {
			return uint32(slot) - 1, true
		}
	}
}

func (t *table) bytes() int64 { return int64(len(t.slots)) * 8 }

// dict gives texts numbers, small ones, while something holds them.
type dict struct {
	texts arena.Arena
	at    []arena.Ref // of each number
	holds []uint32    // of each number; 0 = the number is free
	free  []uint32
	table table
}

func hashOf(text []byte) uint32 { return uint32(xxh3.Hash(text) >> 32) }

// find returns the number of a text.
func (d *dict) find(text []byte) (number uint32, ok bool) { return d.findHash(text, hashOf(text)) }

func (d *dict) findHash(text []byte, hash uint32) (number uint32, ok bool) {
	s := d.table.search(hash)
	for {
		number, ok = s.next()
		if !ok || bytes.Equal(d.text(number), text) {
			return number, ok
		}
	}
}

// text returns the text of a number that is held. It is valid while it is held.
func (d *dict) text(number uint32) []byte {
	block := d.texts.Get(d.at[number])
	n, size := binary.Uvarint(block)
	return block[size : size+int(n)]
}

// hold returns the number of a text, and holds it once more. fresh says that nothing held it.
func (d *dict) hold(text []byte) (number uint32, fresh bool) {
	hash := hashOf(text)
	if number, ok := d.findHash(text, hash); ok {
		d.holds[number]++
		return number, false
	}
	number = d.enter(text, hash)
	d.holds[number] = 1
	return number, true
}

// intern returns the number of a text without holding it: its owner counts the holds, and ends
// with sweep.
func (d *dict) intern(text []byte) uint32 {
	hash := hashOf(text)
	if number, ok := d.findHash(text, hash); ok {
		return number
	}
	return d.enter(text, hash)
}

// sweep lets go of what nothing holds.
func (d *dict) sweep() {
	free := make(map[uint32]bool, len(d.free))
	for _, number := range d.free {
		free[number] = true
	}
	for number, holds := range d.holds {
		if holds == 0 && !free[uint32(number)] {
			d.holds[number] = 1
			d.release(uint32(number))
		}
	}
}

// enter gives a text a number that nothing holds.
func (d *dict) enter(text []byte, hash uint32) (number uint32) {
	if n := len(d.free); n > 0 {
		number, d.free = d.free[n-1], d.free[:n-1]
	} else {
		number = uint32(len(d.at))
		d.at, d.holds = append(d.at, 0), append(d.holds, 0)
	}
	var size [binary.MaxVarintLen32]byte
	n := binary.PutUvarint(size[:], uint64(len(text)))
	at, block := d.texts.Take(n + len(text))
	copy(block[copy(block, size[:n]):], text)
	d.at[number] = at
	d.table.add(hash, number)
	return number
}

// release holds a number once less, and reports whether it is gone with that.
func (d *dict) release(number uint32) bool {
	if d.holds[number]--; d.holds[number] > 0 {
		return false
	}
	text := d.text(number)
	n := len(text)
	d.table.remove(hashOf(text), number)
	d.texts.Give(d.at[number], uvarintLen(uint64(n))+n)
	d.free = append(d.free, number)
	return true
}

func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// all yields the numbers that are held.
func (d *dict) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for number, holds := range d.holds {
			if holds > 0 && !yield(uint32(number)) {
				return
			}
		}
	}
}

// len returns how many texts are held.
func (d *dict) len() int { return d.table.n }

func (d *dict) bytes() int64 {
	return d.texts.Bytes() + int64(cap(d.at)+cap(d.holds)+cap(d.free))*4 + d.table.bytes()
}

package head

import "sync"

// sealedSlabSize is the size of a slab of encoded points. It is small, because a slab goes
// back to the system when the last of its sealed blocks has gone. It is a huge page,
// because a flush reads pieces of all slabs in the order of their series: with pages of
// 4 KiB it would wait for the page table at each of them.
const sealedSlabSize = 2 << 20

// sealedMemory holds the pieces of sealed blocks, outside the Go heap as cells are (but
// see cells_heap.go). A flush gives tens of MiB back at a time. On the heap they would
// stay until a collection, and would count for its pace until then. Sealed blocks are put
// behind each other, and a flush takes all there are, so slabs become empty in the order
// in which they were filled; none is filled again before that. It may be used
// concurrently.
type sealedMemory struct {
	mu    sync.Mutex
	last  *sealedSlab   // takes the next sealed block
	spare []*sealedSlab // without a sealed block
	taken int64         // bytes of all slabs that a sealed block has or had: others have no memory
	used  int64         // bytes of sealed blocks
}

type sealedSlab struct {
	mem          []byte
	end          int // of the last sealed block
	most         int // that end was
	sealedBlocks int
}

// alloc returns n bytes of any content, 8-aligned, and the slab to free them in.
func (m *sealedMemory) alloc(n int) ([]byte, *sealedSlab) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n = (n + 7) &^ 7
	if m.last == nil || m.last.end+n > len(m.last.mem) {
		m.next(n)
	}
	s := m.last
	mem := s.mem[s.end : s.end+n : s.end+n]
	s.end += n
	if d := s.end - s.most; d > 0 {
		s.most = s.end
		m.taken += int64(d)
	}
	s.sealedBlocks++
	m.used += int64(n)
	return mem, s
}

// next makes a slab the last one that has room for n bytes.
func (m *sealedMemory) next(n int) {
	if s := m.last; s != nil && s.sealedBlocks == 0 {
		m.spare = append(m.spare, s)
	}
	if i := len(m.spare) - 1; i >= 0 && n <= len(m.spare[i].mem) {
		m.last, m.spare = m.spare[i], m.spare[:i]
		return
	}
	m.last = &sealedSlab{mem: mapBytes(max(n, sealedSlabSize))}
}

// free takes back what alloc returned. The caller must not touch it again.
func (m *sealedMemory) free(mem []byte, s *sealedSlab) {
	spoil(mem)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= int64(len(mem))
	if s.sealedBlocks--; s.sealedBlocks > 0 {
		return
	}
	s.end = 0
	if s != m.last {
		m.spare = append(m.spare, s)
	}
}

// freeAll frees sealed blocks that nobody reads any more.
func (m *sealedMemory) freeAll(sealedBlocks []*sealedBlock) {
	for _, t := range sealedBlocks {
		m.free(t.mem, t.slab)
	}
}

// release gives the slabs without a sealed block back to the system.
func (m *sealedMemory) release() {
	m.mu.Lock()
	gone := m.spare
	m.spare = nil
	if s := m.last; s != nil && s.sealedBlocks == 0 {
		gone, m.last = append(gone, s), nil
	}
	for _, s := range gone {
		m.taken -= int64(s.most)
	}
	m.mu.Unlock()
	for _, s := range gone {
		unmapBytes(s.mem)
	}
}

// unusedBytes returns the bytes of memory that are no sealed block's.
func (m *sealedMemory) unusedBytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.taken - m.used
}

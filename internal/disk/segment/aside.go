package segment

// asideBlocks is how many blocks a walk keeps of those that it reads out of turn.
const asideBlocks = 8

// asideCache holds blocks that several series share and that lie before the blocks read last by a
// walk. So neither the blocks read last nor the shared ones need be read again.
type asideCache struct {
	blocks [asideBlocks]asideBlock
	next   int
}

// asideBlock is a block with its content, nil where it is damaged.
type asideBlock struct {
	number int // plus 1
	data   []byte
	memory scratch
}

// find returns a block that was read.
func (a *asideCache) find(block int) (data []byte, ok bool) {
	if a == nil {
		return nil, false
	}
	for i := range a.blocks {
		if b := &a.blocks[i]; b.number == block+1 {
			return b.data, true
		}
	}
	return nil, false
}

// forget keeps the memory only.
func (a *asideCache) forget() {
	if a == nil {
		return
	}
	for i := range a.blocks {
		b := &a.blocks[i]
		b.number, b.data = 0, nil
	}
}

// outOfTurn reports whether a block lies before those that were read last.
func (w *walk) outOfTurn(block int) bool { return w.count > 0 && block < w.first }

// loadAside reads a block into the place of the oldest one there.
func (w *walk) loadAside(block int) error {
	if w.aside == nil {
		w.aside = new(asideCache)
	}
	b := &w.aside.blocks[w.aside.next]
	w.aside.next = (w.aside.next + 1) % asideBlocks
	b.number, b.data = 0, nil
	w.read += w.d.size(block)
	data, err := w.d.readBlock(&b.memory, block, kindData)
	if err == nil && w.blocks != nil {
		w.blocks.Offer(w.d.file.block(block), data)
	}
	if err != nil {
		err = w.found.add(err)
	}
	if err == nil {
		b.number, b.data = block+1, data
	}
	return err
}

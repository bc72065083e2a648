package graphite

import (
	"errors"
	"sync/atomic"

	"dalmatiner/internal/host/memory"
)

const (
	// smallCells bounds the values of a frame that is unpickled beside others: a
	// list of several thousand points. A larger one is unpickled alone, so that
	// frames made to need a lot of memory do not need it at the same time.
	smallCells = 1 << 16

	// keptUnpickler is what an unpickler may keep for the next frame, in bytes.
	keptUnpickler = 4 << 20
)

// unpicklers are the unpicklers of all connections: one for each processor, and
// one for large frames. Whoever comes when all are in use waits.
type unpicklers struct {
	small chan *unpickler
	large chan *unpickler
	used  atomic.Int64 // bytes
}

// newUnpicklers returns n small unpicklers and a large one, as a pool of the
// budget.
func newUnpicklers(b *memory.Budget, n int) *unpicklers {
	p := &unpicklers{small: make(chan *unpickler, n), large: make(chan *unpickler, 1)}
	for range n {
		p.small <- new(unpickler)
	}
	p.large <- new(unpickler)
	b.Add(memory.Pool{
		Name:  "graphite-unpicklers",
		Holds: "values of pickled lists; larger lists are taken one by one",
		Use:   p.used.Load,
	})
	return p
}

// run unpickles a frame and calls use with what came of it, which is valid during
// the call.
func (p *unpicklers) run(frame []byte, use func(u *unpickler, top cell, err error)) {
	u := <-p.small
	top, err := p.try(u, frame, smallCells)
	if errors.Is(err, errManyVals) {
		p.keep(u)
		p.small <- u
		u = <-p.large
		top, err = p.try(u, frame, maxCells)
		use(u, top, err)
		p.keep(u)
		p.large <- u
		return
	}
	use(u, top, err)
	p.keep(u)
	p.small <- u
}

// try runs an unpickler and counts the memory that it took.
func (p *unpicklers) try(u *unpickler, frame []byte, most int) (cell, error) {
	before := u.bytesHeld()
	u.most = most
	top, err := u.run(frame)
	p.used.Add(u.bytesHeld() - before)
	return top, err
}

// keep drops the memory of an unpickler that is more than it may keep.
func (p *unpicklers) keep(u *unpickler) {
	u.src = nil
	if n := u.bytesHeld(); n > keptUnpickler {
		*u = unpickler{}
		p.used.Add(-n)
	}
}

// bytesHeld returns the memory of an unpickler.
func (u *unpickler) bytesHeld() int64 {
	const cellBytes, sliceBytes, markBytes = 16, 24, 8
	n := (cap(u.stack)+cap(u.memo)+cap(u.tuple))*cellBytes + cap(u.marks)*markBytes +
		cap(u.lists)*sliceBytes + cap(u.text)
	n += len(u.far) * farCost * cellBytes
	for _, l := range u.lists[:cap(u.lists)] {
		n += cap(l) * cellBytes
	}
	return int64(n)
}

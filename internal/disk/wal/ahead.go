package wal

import (
	"errors"
	"io"
	"sync"
)

// A file is read some blocks ahead of the checksums: a disk that works while
// nobody waits for it gives a cold log in the time of the slower of the two.
const (
	aheadBlock  = 512 << 10
	aheadBlocks = 4
)

// What the system is asked to have in memory by the time it is read: a disk is
// slower than checksums, and faster than what is done for a record that defines
// something. A call asks for no more than the system takes at once.
const (
	prefetchFiles = 8
	prefetchPiece = 512 << 10
)

// prefetch asks for the files of a replay, some files ahead of it, until stop is
// called. That it fails is no harm.
func (p *replay) prefetch() (stop func()) {
	p.turn = make(chan struct{}, len(p.files))
	quit := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for i := range p.files {
			if i >= prefetchFiles {
				select {
				case <-p.turn:
				case <-quit:
					return
				}
			}
			if f := &p.files[i]; p.wants(f) && f.fault == "" && !p.prefetchFile(f, quit) {
				return
			}
		}
	})
	return func() {
		close(quit)
		done.Wait()
	}
}

func (p *replay) prefetchFile(f *file, quit <-chan struct{}) bool {
	r, err := p.in.o.FS.Open(p.in.o.path(f.first))
	if err != nil {
		return true
	}
	defer r.Close()
	for at := int64(0); at < f.size; at += prefetchPiece {
		select {
		case <-quit:
			return false
		default:
		}
		if r.Prefetch(at, prefetchPiece) != nil {
			return true
		}
	}
	return true
}

// readAhead reads one file after the other in goroutines of its own.
type readAhead struct {
	free chan []byte // blocks to read into
	full chan block  // in order; closed at the end of the goroutine
	cur  []byte      // what is left of
	mem  []byte      // the block under way
	err  error       // behind it
}

type block struct {
	data []byte
	err  error
}

// start reads r from now on, and nothing else any more. r is the goroutine's
// until stop returns.
func (a *readAhead) start(r io.Reader) io.Reader {
	a.stop()
	free := make(chan []byte, aheadBlocks)
	for range aheadBlocks {
		free <- make([]byte, aheadBlock)
	}
	a.free, a.full = free, make(chan block, aheadBlocks)
	go func(full chan<- block) {
		defer close(full)
		for mem := range free {
			n, err := io.ReadFull(r, mem)
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = io.EOF
			}
			full <- block{mem[:n], err}
			if err != nil {
				return
			}
		}
	}(a.full)
	return a
}

// stop ends the reading and waits for it.
func (a *readAhead) stop() {
	if a.free == nil {
		return
	}
	close(a.free)
	for range a.full { // until it is closed
	}
	*a = readAhead{}
}

// Read is that of the file.
func (a *readAhead) Read(p []byte) (int, error) {
	for len(a.cur) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		if a.mem != nil {
			a.free <- a.mem // there is a place for each
			a.mem = nil
		}
		b := <-a.full
		a.cur, a.mem, a.err = b.data, b.data[:cap(b.data)], b.err
	}
	n := copy(p, a.cur)
	a.cur = a.cur[n:]
	return n, nil
}

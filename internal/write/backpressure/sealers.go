package backpressure

import (
	"runtime"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/write/head"
)

// sealQueueLen bounds the closed blocks that wait for a sealer. A full
// queue slows senders, who wait for a place in it; 256 blocks are 30 MiB.
const sealQueueLen = 256

// Sealers encode closed blocks, one goroutine a core.
type Sealers struct {
	control *Control
	queue   chan *head.Group
	running sync.WaitGroup
	sealed  atomic.Int64
}

// NewSealers returns sealers, which Start starts.
func NewSealers(c *Control) *Sealers {
	return &Sealers{control: c, queue: make(chan *head.Group, sealQueueLen)}
}

// Start starts the goroutines.
func (s *Sealers) Start() {
	for range runtime.GOMAXPROCS(0) {
		s.running.Go(s.seal)
	}
}

// Close waits until every closed block is encoded. No call of HandleWrite may follow.
func (s *Sealers) Close() {
	close(s.queue)
	s.running.Wait()
}

// HandleWrite does what a write to a group asks for: its closed blocks are encoded, and a flush is
// asked for where late points take too much memory. It waits for a place in the queue.
func (s *Sealers) HandleWrite(g *head.Group, a head.WriteResult) {
	for range a.Closed {
		s.queue <- g
	}
	if c := s.control; a.Late > 0 && c.late.Add(a.Late) > c.o.LateMemory {
		c.WantFlush()
	}
}

func (s *Sealers) seal() {
	var sealer head.Sealer
	for g := range s.queue {
		n, ok := sealer.Seal(g)
		if !ok {
			continue
		}
		s.sealed.Add(1)
		if c := s.control; c.sealed.Add(n) > c.o.FlushBytes {
			c.WantFlush()
		}
	}
}

// QueuedBlocks returns how many closed blocks wait.
func (s *Sealers) QueuedBlocks() int { return len(s.queue) }

// IsBehind reports whether half of the queue is taken.
func (s *Sealers) IsBehind() bool { return len(s.queue) > sealQueueLen/2 }

// SealedBlocks returns how many blocks were encoded since the start.
func (s *Sealers) SealedBlocks() int64 { return s.sealed.Load() }

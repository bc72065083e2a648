// Package backpressure holds senders back while the node cannot take more: too much is sealed
// and not flushed, memory is at its end, or the disk is full. A flush makes room, and whoever
// waits goes on. DESIGN.md has the rules.
package backpressure

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/host/memory"
)

// freeablePart of the memory limit is what encoding and flushing must be able to free, or
// senders do not wait for it.
const freeablePart = 16

// ErrUrgent is for those who wait for room while the node is to end.
var ErrUrgent = errors.New("the node is to end")

// Options says what bounds senders.
type Options struct {
	FS     vfs.FS
	Dir    string // whose disk counts
	Logger *slog.Logger

	FlushBytes int64 // sealed bytes that cause a flush; at twice as many senders wait
	LateMemory int64 // late points that cause a flush; at twice as many senders wait
	MinFree    int64 // free bytes of the disk, with less of which points are refused

	Memory    *memory.Budget
	HeadBytes func() int64 // memory of open blocks, which encoding frees
	NewSeries func() int64 // that the next flush names

	Stop    <-chan struct{} // closed when the store closes
	OnFatal func(error)     // called once when the store can no longer write
}

// Control knows what waits for a flush, and who waits for it. Its methods may be called
// concurrently.
type Control struct {
	o Options

	sealed, late atomic.Int64 // bytes that wait for a flush
	events       atomic.Int64 // the same of events
	waiting      atomic.Int64 // senders held back
	waits        atomic.Int64 // times one was

	flushWant   chan struct{}
	flushFailed atomic.Bool // the last flush did, before its commit point

	diskFull  atomic.Bool
	unwritten atomic.Bool // the MANIFEST had no room for the last edit
	freeDisk  atomic.Int64

	mu   sync.Mutex
	room chan struct{} // closed and replaced when a flush made room

	urgent     chan struct{} // closed by Release
	urgentOnce sync.Once

	failOnce sync.Once
	failure  atomic.Pointer[error]
}

// New returns the control of a store.
func New(o Options) *Control {
	return &Control{
		o:         o,
		flushWant: make(chan struct{}, 1),
		room:      make(chan struct{}),
		urgent:    make(chan struct{}),
	}
}

// AddSealed counts bytes that were sealed, or no longer wait for a flush.
func (c *Control) AddSealed(n int64) { c.sealed.Add(n) }

// AddLate is AddSealed for the memory of late points.
func (c *Control) AddLate(n int64) { c.late.Add(n) }

// AddEvents is AddSealed for events. They make a flush due as sealed blocks do.
func (c *Control) AddEvents(n int64) {
	if c.events.Add(n) > c.o.FlushBytes && n > 0 && !c.flushFailed.Load() {
		c.WantFlush()
	}
}

// Events returns the bytes of events that wait for a flush.
func (c *Control) Events() int64 { return c.events.Load() }

// SealedBytes returns the encoded bytes that wait for a flush.
func (c *Control) SealedBytes() int64 { return c.sealed.Load() }

// LateBytes returns the memory of late points that wait for a flush.
func (c *Control) LateBytes() int64 { return c.late.Load() }

// LateMemory returns the memory of late points that causes a flush.
func (c *Control) LateMemory() int64 { return c.o.LateMemory }

// IsFull reports whether senders have to wait for a flush, or for memory that
// encoding and flushing can free. On a full disk no flush will free any; points
// are refused then.
func (c *Control) IsFull() bool {
	if c.diskFull.Load() {
		return false
	}
	if c.sealed.Load()+c.events.Load() > 2*c.o.FlushBytes || c.late.Load() > 2*c.o.LateMemory {
		return true
	}
	return c.UnderPressure()
}

// UnderPressure reports whether the process is at the end of its memory, and encoding
// and flushing can free some.
func (c *Control) UnderPressure() bool {
	m := c.o.Memory
	if m.Level() < memory.Hold {
		return false
	}
	return c.o.HeadBytes()+c.sealed.Load()+c.late.Load()+c.events.Load() > m.Limit()/freeablePart
}

// Wait holds a sender back while it is full: TCP then slows the sender down.
func (c *Control) Wait() {
	if c.IsFull() {
		_ = c.Hold(context.Background(), c.IsFull, true) // what ends it the sender meets next
	}
}

// Hold waits while full says so. What ends it sooner is ctx, the end of the store
// (version.ErrClosed) or its failure, and for urgent callers Release (ErrUrgent).
func (c *Control) Hold(ctx context.Context, full func() bool, urgent bool) error {
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	var released <-chan struct{}
	if urgent {
		released = c.urgent
	}
	for {
		room := c.roomMade()
		if err := c.Failure(); err != nil || !full() {
			return err
		}
		if !c.flushFailed.Load() { // or it is tried again every second
			c.WantFlush()
		}
		c.waits.Add(1)
		select {
		case <-room:
		case <-released:
			return ErrUrgent
		case <-ctx.Done():
			return ctx.Err()
		case <-c.o.Stop:
			return version.ErrClosed
		}
	}
}

// Release lets the senders go on that are held back until a flush has
// made room, and holds back no more. It is called before they are told to end:
// a disk that takes no segments must not keep the node from ending.
func (c *Control) Release() { c.urgentOnce.Do(func() { close(c.urgent) }) }

// WaitingSenders returns how many senders are held back now.
func (c *Control) WaitingSenders() int64 { return c.waiting.Load() }

// Waits returns how often a sender was held back.
func (c *Control) Waits() int64 { return c.waits.Load() }

// roomMade returns what is closed when there may be room.
func (c *Control) roomMade() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.room
}

// MakeRoom wakes those who wait.
func (c *Control) MakeRoom() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.room)
	c.room = make(chan struct{})
}

// MakeRoomIfFree wakes those who wait where there is room by now.
func (c *Control) MakeRoomIfFree() {
	if c.waiting.Load() > 0 && !c.IsFull() {
		c.MakeRoom()
	}
}

// WantFlush asks for a flush.
func (c *Control) WantFlush() {
	select {
	case c.flushWant <- struct{}{}:
	default: // one is already asked for
	}
}

// FlushWanted receives when a flush is asked for.
func (c *Control) FlushWanted() <-chan struct{} { return c.flushWant }

// SetFlushFailed notes how the last flush ended.
func (c *Control) SetFlushFailed(failed bool) { c.flushFailed.Store(failed) }

// FlushFailed reports whether the last flush failed before its commit point.
func (c *Control) FlushFailed() bool { return c.flushFailed.Load() }

// Fail records the first error after which no promise can be kept, and says
// so. The flush and the log stop by themselves.
func (c *Control) Fail(err error) {
	c.failOnce.Do(func() {
		c.failure.Store(&err)
		c.o.Logger.Error("the store can no longer write: restart it after the cause is mended", "err",
			err)
		c.MakeRoom() // nobody waits for a flush that will not come
		c.o.OnFatal(err)
	})
}

// Failure returns what Fail recorded.
func (c *Control) Failure() error {
	if p := c.failure.Load(); p != nil {
		return *p
	}
	return nil
}

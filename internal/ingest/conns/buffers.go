package conns

import (
	"io"
	"sync/atomic"
	"time"

	"dalmatiner/internal/host/memory"
)

// Buffers counts the read buffers of a listener, in bytes.
type Buffers struct {
	limit int64
	used  atomic.Int64
}

const (
	// buffersPart of the process's limit is what the buffers of a listener may take
	// before busy connections no longer get larger ones.
	buffersPart = 16

	// maxBuffers is the same without a limit of the process.
	maxBuffers = 512 << 20
)

// NewBuffers adds the buffers of a listener to the budget as a pool.
func NewBuffers(b *memory.Budget, listener string) *Buffers {
	u := &Buffers{limit: b.Share(buffersPart, maxBuffers)}
	b.Add(memory.Pool{
		Name:  listener + "-buffers",
		Holds: "read buffers of connections; at the limit busy ones get no larger ones",
		Limit: u.limit, Use: u.used.Load,
	})
	return u
}

// Add counts a buffer that was taken, or with a negative number given back.
func (u *Buffers) Add(bytes int) { u.used.Add(int64(bytes)) }

// Room reports whether a buffer may be so much larger for speed alone.
func (u *Buffers) Room(bytes int) bool { return u.used.Load()+int64(bytes) <= u.limit }

// smallInput is what one sender's unfinished message may grow to while memory is
// short.
const smallInput = 2 << 20

// NewUnfinished adds the memory of a listener's unfinished messages to the budget:
// what a message needs beyond the buffer that every connection has. stall is how
// long a sender may bring less than progressBytes, most is what the largest message
// needs that comes in pieces, each with more memory.
func NewUnfinished(b *memory.Budget, name string, stall time.Duration, most int64) *memory.Leases {
	return b.NewLeases(memory.LeaseOptions{
		Name: name, Holds: "unfinished input; at the limit senders wait, and those without progress " +
			"are cut off",
		Limit: b.Share(buffersPart, maxBuffers), Small: smallInput, First: most, Stall: stall,
	})
}

// progressBytes is what a sender has to bring of a large message to count as one
// who makes progress: single bytes now and then do not.
const progressBytes = 16 << 10

// Reader reads what the other side of a connection sends. While a read lasts, the lease of its
// messages is awaited: the connection may be cut off by the rules of the lease's pool.
type Reader struct {
	From  io.Reader // what comes over the connection
	Conn  *Conn     // may be nil
	Lease *memory.Lease
	fresh int // bytes since the last progress
}

// Read reads once.
func (r *Reader) Read(p []byte) (int, error) {
	r.Lease.Await(func(why memory.CutReason) { r.Conn.Cut(string(why)) })
	defer r.Lease.Resume()
	r.Conn.Idle()
	n, err := r.From.Read(p)
	r.Conn.Busy()
	if r.fresh += n; r.fresh >= progressBytes || err != nil {
		r.fresh = 0
		r.Lease.NoteProgress()
	}
	return n, err
}

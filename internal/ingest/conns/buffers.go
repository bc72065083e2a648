package conns

import (
	"sync/atomic"

	"dalmatiner/internal/memory"
)

// Buffers counts the read buffers of a door, in bytes.
type Buffers struct {
	limit int64
	used  atomic.Int64
}

const (
	// buffersPart of the process's limit is what the buffers of a door may take
	// before busy connections no longer get larger ones.
	buffersPart = 16

	// maxBuffers is the same without a limit of the process.
	maxBuffers = 512 << 20
)

// NewBuffers adds the buffers of a door to the budget as a pool.
func NewBuffers(b *memory.Budget, door string) *Buffers {
	u := &Buffers{limit: b.Share(buffersPart, maxBuffers)}
	b.Add(memory.Pool{
		Name: door + "-buffers", Holds: "read buffers of connections; at the limit busy ones get no larger ones",
		Limit: u.limit, Use: u.used.Load,
	})
	return u
}

// Add counts a buffer that was taken, or with a negative number given back.
func (u *Buffers) Add(bytes int) { u.used.Add(int64(bytes)) }

// Room reports whether a buffer may be so much larger for speed alone.
func (u *Buffers) Room(bytes int) bool { return u.used.Load()+int64(bytes) <= u.limit }

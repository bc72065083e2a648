package ddbtcp

import (
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A sender that writes each point in pieces wakes its reader for every one of them,
// and a wake-up costs a hundred times what the piece does. After smallReads reads
// of less than smallRead bytes within smallTime the system is asked to wake the
// reader only for coalesceBytes, or at the end of the stream; every coalesceTime it
// looks by itself. When nothing came in one the sender is quiet, and the next piece
// is read at once.
const (
	smallRead     = 512
	smallReads    = 32
	smallTime     = 100 * time.Millisecond
	coalesceBytes = 8 << 10
	coalesceTime  = 10 * time.Millisecond
)

// gathering is how the pieces of one stream are read.
type coalescer struct {
	socket syscall.RawConn // nil where nothing is coalesced
	count  *atomic.Int64   // connections on which it is done
	on     bool
	quiet  bool      // nothing was read since the last look
	small  int       // small reads, one behind the other
	since  time.Time // of the first of them
}

// newCoalescer returns the coalescer of a connection, which does nothing where that
// is no socket.
func newCoalescer(nc net.Conn, count *atomic.Int64) coalescer {
	g := coalescer{count: count}
	if s, ok := nc.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			g.socket = raw
		}
	}
	return g
}

// read notes that n bytes were read. It is true when the pieces are coalesced from
// now on: the reader has to look every coalesceTime.
func (g *coalescer) read(n int) bool {
	if n > 0 {
		g.quiet = false
	}
	if g.socket == nil || g.on || n == 0 {
		return false
	}
	if n >= smallRead {
		g.small = 0
		return false
	}
	if g.small++; g.small == 1 {
		g.since = time.Now()
		return false
	}
	if g.small < smallReads {
		return false
	}
	g.small = 0
	if time.Since(g.since) > smallTime {
		return false
	}
	if g.wakeFor(coalesceBytes) != nil {
		g.socket = nil // the system does not do that: pieces are read one by one
		return false
	}
	g.on = true
	g.count.Add(1)
	return true
}

// looked is called every coalesceTime. It ends coalescing where nothing came.
func (g *coalescer) looked() error {
	if !g.on || !g.quiet {
		g.quiet = true
		return nil
	}
	g.close()
	return g.wakeFor(1)
}

// close ends coalescing at the end of the stream.
func (g *coalescer) close() {
	if g.on {
		g.on = false
		g.count.Add(-1)
	}
}

// wakeFor sets how many bytes have to be there until the reader is woken. Those that
// are there already count at once.
func (g *coalescer) wakeFor(bytes int) (err error) {
	failed := g.socket.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, bytes)
	})
	if failed != nil {
		return failed
	}
	return err
}

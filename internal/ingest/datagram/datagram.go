// Package datagram opens the UDP sockets of a listener and tells how many
// datagrams the kernel dropped because nobody read them in time: the only loss
// that the account of points cannot see.
package datagram

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// MaxPayload is the largest payload of a UDP datagram over IPv4; a buffer of
// this size never cuts one.
const MaxPayload = 65507

// Sockets are the sockets of one address. The kernel spreads senders over
// them, each sender always to the same one.
type Sockets struct {
	conns  []*net.UDPConn
	inodes []string // as /proc prints them; empty where unknown
	buffer int

	mu    sync.Mutex
	drops []uint64 // of each socket, as last seen
}

// Listen opens n sockets on addr, host:port, that each ask the kernel for a
// receive buffer of the given bytes. It fails when another process has the
// port, even one that would share it.
func Listen(addr string, n, buffer int) (*Sockets, error) {
	first, err := net.ListenPacket("udp", addr)
	if err != nil {
		return nil, err
	}
	s := &Sockets{buffer: buffer}
	if n == 1 {
		if err := s.add(first.(*net.UDPConn)); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return s, nil
	}
	// Sockets that share a port must all ask for it before they are bound, so
	// the first one only proves that the port is free and names it.
	addr = first.LocalAddr().String()
	if err := first.Close(); err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: sharePort}
	for range n {
		pc, err := lc.ListenPacket(context.Background(), "udp", addr)
		if err == nil {
			err = s.add(pc.(*net.UDPConn))
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func sharePort(_, _ string, c syscall.RawConn) error {
	var err error
	return errors.Join(c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}), err)
}

// add takes a socket into the set and enlarges its receive buffer as far as
// the system allows.
func (s *Sockets) add(c *net.UDPConn) error {
	s.conns = append(s.conns, c)
	s.inodes = append(s.inodes, "")
	s.drops = append(s.drops, 0)
	if err := c.SetReadBuffer(s.buffer); err != nil {
		return fmt.Errorf("a receive buffer of %d bytes: %w", s.buffer, err)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) {
		var st unix.Stat_t
		if err := unix.Fstat(int(fd), &st); err == nil {
			s.inodes[len(s.inodes)-1] = strconv.FormatUint(st.Ino, 10)
		}
		// The kernel doubles what it is asked for, for its own book-keeping.
		if got, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF); err == nil {
			s.buffer = min(s.buffer, got/2)
		}
	})
}

// Conns returns the sockets. They belong to the set.
func (s *Sockets) Conns() []*net.UDPConn { return s.conns }

// Serve calls read for every socket, each in a goroutine of its own, and returns when all have
// returned. It closes the sockets when one read has failed, so that the others end.
func (s *Sockets) Serve(read func(*net.UDPConn) error) error {
	errs := make(chan error, len(s.conns))
	for _, c := range s.conns {
		go func() { errs <- read(c) }()
	}
	var all []error
	for range s.conns {
		if err := <-errs; err != nil {
			all = append(all, err, s.Close())
		}
	}
	return errors.Join(all...)
}

// Addr returns the address that all sockets have.
func (s *Sockets) Addr() netip.AddrPort {
	return s.conns[0].LocalAddr().(*net.UDPAddr).AddrPort()
}

// Buffer returns the bytes of the smallest receive buffer: less than was asked
// for where net.core.rmem_max is lower.
func (s *Sockets) Buffer() int { return s.buffer }

// Close closes the sockets; a read that is under way returns net.ErrClosed.
func (s *Sockets) Close() error {
	s.Drops() // what they dropped is known no longer than they live
	var errs []error
	for _, c := range s.conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Drops returns the number of datagrams that the kernel has dropped at these
// sockets. Where the system has no /proc/net/udp it is 0.
func (s *Sockets) Drops() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, file := range []string{"/proc/net/udp", "/proc/net/udp6"} {
		table, err := os.ReadFile(file)
		if err != nil {
			continue // no such system, or no IPv6
		}
		for i, inode := range s.inodes {
			if n, ok := parseDrops(table, inode); ok {
				s.drops[i] = n
			}
		}
	}
	var sum uint64
	for _, n := range s.drops {
		sum += n
	}
	return sum
}

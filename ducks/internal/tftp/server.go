package tftp

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
)

// Options say who is served.
type Options struct {
	Files  Files
	Seen   func(who netip.Addr) // is told that a machine gets the end of a file, before it has that
	Logger *slog.Logger
}

// Server answers at one address until it is closed.
type Server struct {
	o    Options
	conn *net.UDPConn
	most int           // bytes of a block that needs one frame of the network
	room chan struct{} // has one for each transfer
	done sync.WaitGroup
}

// Port is that of TFTP.
const Port = 69

// mostAtOnce is how many transfers there are at a time. Of more the machines ask again.
const mostAtOnce = 256

// Start answers machines at an address.
func Start(at netip.AddrPort, o Options) (*Server, error) {
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, fmt.Errorf("TFTP: %w", err)
	}
	s := &Server{o: o, conn: conn, most: mostBlock(at.Addr()), room: make(chan struct{}, mostAtOnce)}
	s.done.Go(s.serve)
	return s, nil
}

// mostBlock returns how much of a file a frame carries on the interface of an address.
func mostBlock(self netip.Addr) int {
	const around = 20 + 8 + 4 // IPv4, UDP, and TFTP
	list, err := net.Interfaces()
	if err != nil {
		return plainBlock
	}
	for _, of := range list {
		addresses, _ := of.Addrs() // one that has gone has none
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == self {
				return max(plainBlock, of.MTU-around)
			}
		}
	}
	return plainBlock
}

// serve takes requests until the server is closed.
func (s *Server) serve() {
	packet := make([]byte, mostRequest)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(packet)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.o.Logger.Warn("a request of TFTP cannot be read", "err", err)
			continue
		}
		q, err := parse(packet[:n])
		if errors.Is(err, errNone) {
			continue
		}
		s.begin(from, &q, err)
	}
}

// begin begins the transfer that a machine asks for, or says why there is none.
func (s *Server) begin(to netip.AddrPort, q *request, refused error) {
	select {
	case s.room <- struct{}{}:
	default:
		s.refuse(to, errors.New("too many machines load at once: ask again"))
		return
	}
	s.done.Go(func() {
		defer func() { <-s.room }()
		if refused != nil {
			s.refuse(to, refused)
			return
		}
		if err := s.give(to, q); err != nil {
			s.o.Logger.Warn("a machine did not load all of a file", "name", fmt.Sprintf("%.100q", q.name),
				"address", to, "err", err)
		}
	})
}

// refuse says at the port of the server why nothing is given.
func (s *Server) refuse(to netip.AddrPort, why error) {
	_, _ = s.conn.WriteToUDPAddrPort(failure(why), to) // who does not hear it asks again
}

// give sends a file, from a port of its own.
func (s *Server) give(to netip.AddrPort, q *request) error {
	file, size, err := s.o.Files.Open(q.name)
	if err != nil {
		s.refuse(to, ErrNone)
		return err
	}
	defer file.Close()
	self := s.conn.LocalAddr().(*net.UDPAddr)
	conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: self.IP}, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return err
	}
	defer conn.Close()
	t := transfer{conn: conn, block: plainBlock, wait: plainWait, answer: make([]byte, mostRequest)}
	if err := t.agree(q, size, s.most); err != nil {
		return err
	}
	return t.send(file, size, func() { s.o.Seen(to.Addr().Unmap()) })
}

// Close ends it, when the transfers under way have ended.
func (s *Server) Close() {
	_ = s.conn.Close() // it was read from
	s.done.Wait()
}

package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/server4"

	"dalmatiner/ducks/internal/sockets"
)

// Server answers at one interface until it is closed.
type Server struct {
	Self netip.Prefix // the address of the interface, and its network

	mu    sync.Mutex
	s     *server
	conns []*net.UDPConn
	done  sync.WaitGroup
}

// Start answers machines at an interface that is up and has an address. Unless it is a proxy, it
// refuses to start where another server gives addresses: two of them take machines from each other.
func Start(ctx context.Context, o Options) (*Server, error) {
	self, err := AddressOf(o.Interface)
	if err != nil {
		return nil, err
	}
	s, err := newServer(o, self)
	if err != nil {
		return nil, err
	}
	if !o.Proxy {
		other, err := Other(ctx, o.Interface)
		if err != nil {
			return nil, err
		}
		if other.IsValid() {
			return nil, fmt.Errorf("%s gives addresses on %s already: let it, and start with "+
				"--dhcp-proxy, or end it", other, o.Interface)
		}
		switch here, err := Here(o.Interface); {
		case err != nil:
			o.Logger.Warn("it is not known whether a program of this machine gives addresses", "interface",
				o.Interface, "err", err)
		case here == Bound:
			return nil, fmt.Errorf("a program of this machine gives addresses on %s already, at UDP port "+
				"%d: let it, and start with --dhcp-proxy, or end it", o.Interface, serverPort)
		case here == Open:
			o.Logger.Warn("a program of this machine answers at the port of DHCP on all interfaces: it "+
				"must give no addresses on this one", "interface", o.Interface)
		}
	}
	d := &Server{Self: self, s: s}
	if err := d.listen(serverPort, func(p []byte, _ netip.AddrPort) (answer, error) {
		return s.answer(p)
	}); err != nil {
		return nil, err
	}
	if !o.Proxy {
		return d, nil
	}
	return d, d.listen(pxePort, s.bootServer)
}

// AddressOf returns the first address of four bytes of an interface.
func AddressOf(name string) (netip.Prefix, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("interface %s: %w", name, err)
	}
	list, err := i.Addrs()
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("interface %s: %w", name, err)
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && p.Bits() < 31 {
			return p, nil
		}
	}
	return netip.Prefix{},
		fmt.Errorf("interface %s has no IPv4 address: give it one, as with ip addr add 10.77.0.1/24 "+
			"dev %s", name, name)
}

// mostMessage is the longest message that is read. Those of firmware have some 300 to 600 bytes.
const mostMessage = 1500

// listen answers what comes to a port of the interface, one after the other.
func (d *Server) listen(port int, answer func(packet []byte, from netip.AddrPort) (answer,
	error)) error {
	conn, err := server4.NewIPv4UDPConn(d.s.o.Interface, &net.UDPAddr{Port: port})
	if err != nil {
		return errors.Join(fmt.Errorf("interface %s, UDP port %d: %w", d.s.o.Interface, port, err),
			d.Close())
	}
	d.conns = append(d.conns, conn)
	d.done.Go(func() {
		buf := make([]byte, mostMessage)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					d.s.o.Logger.Error("no machine gets an address any more", "interface", d.s.o.Interface, "err",
						err)
				}
				return
			}
			d.mu.Lock()
			a, err := answer(buf[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()))
			d.mu.Unlock()
			d.say(conn, a, err)
		}
	})
	return nil
}

// say sends an answer, or says why there is none.
func (d *Server) say(conn *net.UDPConn, a answer, err error) {
	log := d.s.o.Logger
	switch {
	case errors.Is(err, errNone):
		if now := time.Now(); now.Sub(d.s.warned) > time.Minute {
			d.s.warned = now
			log.Warn("a machine gets no address", "interface", d.s.o.Interface, "err", err)
		}
	case errors.Is(err, errIgnored):
	case err != nil:
		log.Debug("a message is passed over", "interface", d.s.o.Interface, "err", err)
	default:
		if _, err := conn.WriteToUDPAddrPort(a.message.ToBytes(), a.to); err != nil {
			log.Warn("an answer is not sent", "interface", d.s.o.Interface, "to", a.to, "err", err)
		}
	}
}

// Close ends it.
func (d *Server) Close() error {
	var err error
	for _, c := range d.conns {
		err = errors.Join(err, c.Close())
	}
	d.done.Wait()
	return err
}

// Local is what a program of this machine does at the port of a server.
type Local int

// A program may hear nothing there, all interfaces, or the one that is asked for.
const (
	None Local = iota
	Open
	Bound
)

// Here returns whether a program of this machine may give addresses on an interface: it does not
// hear what Other sends.
func Here(name string) (Local, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return None, fmt.Errorf("interface %s: %w", name, err)
	}
	self, err := AddressOf(name)
	if err != nil {
		return None, err
	}
	list, err := sockets.Datagrams(serverPort)
	found := None
	for _, s := range list {
		switch {
		case s.Interface == i.Index, s.Local.Addr() == self.Addr():
			return Bound, nil
		case s.Interface == 0 && s.Local.Addr().IsUnspecified():
			found = Open
		}
	}
	return found, err
}

// Other returns the address of a server that gives addresses on an interface, none if nobody has
// answered.
func Other(ctx context.Context, name string) (netip.Addr, error) {
	c, err := newClient(name, randomMAC())
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	offer, err := c.discover(ctx, dhcpv4.WithBroadcast(true))
	if err != nil || offer == nil {
		return netip.Addr{}, err
	}
	if from := addr(offer.ServerIdentifier()); from.IsValid() {
		return from, nil
	}
	return addr(offer.ServerIPAddr), nil
}

package sockets

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"
)

// A connection is heard as long as both ends have it, at its own port and from its own address
// only.
func TestHeard(t *testing.T) {
	for _, c := range []struct{ listens, dials, network string }{
		{"127.0.0.1:0", "127.0.0.1", "tcp4"},
		// tgtd listens like that: the addresses of four bytes are those of sixteen
		{"[::]:0", "127.0.0.1", "tcp"},
	} {
		l, err := net.Listen(c.network, c.listens)
		if err != nil {
			t.Fatal(err)
		}
		port, loop := netip.MustParseAddrPort(l.Addr().String()).Port(), netip.MustParseAddr("127.0.0.1")
		heard := func(from netip.Addr, port uint16) bool {
			ago, connected, err := Heard(from, port)
			if err != nil || ago < 0 || ago > time.Minute || !connected && ago != 0 {
				t.Errorf("%s: heard %s ago, %v: %v", c.listens, ago, connected, err)
			}
			return connected
		}
		if heard(loop, port) {
			t.Errorf("%s: somebody is heard before anybody has come", c.listens)
		}
		device, err := net.Dial("tcp4", netip.AddrPortFrom(loop, port).String())
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := device.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if !heard(loop, port) {
			t.Errorf("%s: a connection is not heard", c.listens)
		}
		if heard(netip.MustParseAddr("127.0.0.2"), port) || heard(loop, port+1) {
			t.Errorf("%s: a connection is heard elsewhere", c.listens)
		}
		if err := errors.Join(device.Close(), server.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
		if heard(loop, port) {
			t.Errorf("%s: a connection that has ended is heard", c.listens)
		}
	}
}

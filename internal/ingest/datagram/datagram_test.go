package datagram

import (
	"net"
	"os"
	"testing"
	"time"
)

const patience = time.Minute

func TestParseDrops(t *testing.T) {
	table := []byte(`   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  417: 0100007F:115C 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 12345 2 0000000000000000 678
  418: 0100007F:115D 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 123456 2 0000000000000000 0
`)
	f := func(inode string, want uint64, wantOK bool) {
		t.Helper()
		if n, ok := parseDrops(table, inode); n != want || ok != wantOK {
			t.Errorf("%q has %d drops, %t", inode, n, ok)
		}
	}
	f("12345", 678, true)
	f("123456", 0, true)
	f("1234", 0, false)
	f("inode", 0, false)
	f("", 0, false)
}

func listen(t *testing.T, addr string, n int) *Sockets {
	t.Helper()
	s, err := Listen(addr, n, 4096)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // it may be closed already
	return s
}

func TestAPortIsSharedWithNobodyElse(t *testing.T) {
	s := listen(t, "127.0.0.1:0", 3)
	if len(s.Conns()) != 3 {
		t.Fatalf("%d sockets", len(s.Conns()))
	}
	for _, n := range []int{1, 2} {
		if other, err := Listen(s.Addr().String(), n, 4096); err == nil {
			_ = other.Close()
			t.Errorf("%d further sockets share the port", n)
		}
	}
}

// TestDropsOfTheKernel sends more than the buffer holds to a socket that
// nobody reads.
func TestDropsOfTheKernel(t *testing.T) {
	table, err := os.ReadFile("/proc/net/udp")
	if err != nil {
		t.Skip(err)
	}
	s := listen(t, "127.0.0.1:0", 1)
	if _, ok := parseDrops(table, s.inodes[0]); ok {
		t.Fatal("the table of before knows the socket")
	}
	if table, err = os.ReadFile("/proc/net/udp"); err != nil {
		t.Fatal(err)
	}
	if _, ok := parseDrops(table, s.inodes[0]); !ok {
		t.Skip("this system's /proc/net/udp does not list its sockets")
	}
	c, err := net.Dial("udp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	const sent = 1000
	for range sent {
		if _, err := c.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	// The kernel has put every datagram into the buffer or dropped it before Write
	// returned: what it does not call dropped can be read, and nothing else.
	drops := s.Drops()
	if drops == 0 || drops >= sent {
		t.Fatalf("%d sent, %d dropped", sent, drops)
	}
	if err := s.Conns()[0].SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, MaxPayload)
	for kept := range sent - drops {
		if n, _, err := s.Conns()[0].ReadFromUDPAddrPort(buf); err != nil || n != 1000 {
			t.Fatalf("%d sent, %d read, %d dropped: then %d bytes, %v", sent, kept, drops, n, err)
		}
	}
	if _, err := c.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	if n, _, err := s.Conns()[0].ReadFromUDPAddrPort(buf); err != nil || string(buf[:n]) != "last" {
		t.Errorf("%d sent, %d dropped, and more was read: %d bytes, %v", sent, drops, n, err)
	}
	before := s.Drops()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s.Drops() != before {
		t.Errorf("after the close %d drops are known, before it %d", s.Drops(), before)
	}
}

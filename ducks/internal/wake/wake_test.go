package wake

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"dalmatiner/ducks/internal/duckstest"
)

func TestPacket(t *testing.T) {
	p := Packet(net.HardwareAddr{1, 2, 3, 4, 5, 6})
	if len(p) != 102 || !bytes.Equal(p[:8], []byte{255, 255, 255, 255, 255, 255, 1, 2}) ||
		!bytes.Equal(p[96:], []byte{1, 2, 3, 4, 5, 6}) {
		t.Errorf("%x", p)
	}
	for _, bad := range []string{"", "01:02"} {
		if Send(netip.MustParsePrefix("127.0.0.1/8"), bad) == nil {
			t.Errorf("%q is an address", bad)
		}
	}
}

// All machines of the network hear it.
func TestSend(t *testing.T) {
	if !duckstest.Alone(t) {
		return
	}
	duckstest.Run(t, "ip", "addr", "add", "192.0.2.1/24", "brd", "192.0.2.255", "dev", "lo")
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{Port: port})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := Send(netip.MustParsePrefix("192.0.2.1/24"), "02:00:00:00:00:01"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 200)
	n, _, err := conn.ReadFromUDPAddrPort(got)
	if err != nil || !bytes.Equal(got[:n], Packet(net.HardwareAddr{2, 0, 0, 0, 0, 1})) {
		t.Errorf("%x, %v", got[:n], err)
	}
}

// Package wake switches machines on over the network. Source: AMD, "Magic Packet Technology",
// publication 20213.
package wake

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"dalmatiner/ducks/internal/dhcp"
)

// port is that of discard: nobody has to listen, the card of the machine looks at all that comes.
const port = 9

// Packet returns what a card waits for: six bytes 0xff, then its address sixteen times.
func Packet(mac net.HardwareAddr) []byte {
	return append(bytes.Repeat([]byte{0xff}, 6), bytes.Repeat(mac, 16)...)
}

// Send sends it to all machines of a network, from the address of this one there.
func Send(self netip.Prefix, mac string) (err error) {
	address, err := net.ParseMAC(mac)
	if err != nil {
		return err
	}
	if !self.Addr().Is4() {
		return fmt.Errorf("%s is no IPv4 network", self)
	}
	conn, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(self.Addr(), 0)),
		net.UDPAddrFromAddrPort(netip.AddrPortFrom(dhcp.Broadcast(self), port)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	_, err = conn.Write(Packet(address))
	return err
}

package sockets

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Datagram is a socket of UDP over IPv4.
type Datagram struct {
	Local     netip.AddrPort
	Interface int // the index of the one that it is bound to; 0: it hears all
}

// Datagrams returns the UDP sockets at a port, of the network namespace of the thread that calls.
// Source: sock_diag(7).
func Datagrams(port uint16) (list []Datagram, err error) {
	all, err := netlink.SocketDiagUDP(unix.AF_INET)
	if err != nil {
		return nil, fmt.Errorf("UDP sockets of this machine: %w", err)
	}
	for _, s := range all {
		if at, is := netip.AddrFromSlice(s.ID.Source); is && s.ID.SourcePort == port {
			list = append(list, Datagram{netip.AddrPortFrom(at.Unmap(), port), int(s.ID.Interface)})
		}
	}
	return list, nil
}

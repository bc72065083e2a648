package sockets

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Heard returns how long ago the last data came from an address to a local port, over the
// connections that there still are, and false if there is none. It looks in the network namespace
// of the thread that calls. Source: sock_diag(7), tcp(7).
func Heard(from netip.Addr, port uint16) (ago time.Duration, connected bool, err error) {
	const established = 1 // as State Established
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		all, err := netlink.SocketDiagTCPInfo(family)
		if err != nil {
			return 0, false, fmt.Errorf("TCP sockets of this machine: %w", err)
		}
		for _, s := range all {
			remote, _ := netip.AddrFromSlice(s.InetDiagMsg.ID.Destination)
			if s.TCPInfo == nil || s.InetDiagMsg.State != established ||
				s.InetDiagMsg.ID.SourcePort != port || remote.Unmap() != from {
				continue
			}
			since := time.Duration(s.TCPInfo.Last_data_recv) * time.Millisecond
			if !connected || since < ago {
				ago, connected = since, true
			}
		}
	}
	return ago, connected, nil
}

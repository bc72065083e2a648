package target

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"slices"
)

// Connections returns the addresses from which there is a connection to the portal, ascending. It does not ask tgtd, whose
// devices would wait while it answers: so it is cheap to look each second whether one came or went.
func (t *Targets) Connections() (list []netip.AddrPort, err error) {
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // a kernel without IPv6
		} else if err != nil {
			return nil, err
		}
		if list, err = connections(list, table, t.options.Portal.Port()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	slices.SortFunc(list, netip.AddrPort.Compare)
	return list, nil
}

// established is the state of a connection that stands. Source: proc(5), and include/net/tcp_states.h of Linux.
const established = "01"

// connections reads a table of the kernel: a title, then in each line a number, the local and the remote address, the state,
// and more.
func connections(list []netip.AddrPort, table []byte, port uint16) ([]netip.AddrPort, error) {
	for i, line := range bytes.Split(bytes.TrimSpace(table), []byte("\n")) {
		f := bytes.Fields(line)
		if i == 0 || len(f) < 4 || string(f[3]) != established {
			continue
		}
		local, err := address(f[1])
		if err != nil {
			return nil, err
		}
		remote, err := address(f[2])
		if err != nil {
			return nil, err
		}
		if local.Port() == port {
			list = append(list, remote)
		}
	}
	return list, nil
}

// address reads words of the machine in hexadecimal digits, and a port.
func address(text []byte) (netip.AddrPort, error) {
	host, port, _ := bytes.Cut(text, []byte(":"))
	var b [16]byte
	n, err := hex.Decode(b[:], host[:min(len(host), 2*len(b))])
	var p [2]byte
	if m, perr := hex.Decode(p[:], port[:min(len(port), 2*len(p))]); err != nil || perr != nil || m != len(p) || n != 4 && n != len(b) {
		return netip.AddrPort{}, fmt.Errorf("%q is no address", text)
	}
	for w := b[:n]; len(w) > 0; w = w[4:] {
		binary.NativeEndian.PutUint32(w, binary.BigEndian.Uint32(w))
	}
	at, _ := netip.AddrFromSlice(b[:n])
	return netip.AddrPortFrom(at.Unmap(), binary.BigEndian.Uint16(p[:])), nil
}

// Package sockets reads which sockets of TCP and UDP a machine has, from the tables of its kernel.
package sockets

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
)

// State is that of a socket. Source: include/net/tcp_states.h of Linux.
type State string

// The states that somebody asks for.
const (
	Established State = "01"
	Listening   State = "0A"
)

// Socket is the two ends of one; of one that listens, Remote is zeros.
type Socket struct{ Local, Remote netip.AddrPort }

// Proc is where the tables are.
const Proc = "/proc/net"

// At returns the sockets in a state whose local port is port, in the order of their addresses, from
// the tables in a directory. Nobody is asked: it is cheap to look each second whether one came or
// went. Source: proc_pid_net(5).
func At(dir string, state State, port uint16) (list []Socket, err error) {
	for i, name := range []string{"tcp", "tcp6"} {
		path := filepath.Join(dir, name)
		table, err := os.ReadFile(path)
		if i > 0 && os.IsNotExist(err) {
			continue // a kernel without IPv6
		} else if err != nil {
			return nil, err
		}
		if list, err = read(list, table, state, port); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	slices.SortFunc(list, func(a, b Socket) int {
		if c := a.Local.Compare(b.Local); c != 0 {
			return c
		}
		return a.Remote.Compare(b.Remote)
	})
	return list, nil
}

// read reads a table: a title, then in each line a number, the local and the remote address, the
// state, and more.
func read(list []Socket, table []byte, state State, port uint16) ([]Socket, error) {
	for i, line := range bytes.Split(bytes.TrimSpace(table), []byte("\n")) {
		f := bytes.Fields(line)
		if i == 0 || len(f) < 4 || State(f[3]) != state {
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
			list = append(list, Socket{local, remote})
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
	if m, perr := hex.Decode(p[:], port[:min(len(port), 2*len(p))]); err != nil || perr != nil ||
		m != len(p) || n != 4 && n != len(b) {
		return netip.AddrPort{}, fmt.Errorf("%q is no address", text)
	}
	for w := b[:n]; len(w) > 0; w = w[4:] {
		binary.NativeEndian.PutUint32(w, binary.BigEndian.Uint32(w))
	}
	at, _ := netip.AddrFromSlice(b[:n])
	return netip.AddrPortFrom(at.Unmap(), binary.BigEndian.Uint16(p[:])), nil
}

// Package emulate is devices without hardware: each has a network namespace of its own at the end
// of a virtual cable, asks for an address, loads iPXE and its script, logs in to its disk, reads
// and writes, is switched off or crashes. It and package traffic are the ones that import
// vishvananda/netlink.
package emulate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// card is the name of the network card of a machine.
const card = "eth0"

// Machine is a namespace with a card. Its methods are not for concurrent use.
type Machine struct {
	MAC net.HardwareAddr

	link netlink.Link  // the end of the cable at the bridge
	work chan func()   // for the thread that lives in the namespace
	done chan struct{} // closed when it has ended
}

// Plug connects a machine to a bridge of this namespace. It needs root. Unplug ends it.
func Plug(bridge string, mac net.HardwareAddr) (m *Machine, err error) {
	to, err := netlink.LinkByName(bridge)
	if err != nil {
		return nil, fmt.Errorf("bridge %s: %w", bridge, err)
	}
	if to.Type() != "bridge" {
		return nil, fmt.Errorf("%s is no bridge: make one, as with ip link add br0 type bridge, and "+
			"put the card of the room into it", bridge)
	}
	m = &Machine{MAC: mac, work: make(chan func()), done: make(chan struct{})}
	space := make(chan *os.File, 1)
	failed := make(chan error, 1)
	go m.live(space, failed)
	select {
	case f := <-space:
		defer f.Close()
		err = m.connect(to, f)
	case err = <-failed:
	}
	if err != nil {
		return nil, errors.Join(err, m.Unplug())
	}
	return m, nil
}

// live is the thread of a machine: what it does, it does in the namespace of the machine. The
// thread ends with it, and is used by nobody else.
func (m *Machine) live(space chan<- *os.File, failed chan<- error) {
	defer close(m.done)
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		failed <- fmt.Errorf("a network namespace: %w", err)
		return
	}
	f, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
	if err != nil {
		failed <- err
		return
	}
	space <- f
	for do := range m.work {
		do()
	}
}

// connect lays the cable.
func (m *Machine) connect(bridge netlink.Link, space *os.File) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MasterIndex = fmt.Sprintf("dk%x", []byte(m.MAC)), bridge.Attrs().Index
	// A bridge has the lowest address of its ports, if nobody gave it one: with a high one at this end
	// a cable that comes or goes does not change it, for which the others would lose the server until
	// they ask again where it is.
	attributes.HardwareAddr = append(net.HardwareAddr{0xfe}, m.MAC[1:]...)
	cable := &netlink.Veth{
		LinkAttrs:        attributes,
		PeerName:         card,
		PeerHardwareAddr: m.MAC,
		PeerNamespace:    netlink.NsFd(space.Fd()),
	}
	if err := netlink.LinkAdd(cable); err != nil {
		return fmt.Errorf("a cable at %s: %w", bridge.Attrs().Name, err)
	}
	m.link = cable
	if err := netlink.LinkSetUp(cable); err != nil {
		return err
	}
	return m.Do(func() error {
		for _, name := range []string{"lo", card} {
			l, err := netlink.LinkByName(name)
			if err == nil {
				err = netlink.LinkSetUp(l)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

// Do does something in the namespace of the machine, by the thread that lives there.
func (m *Machine) Do(what func() error) error {
	answer := make(chan error, 1)
	select {
	case m.work <- func() { answer <- what() }:
		return <-answer
	case <-m.done:
		return errors.New("the machine is gone")
	}
}

// address gives the card an address.
func (m *Machine) address(p netip.Prefix) error {
	return m.Do(func() error {
		l, err := netlink.LinkByName(card)
		if err != nil {
			return err
		}
		return netlink.AddrReplace(l,
			&netlink.Addr{IPNet: &net.IPNet{IP: net.IP(p.Addr().AsSlice()),
				Mask: net.CIDRMask(p.Bits(), 32)}})
	})
}

// SetLine gives the cable a speed, in bits a second each way. Without it, it has none.
func (m *Machine) SetLine(bits int64) error {
	err := slow(m.link, bits)
	return errors.Join(err, m.Do(func() error {
		l, err := netlink.LinkByName(card)
		if err != nil {
			return err
		}
		return slow(l, bits)
	}))
}

// What a cable with a speed sends at once, and what waits for it, in bytes.
const (
	cableBurst = 128 << 10
	cableQueue = 4 << 20
)

// slow gives one end of a cable a speed.
func slow(l netlink.Link, bits int64) error {
	bytes := uint64(bits / 8)
	return netlink.QdiscReplace(&netlink.Tbf{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: l.Attrs().Index,
		Handle:    netlink.MakeHandle(1, 0),
		Parent:    netlink.HANDLE_ROOT,
	},
		Rate: bytes, Buffer: netlink.Xmittime(bytes, cableBurst), Limit: cableQueue})
}

// Dial connects from the machine to an address of numbers.
func (m *Machine) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	err = m.Do(func() (err error) {
		// one address: the socket is made by this thread
		conn, err = new(net.Dialer).DialContext(ctx, network, at.String())
		return err
	})
	return conn, err
}

// Cut takes the cable away: nobody hears of that, as where a machine crashes.
func (m *Machine) Cut() error {
	if m.link == nil {
		return nil
	}
	err := netlink.LinkDel(m.link)
	m.link = nil
	return err
}

// Unplug ends the machine. Connections that it has are not closed.
func (m *Machine) Unplug() error {
	err := m.Cut()
	select {
	case <-m.done:
	default:
		close(m.work)
		<-m.done
	}
	return err
}

package traffic

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// side is one direction: a root of htb, one class of the line below it, and in that one for each
// device.
type side struct {
	link   netlink.Link
	v4, v6 int32 // where the address of the device is, in a header
}

// Where addresses are in the headers of RFC 791 and RFC 8200, in bytes.
const (
	ipv4Source, ipv4Destination = 12, 16
	ipv6Source, ipv6Destination = 8, 24
)

// start makes what is always there.
func (d *side) start(line int64) error {
	root := netlink.NewHtb(netlink.QdiscAttrs{
		LinkIndex: d.link.Attrs().Index,
		Handle:    netlink.MakeHandle(ourMajor, 0),
		Parent:    netlink.HANDLE_ROOT,
	})
	root.Defcls = others
	// The kernel's own queue has handle 0: it is replaced, and comes back when ours goes.
	if err := netlink.QdiscReplace(root); err != nil {
		return err
	}
	if err := d.add(whole, netlink.MakeHandle(ourMajor, 0), line, line); err != nil {
		return err
	}
	return d.class(others, max(line/10, slow), line)
}

// class makes or changes a class in that of the line.
func (d *side) class(minor uint16, rate, ceil int64) error {
	return d.add(minor, netlink.MakeHandle(ourMajor, whole), rate, ceil)
}

func (d *side) add(minor uint16, parent uint32, rate, ceil int64) error {
	return netlink.ClassReplace(netlink.NewHtbClass(
		netlink.ClassAttrs{
			LinkIndex: d.link.Attrs().Index,
			Handle:    netlink.MakeHandle(ourMajor, minor),
			Parent:    parent,
		},
		netlink.HtbClassAttrs{
			Rate:    uint64(rate),
			Ceil:    uint64(ceil),
			Buffer:  burst,
			Cbuffer: burst,
			Quantum: quantum,
		}))
}

// filter returns what leads an address to its class. Its priority is the number of the class, by
// which it is taken away.
func (d *side) filter(at netip.Addr, minor uint16) *netlink.U32 {
	f := &netlink.U32{FilterAttrs: netlink.FilterAttrs{
		LinkIndex: d.link.Attrs().Index,
		Parent:    netlink.MakeHandle(ourMajor, 0),
		Priority:  minor,
		Protocol:  unix.ETH_P_IP,
	},
		ClassId: netlink.MakeHandle(ourMajor, minor),
		Sel:     &netlink.TcU32Sel{Flags: netlink.TC_U32_TERMINAL}}
	offset := d.v4
	if at.Is6() {
		f.Protocol, offset = unix.ETH_P_IPV6, d.v6
	}
	for words := at.AsSlice(); len(words) > 0; words, offset = words[4:], offset+4 {
		f.Sel.Keys = append(f.Sel.Keys, netlink.TcU32Key{
			Mask: 0xffffffff,
			Val:  binary.BigEndian.Uint32(words),
			Off:  offset,
		})
	}
	f.Sel.Nkeys = uint8(len(f.Sel.Keys))
	return f
}

// point leads an address to a class. Filters in its place, which an attempt that failed half-way
// has left, go.
func (d *side) point(at netip.Addr, minor uint16) error {
	f := d.filter(at, minor)
	for _, protocol := range []uint16{unix.ETH_P_IP, unix.ETH_P_IPV6} {
		left := f.FilterAttrs
		left.Protocol = protocol
		_ = netlink.FilterDel(&netlink.U32{FilterAttrs: left}) // nearly always there is none
	}
	return netlink.FilterAdd(f)
}

// drop takes the class of an address away.
func (d *side) drop(at netip.Addr, minor uint16) error {
	f := d.filter(at, minor)
	err := netlink.FilterDel(&netlink.U32{FilterAttrs: f.FilterAttrs})
	return errors.Join(err, netlink.ClassDel(&netlink.GenericClass{ClassType: "htb",
		ClassAttrs: netlink.ClassAttrs{
			LinkIndex: d.link.Attrs().Index,
			Handle:    f.ClassId,
			Parent:    netlink.MakeHandle(ourMajor, whole),
		}}))
}

// flows returns what went through each class, by its number.
func (d *side) flows() (map[uint16]Flow, error) {
	list, err := netlink.ClassList(d.link, 0)
	if err != nil {
		return nil, err
	}
	flows := make(map[uint16]Flow, len(list))
	for _, c := range list {
		a := c.Attrs()
		if s := a.Statistics; s != nil && s.Basic != nil && s.Queue != nil {
			flows[uint16(a.Handle)] = Flow{int64(s.Basic.Bytes), int64(s.Basic.Packets),
				int64(s.Queue.Drops), int64(s.Queue.Backlog)}
		}
	}
	return flows, nil
}

// redirect leads what comes in at an interface through another one. What is no IP, as ARP, goes by.
func redirect(from, through netlink.Link) error {
	index := from.Attrs().Index
	in := &netlink.Ingress{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: index,
		Handle:    netlink.MakeHandle(0xffff, 0),
		Parent:    netlink.HANDLE_INGRESS,
	}}
	if err := netlink.QdiscAdd(in); err != nil {
		return err
	}
	for i, protocol := range []uint16{unix.ETH_P_IP, unix.ETH_P_IPV6} {
		f := &netlink.U32{FilterAttrs: netlink.FilterAttrs{
			LinkIndex: index,
			Parent:    netlink.MakeHandle(0xffff, 0),
			Priority:  uint16(i + 1),
			Protocol:  protocol,
		},
			Actions: []netlink.Action{netlink.NewMirredAction(through.Attrs().Index)}} // without keys: all
		if err := netlink.FilterAdd(f); err != nil {
			return err
		}
	}
	return nil
}

// Package traffic shares the line of a storage server among its devices: each has a class of htb in
// both directions, so that one which fills the line leaves the others their part of it. What goes
// to devices is shaped at the interface, what comes from them at an intermediate functional block
// (ifb), to which the interface redirects it. DESIGN.md beside it draws both. Sources: tc-htb(8),
// tc-u32(8), tc-mirred(8).
package traffic

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
)

// Options say what is shared.
type Options struct {
	Interface string
	Line      int64 // bits a second, both ways; 0: what the interface says
}

// Share is the part of a device.
type Share struct {
	Device  string
	Address netip.Addr
	Limit   int64 // bits a second each way; 0: the whole line, while nobody else wants it
}

// Flow is what went through a class so far, and what waits there.
type Flow struct{ Bytes, Packets, Dropped, Waiting int64 }

// Used is what a device has used.
type Used struct {
	Device         string
	Sent, Received Flow // to the device, and from it
}

// Shaper has the classes of an interface. Its methods may be called concurrently.
type Shaper struct {
	mu    sync.Mutex
	line  int64 // bits a second that are shared
	sides [2]side
	part  int64 // of each device
	given map[netip.Addr]given
}

// given is the share of an address, with the number of its class.
type given struct {
	Share
	minor uint16
}

// ErrTaken is wrapped where somebody else shapes the interface.
var ErrTaken = errors.New("somebody else shapes it")

const (
	// ourMajor is the handle of the roots: by it a later start knows what a killed process has left.
	ourMajor = 0xdc
	whole    = 1 // minor of the class of the line
	others   = 2 // of the class of whatever is of no device
	first    = 16
	most     = 1 << 12 // classes

	// kept is the part of the line that is shared, in percent. A little less than the line, or the
	// queue would build in the card and in the switch, where nobody shares it.
	kept = 97

	quantum = 16 << 10 // bytes that a class may send before the next one that borrows
	burst   = 64 << 10 // bytes that a class may send at once
	slow    = 64_000   // bits a second: less is given to nobody
	queue   = 1000     // packets that wait in a class
)

// Start begins to share. It refuses where the interface has queues that are neither the kernel's
// own nor those of an ended ducks, and changes nothing then. It needs root.
func Start(o Options) (s *Shaper, err error) {
	link, err := netlink.LinkByName(o.Interface)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", o.Interface, err)
	}
	if o.Line == 0 {
		if o.Line, err = speed(o.Interface); err != nil {
			return nil, err
		}
	}
	block, err := free(link)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", o.Interface, err)
	}
	s = &Shaper{line: o.Line / 100 * kept, given: make(map[netip.Addr]given)}
	if err := s.start(link, block); err != nil {
		return nil, errors.Join(fmt.Errorf("interface %s: %w", o.Interface, err), s.Close())
	}
	return s, nil
}

// speed is that of an interface, in bits a second.
func speed(name string) (int64, error) {
	text, err := os.ReadFile(filepath.Join("/sys/class/net", name, "speed"))
	if err == nil {
		var megabits int64
		if megabits, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil &&
			megabits > 0 {
			return megabits * 1_000_000, nil
		}
	}
	return 0, fmt.Errorf("the speed of %s is not known: say it with --line, as --line 1gbit", name)
}

// blockName is the name of the ifb of an interface: names have at most 15 bytes.
func blockName(of string) string { return "dk-" + of[:min(len(of), 12)] }

// alias marks an ifb as ours.
const alias = "ducks"

// free takes away what a killed ducks has left, and returns the old ifb's name.
func free(link netlink.Link) (block string, err error) {
	block = blockName(link.Attrs().Name)
	old, err := netlink.LinkByName(block)
	gone := netlink.LinkNotFoundError{}
	switch {
	case errors.As(err, &gone):
	case err != nil:
		return "", err
	case old.Type() != "ifb" || old.Attrs().Alias != alias:
		return "", fmt.Errorf("%w: there is an interface %s", ErrTaken, block)
	}
	queues, err := netlink.QdiscList(link)
	if err != nil {
		return "", err
	}
	ours := slices.ContainsFunc(queues, func(q netlink.Qdisc) bool {
		return q.Type() == "htb" && q.Attrs().Handle == netlink.MakeHandle(ourMajor, 0)
	})
	for _, q := range queues {
		if a := q.Attrs(); a.Handle != 0 && a.Parent>>16 != ourMajor && a.Handle>>16 != ourMajor &&
			!(ours && q.Type() == "ingress") {
			return "", fmt.Errorf("%w: it has a queue %s %x: (tc qdisc show); take that away, or serve "+
				"without --shape", ErrTaken, q.Type(), a.Handle>>16)
		}
	}
	return block, clear(link, old, queues)
}

// clear takes away our own.
func clear(link, block netlink.Link, queues []netlink.Qdisc) (err error) {
	for _, q := range queues {
		if a := q.Attrs(); a.Parent == netlink.HANDLE_ROOT && a.Handle>>16 == ourMajor ||
			q.Type() == "ingress" {
			err = errors.Join(err, netlink.QdiscDel(q))
		}
	}
	if block != nil {
		err = errors.Join(err, netlink.LinkDel(block))
	}
	return err
}

// start makes both sides, with the classes that are always there.
func (s *Shaper) start(link netlink.Link, name string) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.TxQLen, attributes.Alias = name, queue, alias
	block := &netlink.Ifb{LinkAttrs: attributes}
	if err := netlink.LinkAdd(block); err != nil {
		return fmt.Errorf("an ifb %s: %w", name, err)
	}
	s.sides = [2]side{{
		link: link,
		v4:   ipv4Destination,
		v6:   ipv6Destination,
	}, {link: block, v4: ipv4Source, v6: ipv6Source}}
	// A process that is killed from here on leaves the root, by which the next one knows the rest.
	for i := range s.sides {
		if err := s.sides[i].start(s.line); err != nil {
			return err
		}
	}
	if err := errors.Join(netlink.LinkSetAlias(block, alias), netlink.LinkSetUp(block)); err != nil {
		return err
	}
	return redirect(link, block)
}

// Close takes everything away that Start made.
func (s *Shaper) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	link, block := s.sides[0].link, s.sides[1].link
	if link == nil {
		return nil // the ifb could not be made
	}
	queues, err := netlink.QdiscList(link)
	if err != nil {
		return err
	}
	s.sides = [2]side{}
	return clear(link, block, queues)
}

// Set says which devices there are. Each gets the same part of the line, at least, and what others
// leave of theirs.
func (s *Shaper) Set(list []Share) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(list) > most {
		return fmt.Errorf("%d devices: at most %d have a class", len(list), most)
	}
	want := make(map[netip.Addr]Share, len(list))
	for _, of := range list {
		of.Address = of.Address.Unmap().WithZone("")
		want[of.Address] = of
	}
	var errs []error
	for at, of := range s.given {
		if _, stays := want[at]; !stays {
			errs = append(errs, s.drop(at, of))
		}
	}
	part := max(s.line/int64(len(want)+1), slow)
	anew := part != s.part
	s.part = 0 // where something fails, all is said again
	for at, of := range want {
		errs = append(errs, s.give(at, of, part, anew))
	}
	err := errors.Join(errs...)
	if err == nil {
		s.part = part
	}
	return err
}

// Add gives a device its part before the next Set, which then gives the others less: to say so to
// each of them for every device of many that boot would take longer than their clones.
func (s *Shaper) Add(of Share) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	of.Address = of.Address.Unmap().WithZone("")
	if _, has := s.given[of.Address]; !has && len(s.given) == most {
		return fmt.Errorf("%d devices: no more have a class", most)
	}
	s.part = 0
	return s.give(of.Address, of, max(s.line/int64(len(s.given)+2), slow), false)
}

// drop takes the class of an address away.
func (s *Shaper) drop(at netip.Addr, of given) error {
	delete(s.given, at)
	var errs []error
	for i := range s.sides {
		errs = append(errs, s.sides[i].drop(at, of.minor))
	}
	return errors.Join(errs...)
}

// give makes or changes the class of an address.
func (s *Shaper) give(at netip.Addr, of Share, part int64, anew bool) error {
	before, has := s.given[at]
	if has && before.Share == of && !anew {
		return nil
	}
	ceil := s.line
	if of.Limit > 0 {
		ceil = min(ceil, max(of.Limit, slow))
	}
	minor := before.minor
	if !has {
		minor = s.freeMinor()
	}
	for i := range s.sides {
		if err := s.sides[i].class(minor, min(part, ceil), ceil); err != nil {
			return fmt.Errorf("the class of %s: %w", of.Device, err)
		}
		if has {
			continue
		}
		if err := s.sides[i].point(at, minor); err != nil {
			return fmt.Errorf("the filter of %s: %w", of.Device, err)
		}
	}
	s.given[at] = given{of, minor}
	return nil
}

func (s *Shaper) freeMinor() uint16 {
	taken := make(map[uint16]bool, len(s.given))
	for _, of := range s.given {
		taken[of.minor] = true
	}
	minor := uint16(first)
	for taken[minor] {
		minor++
	}
	return minor
}

// Used returns what each device has used since it got its class, in no order.
func (s *Shaper) Used() ([]Used, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var flows [2]map[uint16]Flow
	for i := range s.sides {
		var err error
		if flows[i], err = s.sides[i].flows(); err != nil {
			return nil, err
		}
	}
	list := make([]Used, 0, len(s.given))
	for _, of := range s.given {
		list = append(list, Used{of.Device, flows[0][of.minor], flows[1][of.minor]})
	}
	return list, nil
}

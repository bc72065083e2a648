package dhcp

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"dalmatiner/access/state"
)

// The times of addresses.
const (
	leaseFor = 12 * time.Hour
	offerFor = time.Minute      // until somebody takes what was offered
	spoiled  = 10 * time.Minute // an address that somebody else was found to have
)

// mostAddresses is how many a range may have.
const mostAddresses = 1 << 16

// errNone is the error of a range that is used up.
var errNone = errors.New("no address is free: wait for one, or make --dhcp-range larger")

// table is that of leases in the state, by MAC address.
const table state.Table = "lease"

// Migration is the layout of the state that leases need.
func Migration(tx *state.Tx) error { return tx.MakeTable(table) }

// Lease is an address that a machine has, or had last.
type Lease struct {
	MAC     string     `json:"mac"`
	Address netip.Addr `json:"address"`
	Until   time.Time  `json:"until"`
}

// leases are the addresses of a range. Those that were given are in the state, so a machine has the
// same one for as long as nobody else needs it. It is not for concurrent use.
type leases struct {
	file        *state.File
	first, last netip.Addr
	except      map[netip.Addr]bool // that are in the range and not given
	now         func() time.Time
	known       func(mac string) bool // a device, whose address nobody else gets

	of      map[string]Lease // by MAC address
	holders map[netip.Addr]string
	offers  map[netip.Addr]offer
}

// offer is an address that was offered to a machine, or that is spoiled: then it is nobody's.
type offer struct {
	mac   string
	until time.Time
}

// openLeases reads what was given before.
func openLeases(l *leases) error {
	l.of, l.holders, l.offers = make(map[string]Lease), make(map[netip.Addr]string),
		make(map[netip.Addr]offer)
	return l.file.View(func(tx *state.Tx) error {
		return state.Each(tx, table, func(mac string, of Lease) error {
			l.note(of)
			return nil
		})
	})
}

func (l *leases) note(of Lease) {
	if before, is := l.of[of.MAC]; is && l.holders[before.Address] == of.MAC {
		delete(l.holders, before.Address)
	}
	if other, is := l.holders[of.Address]; is {
		delete(l.of, other)
	}
	l.of[of.MAC], l.holders[of.Address] = of, of.MAC
}

// gives reports whether an address is one of those that are given at all.
func (l *leases) gives(a netip.Addr) bool {
	return l.first.Compare(a) <= 0 && a.Compare(l.last) <= 0 && !l.except[a]
}

// free reports whether a machine may have an address now.
func (l *leases) free(a netip.Addr, mac string) bool {
	if o, is := l.offers[a]; is && o.mac != mac && l.now().Before(o.until) {
		return false
	}
	holder, held := l.holders[a]
	return l.gives(a) && (!held || holder == mac || !l.now().Before(l.of[holder].Until) &&
		!l.known(holder))
}

// offer returns an address for a machine. It tries, in this order, its former address, the one it
// asks for, an unused one, and the one released the longest ago.
func (l *leases) offer(mac string, wants netip.Addr) (netip.Addr, error) {
	for a, o := range l.offers {
		if !l.now().Before(o.until) {
			delete(l.offers, a)
		}
	}
	a, ok := l.choose(mac, wants)
	if !ok {
		return a, errNone
	}
	l.offers[a] = offer{mac, l.now().Add(offerFor)}
	return a, nil
}

func (l *leases) choose(mac string, wants netip.Addr) (oldest netip.Addr, ok bool) {
	if had, is := l.of[mac]; is && l.free(had.Address, mac) {
		return had.Address, true
	}
	if wants.IsValid() && l.free(wants, mac) {
		return wants, true
	}
	var until time.Time
	for a := l.first; a.Compare(l.last) <= 0; a = a.Next() {
		if !l.free(a, mac) {
			continue
		}
		holder, held := l.holders[a]
		if !held {
			return a, true
		}
		if end := l.of[holder].Until; !ok || end.Before(until) {
			oldest, until, ok = a, end, true
		}
	}
	return oldest, ok
}

// take gives a machine an address, if it may have it.
func (l *leases) take(mac string, a netip.Addr) (bool, error) {
	if !l.free(a, mac) {
		return false, nil
	}
	of := Lease{MAC: mac, Address: a, Until: l.now().Add(leaseFor)}
	err := l.file.Update(func(tx *state.Tx) error {
		if other, is := l.holders[a]; is && other != mac {
			if err := tx.Delete(table, other); err != nil {
				return err
			}
		}
		return tx.Put(table, mac, of)
	})
	if err != nil {
		return false, fmt.Errorf("address %s: %w", a, err)
	}
	l.note(of)
	delete(l.offers, a)
	return true, nil
}

// release ends what a machine has. The address stays its own until others need it.
func (l *leases) release(mac string, a netip.Addr) error {
	of, is := l.of[mac]
	if !is || of.Address != a {
		return nil
	}
	of.Until = l.now()
	l.of[mac] = of
	return l.file.Update(func(tx *state.Tx) error { return tx.Put(table, mac, of) })
}

// spoil notes that somebody has an address who did not get it here.
func (l *leases) spoil(mac string, a netip.Addr) error {
	if o, is := l.offers[a]; !l.gives(a) || l.holders[a] != mac && !(is && o.mac == mac) {
		return nil // it is not the business of who says so
	}
	l.offers[a] = offer{"", l.now().Add(spoiled)}
	if l.holders[a] != mac {
		return nil
	}
	delete(l.of, mac)
	delete(l.holders, a)
	return l.file.Update(func(tx *state.Tx) error { return tx.Delete(table, mac) })
}

// Leases returns all that a state has, by MAC address.
func Leases(file *state.File) (list []Lease, err error) {
	list = []Lease{}
	return list, file.View(func(tx *state.Tx) error {
		return state.Each(tx, table, func(_ string, of Lease) error {
			list = append(list, of)
			return nil
		})
	})
}

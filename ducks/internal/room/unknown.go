package room

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"dalmatiner/access/state"
)

// Unknown is a machine that has asked for something to boot, and that nobody has added yet.
type Unknown struct {
	MAC     string     `json:"mac"`
	Address netip.Addr `json:"address"` // where it was last
	First   time.Time  `json:"first"`
	Last    time.Time  `json:"last"`
}

// mostUnknown is how many are noted. Of more the one that was seen longest ago goes.
const mostUnknown = 256

// parseMAC returns an address as devices have it.
func parseMAC(text string) (string, error) {
	mac, err := net.ParseMAC(text)
	if err != nil || len(mac) != 6 {
		return "", fmt.Errorf("%w: %q is no MAC address: want aa:bb:cc:dd:ee:ff", ErrRefused, text)
	}
	return mac.String(), nil
}

// ByMAC returns the device of an address, as devices have it: state.ErrUnknown if there is none.
func (r *Room) ByMAC(mac string) (Device, error) {
	all, err := r.Devices()
	if err != nil {
		return Device{}, err
	}
	for _, d := range all {
		if d.MAC == mac {
			return d, nil
		}
	}
	return Device{}, fmt.Errorf("device with address %s: %w", mac, state.ErrUnknown)
}

// Find returns the device of a MAC address. One that is not known is noted, for somebody to add it:
// state.ErrUnknown.
func (r *Room) Find(_ context.Context, mac string, at netip.Addr) (Device, error) {
	mac, err := parseMAC(mac)
	if err != nil {
		return Device{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d, err := r.ByMAC(mac)
	if errors.Is(err, state.ErrUnknown) {
		err = errors.Join(err, r.seen(mac, at))
	}
	return d, err
}

// seen notes an unknown machine.
func (r *Room) seen(mac string, at netip.Addr) error {
	return r.o.State.Update(func(tx *state.Tx) error {
		u := Unknown{MAC: mac, First: r.o.Now()}
		if err := tx.Get(unknown, mac, &u); err != nil && !errors.Is(err, state.ErrUnknown) {
			return err
		}
		u.Address, u.Last = at, r.o.Now()
		count, oldest := 0, Unknown{}
		err := state.Each(tx, unknown, func(key string, o Unknown) error {
			if key != mac {
				count++
				if oldest.MAC == "" || o.Last.Before(oldest.Last) {
					oldest = o
				}
			}
			return nil
		})
		if err == nil && count >= mostUnknown {
			err = tx.Delete(unknown, oldest.MAC)
		}
		return errors.Join(err, tx.Put(unknown, mac, u))
	})
}

// Unknowns returns the machines that wait to be added, by address.
func (r *Room) Unknowns() ([]Unknown, error) { return list[Unknown](r, unknown) }

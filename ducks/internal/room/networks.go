package room

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"dalmatiner/access/state"
)

// Client is who owns networks: a customer, or a department.
type Client struct {
	Name   string `json:"name"`
	Limits Counts `json:"limits"` // of all of its networks together
}

// Network owns images and devices: each volume, menu and disk is of one network, each group of that
// of its volume, each device of that of its group. Nothing leaves its network.
type Network struct {
	Name   string `json:"name"`
	Client string `json:"client"`
	Limits Counts `json:"limits"`
}

// Counts are how much a client or network has, or may have: in a limit, 0 is none.
type Counts struct {
	Networks int64 `json:"networks,omitempty"` // of a client
	Volumes  int64 `json:"volumes,omitempty"`
	Groups   int64 `json:"groups,omitempty"`
	Devices  int64 `json:"devices,omitempty"`
	Disks    int64 `json:"disks,omitempty"`
	Menus    int64 `json:"menus,omitempty"`
	// bytes: the sizes of volumes and disks, and what the images of devices may take
	Space int64 `json:"space,omitempty"`
}

// Default is the name of the client that is there from the beginning, and of its network.
const Default = "default"

// ErrLimit is the error of what a client or network may not have more of.
var ErrLimit = errors.New("it is limited")

const (
	clients  state.Table = "client"
	networks state.Table = "network"
)

// Place is where something is in the tree of clients, networks and groups. What is of no group has
// none.
type Place struct{ Client, Network, Group string }

// Tree is which network everything is of, at one moment.
type Tree struct {
	Clients  map[string]Client
	Networks map[string]Network
	Has      map[string]Counts // by network
	networks map[state.Table]map[string]string
	groups   map[string]string // of devices
	sizes    map[string]int64  // of the volumes of groups
}

// Kinds of things that have a place. Their names are the kinds of scopes as well.
const (
	AClient  = clients
	ANetwork = networks

	AVolume = volumes
	AGroup  = groups
	ADevice = devices
	ADisk   = disks
	AMenu   = menus
)

// Place returns where a thing is. It is empty of one that is not known.
func (t *Tree) Place(kind state.Table, name string) Place {
	switch kind {
	case clients:
		return Place{Client: t.Clients[name].Name}
	case networks:
		n := t.Networks[name]
		return Place{Client: n.Client, Network: n.Name}
	}
	p := t.Place(networks, t.networks[kind][name])
	switch {
	case p == Place{}:
	case kind == groups:
		p.Group = name
	case kind == devices:
		p.Group = t.groups[name]
	}
	return p
}

// Networks are the networks of a server, and their owners. Its methods may be called concurrently.
type Networks struct{ *Room }

// Networks returns those of the room.
func (r *Room) Networks() Networks { return Networks{r} }

// Tree returns which network everything is of.
func (r Networks) Tree() (t Tree, err error) {
	return t, r.o.State.View(func(tx *state.Tx) error {
		t, err = tree(tx)
		return err
	})
}

// owned is what all things have that are of a network by themselves, and what counts of them.
type owned struct {
	Network string `json:"network"`
	Volume  string `json:"volume"`
	Size    int64  `json:"size"`
}

func tree(tx *state.Tx) (Tree, error) {
	t := Tree{Clients: make(map[string]Client), Networks: make(map[string]Network),
		Has:      make(map[string]Counts),
		networks: make(map[state.Table]map[string]string), groups: make(map[string]string),
		sizes: make(map[string]int64)}
	volumeSizes := make(map[string]int64)
	add := func(network string, more Counts) { t.Has[network] = t.Has[network].plus(more) }
	each := func(kind state.Table, note func(name string, of owned)) error {
		t.networks[kind] = make(map[string]string)
		return state.Each(tx, kind, func(name string, of owned) error {
			t.networks[kind][name] = of.Network
			note(name, of)
			return nil
		})
	}
	err := errors.Join(
		state.Each(tx, clients, func(name string, c Client) error { t.Clients[name] = c; return nil }),
		state.Each(tx, networks, func(name string, n Network) error { t.Networks[name] = n; return nil }),
		each(volumes, func(name string, of owned) {
			volumeSizes[name] = of.Size
			add(of.Network, Counts{Volumes: 1, Space: of.Size})
		}),
		each(groups, func(name string, of owned) {
			t.sizes[name] = volumeSizes[of.Volume]
			add(of.Network, Counts{Groups: 1})
		}),
		each(disks, func(_ string, of owned) { add(of.Network, Counts{Disks: 1, Space: of.Size}) }),
		each(menus, func(_ string, of owned) { add(of.Network, Counts{Menus: 1}) }))
	t.networks[devices] = make(map[string]string)
	return t, errors.Join(err, state.Each(tx, devices, func(name string, d Device) error {
		network := t.networks[groups][d.Group]
		t.networks[devices][name], t.groups[name] = network, d.Group
		add(network, Counts{Devices: 1, Space: t.promised(&d)})
		return nil
	}))
}

// promised returns what the image of a device may take.
func (t *Tree) promised(d *Device) int64 {
	if size := t.sizes[d.Group]; d.Space == 0 || size < d.Space {
		return size
	}
	return d.Space
}

func (c Counts) plus(o Counts) Counts {
	return Counts{c.Networks + o.Networks, c.Volumes + o.Volumes, c.Groups + o.Groups, c.Devices +
		o.Devices, c.Disks + o.Disks, c.Menus + o.Menus, c.Space + o.Space}
}

// OfClient returns what the networks of a client have together.
func (t *Tree) OfClient(name string) (has Counts) {
	for _, n := range t.Networks {
		if n.Client == name {
			has = has.plus(t.Has[n.Name])
			has.Networks++
		}
	}
	return has
}

// over returns ErrLimit, with what there is too much of, where more of something is more than a
// limit.
func (c Counts) over(limit, more Counts) error {
	has, may, wants := reflect.ValueOf(c), reflect.ValueOf(limit), reflect.ValueOf(more)
	for i := range has.NumField() {
		n, most, add := has.Field(i).Int(), may.Field(i).Int(), wants.Field(i).Int()
		if add <= 0 || most == 0 || n+add <= most {
			continue
		}
		what := strings.ToLower(has.Type().Field(i).Name)
		if what == "space" {
			return fmt.Errorf("%w to %d bytes, of which %d are given away, and %d more are wanted: less "+
				"of them, or a higher limit", ErrLimit, most, n, add)
		}
		return fmt.Errorf("%w to %d %s, and has %d: delete some, or raise the limit", ErrLimit, most,
			what, n)
	}
	return nil
}

// takes returns ErrLimit where a network, or its client, may not have so much more.
func (t *Tree) takes(network string, more Counts) error {
	n, is := t.Networks[network]
	if !is {
		return fmt.Errorf("network %s: %w", network, state.ErrUnknown)
	}
	if err := t.Has[network].over(n.Limits, more); err != nil {
		return fmt.Errorf("network %s: %w", network, err)
	}
	has := t.OfClient(n.Client)
	if err := has.over(t.Clients[n.Client].Limits, more); err != nil {
		return fmt.Errorf("client %s: %w", n.Client, err)
	}
	return nil
}

// change changes the state by what there is, in one transaction.
func (r Networks) change(do func(tx *state.Tx, t *Tree) error) error {
	return r.o.State.Update(func(tx *state.Tx) error {
		t, err := tree(tx)
		if err != nil {
			return err
		}
		return do(tx, &t)
	})
}

// grow does what gives a network so much more, in one transaction, unless that is too much.
func (r Networks) grow(network string, more Counts, do func(tx *state.Tx) error) error {
	return r.change(func(tx *state.Tx, t *Tree) error {
		if err := t.takes(network, more); err != nil {
			return err
		}
		return do(tx)
	})
}

// may returns ErrLimit where a network may not have so much more.
func (r Networks) may(network string, more Counts) error {
	t, err := r.Tree()
	if err != nil {
		return err
	}
	return t.takes(network, more)
}

func (c Counts) check() error {
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		if v.Field(i).Int() < 0 {
			return fmt.Errorf("%w: a limit is a number from 1 on, or 0 for none", ErrRefused)
		}
	}
	return nil
}

// CreateClient makes a client without networks.
func (r Networks) CreateClient(c Client) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.fresh(clients, c.Name), c.Limits.check()); err != nil {
		return err
	}
	return r.put(clients, c.Name, c)
}

// Create makes an empty network.
func (r Networks) Create(n Network) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.fresh(networks, n.Name), n.Limits.check()); err != nil {
		return err
	}
	n.Limits.Networks = 0
	return r.change(func(tx *state.Tx, t *Tree) error {
		c, is := t.Clients[n.Client]
		if !is {
			return fmt.Errorf("client %s: %w", n.Client, state.ErrUnknown)
		}
		if err := t.OfClient(c.Name).over(c.Limits, Counts{Networks: 1}); err != nil {
			return fmt.Errorf("client %s: %w", c.Name, err)
		}
		return tx.Put(networks, n.Name, n)
	})
}

// Limit gives a network other limits. What it has beyond them stays.
func (r Networks) Limit(name string, to Counts) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var n Network
	if err := errors.Join(r.get(networks, name, &n), to.check()); err != nil {
		return err
	}
	n.Limits = to
	n.Limits.Networks = 0
	return r.put(networks, name, n)
}

// LimitClient gives a client other limits. What it has beyond them stays.
func (r Networks) LimitClient(name string, to Counts) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var c Client
	if err := errors.Join(r.get(clients, name, &c), to.check()); err != nil {
		return err
	}
	c.Limits = to
	return r.put(clients, name, c)
}

// Remove removes a network that has nothing.
func (r Networks) Remove(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.change(func(tx *state.Tx, t *Tree) error {
		if _, is := t.Networks[name]; !is {
			return fmt.Errorf("network %s: %w", name, state.ErrUnknown)
		}
		if t.Has[name] != (Counts{}) {
			return fmt.Errorf("network %s: %w: it has volumes, disks or menus: delete them first", name,
				ErrBusy)
		}
		return tx.Delete(networks, name)
	})
}

// RemoveClient removes a client without networks.
func (r Networks) RemoveClient(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.change(func(tx *state.Tx, t *Tree) error {
		if _, is := t.Clients[name]; !is {
			return fmt.Errorf("client %s: %w", name, state.ErrUnknown)
		}
		if t.OfClient(name).Networks > 0 {
			return fmt.Errorf("client %s: %w: it has networks: delete them first", name, ErrBusy)
		}
		return tx.Delete(clients, name)
	})
}

package room

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/access/state"
)

// owned things of the model: each has a kind, and the one above it.
type thing struct {
	kind, name, above string
	size, space       int64
	with              string // the device that has a disk, the menu that a group has
}

// limitKey is a limit of a client or network on a kind.
type limitKey struct{ of, kind string }

// estate is the tree as a list of things. It knows nothing of tables.
type estate struct {
	things []*thing
	limits map[limitKey]int64
}

func (e *estate) find(kind, name string) *thing {
	for _, t := range e.things {
		if t.kind == kind && t.name == name {
			return t
		}
	}
	return nil
}

var aboveKind = map[string]string{"network": "client", "volume": "network", "disk": "network",
	"menu": "network", "group": "volume", "device": "group"}

// chain returns what a thing is below, the thing first.
func (e *estate) chain(t *thing) (list []*thing) {
	for ; t != nil; t = e.find(aboveKind[t.kind], t.above) {
		list = append(list, t)
	}
	return list
}

func (e *estate) below(t, top *thing) bool {
	for _, of := range e.chain(t)[1:] {
		if of == top {
			return true
		}
	}
	return false
}

// space is what of a thing is given away.
func (e *estate) space(t *thing) int64 {
	switch t.kind {
	case "volume", "disk":
		return t.size
	case "device":
		size := e.find("volume", e.find("group", t.above).above).size
		if t.space > 0 && t.space < size {
			return t.space
		}
		return size
	}
	return 0
}

// fits reports whether a change keeps to the limits: what there is more of afterwards is within
// them.
func (e *estate) fits(change func(e *estate)) bool {
	after := &estate{limits: e.limits}
	for _, t := range e.things {
		c := *t
		after.things = append(after.things, &c)
	}
	change(after)
	for key, most := range e.limits {
		if most == 0 {
			continue
		}
		if before, now := e.count(key), after.count(key); now > before && now > most {
			return false
		}
	}
	return true
}

func (e *estate) count(key limitKey) (n int64) {
	var top *thing
	for _, t := range e.things {
		if t.kind+" "+t.name == key.of {
			top = t
		}
	}
	if top == nil {
		return 0
	}
	for _, t := range e.things {
		if !e.below(t, top) {
			continue
		}
		if key.kind == "space" {
			n += e.space(t)
		} else if t.kind == key.kind {
			n++
		}
	}
	return n
}

// landlords do the same to a room and to the model.
type landlords struct {
	t *rapid.T
	*Room
	model *estate
	count int
}

// TestTheTreeEqualsTheModel makes, limits, moves and deletes in any order, and compares what there
// is, where it is, and what was refused.
func TestTheTreeEqualsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, _, closed := inMemory(t)
		defer closed()
		o := &landlords{t: t, Room: r, model: &estate{limits: map[limitKey]int64{}}}
		o.model.things = []*thing{{kind: "client", name: Default},
			{kind: "network", name: Default, above: Default}}
		t.Repeat(map[string]func(*rapid.T){"": o.check, "make": o.make, "device": o.device,
			"limit": o.limit, "delete": o.delete, "move": o.move, "move more": o.move, "give": o.give})
	})
}

func (o *landlords) any(t *rapid.T, kind string) *thing {
	var of []*thing
	for _, is := range o.model.things {
		if is.kind == kind {
			of = append(of, is)
		}
	}
	if len(of) == 0 {
		t.Skip("there is none")
	}
	return rapid.SampledFrom(of).Draw(t, kind)
}

var kinds = []string{"client", "network", "volume", "group", "device", "disk", "menu"}

// make makes something. The room refuses it where the model has no room for it.
func (o *landlords) make(t *rapid.T) {
	o.makeA(t, rapid.SampledFrom(kinds).Draw(t, "kind"))
}

// device makes a device: there are most of them.
func (o *landlords) device(t *rapid.T) { o.makeA(t, "device") }

func (o *landlords) makeA(t *rapid.T, kind string) {
	ctx := context.Background()
	o.count++
	m := &thing{kind: kind, name: fmt.Sprint("n", o.count)}
	if above := aboveKind[m.kind]; above != "" {
		m.above = o.any(t, above).name
	}
	m.size = int64(rapid.IntRange(1, 4).Draw(t, "size")) * LeastSpace
	var err error
	switch m.kind {
	case "client":
		err = o.Networks().CreateClient(Client{Name: m.name})
	case "network":
		err = o.Networks().Create(Network{Name: m.name, Client: m.above})
	case "volume":
		err = o.CreateVolume(ctx, Volume{Name: m.name, Network: m.above, Size: m.size}, "")
	case "group":
		err = o.CreateGroup(ctx, m.name, m.above, "")
	case "device":
		m.space = int64(rapid.IntRange(0, 3).Draw(t, "space")) * LeastSpace
		err = o.AddDevice(ctx,
			Device{Name: m.name, MAC: fmt.Sprintf("02:00:00:00:%02x:%02x", o.count>>8, o.count&255),
				Group: m.above, Mode: Volatile, Space: m.space})
	case "disk":
		err = o.Disks().Create(ctx, Disk{Name: m.name, Network: m.above, Size: m.size})
	case "menu":
		err = o.Menus().Put(Menu{Name: m.name, Network: m.above,
			Entries: []Entry{{Key: "a", Text: "a", Chain: "http://192.0.2.1/"}}})
	}
	if o.agrees(t, err, ErrLimit, func(e *estate) { e.things = append(e.things, m) }) {
		o.model.things = append(o.model.things, m)
	}
}

// agrees compares whether something was done with what the model says of it.
func (o *landlords) agrees(t *rapid.T, err, refusal error, change func(e *estate)) bool {
	fits := o.model.fits(change)
	if fits != (err == nil) || err != nil && !errors.Is(err, refusal) {
		t.Fatalf("it fits: %t, and the room says: %v", fits, err)
	}
	return fits
}

func (o *landlords) limit(t *rapid.T) {
	of := o.any(t, rapid.SampledFrom([]string{"client", "network"}).Draw(t, "kind"))
	draw := func(name string) int64 {
		n := int64(rapid.IntRange(0, 3).Draw(t, name))
		if name == "space" {
			n *= 4 * LeastSpace
		}
		o.model.limits[limitKey{of.kind + " " + of.name, name}] = n
		return n
	}
	to := Counts{Volumes: draw("volume"), Groups: draw("group"), Devices: draw("device"),
		Disks: draw("disk"), Menus: draw("menu"), Space: draw("space")}
	var err error
	if of.kind == "client" {
		to.Networks = draw("network")
		err = o.Networks().LimitClient(of.name, to)
	} else {
		err = o.Networks().Limit(of.name, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// delete deletes something, unless something is below it, or has it.
func (o *landlords) delete(t *rapid.T) {
	ctx := context.Background()
	of := o.any(t, rapid.SampledFrom(kinds).Draw(t, "kind"))
	busy := of.kind == "disk" && of.with != ""
	for _, is := range o.model.things {
		busy = busy || o.model.below(is, of) || of.kind == "menu" && is.kind == "group" &&
			is.with == of.name
	}
	var err error
	switch of.kind {
	case "client":
		err = o.Networks().RemoveClient(of.name)
	case "network":
		err = o.Networks().Remove(of.name)
	case "volume":
		err = o.RemoveVolume(ctx, of.name)
	case "group":
		err = o.RemoveGroup(ctx, of.name)
	case "device":
		err = o.RemoveDevice(ctx, of.name)
	case "disk":
		err = o.Disks().Remove(ctx, of.name)
	case "menu":
		err = o.Menus().Remove(of.name)
	}
	if busy != errors.Is(err, ErrBusy) || !busy && err != nil {
		t.Fatalf("delete %s %s: it is needed: %t, and the room says: %v", of.kind, of.name, busy, err)
	}
	if busy {
		return
	}
	left := o.model.things[:0:0]
	for _, is := range o.model.things {
		if is.kind == "disk" && of.kind == "device" && is.with == of.name {
			is.with = ""
		}
		if is != of {
			left = append(left, is)
		}
	}
	o.model.things = left
	for key := range o.model.limits {
		if key.of == of.kind+" "+of.name {
			delete(o.model.limits, key)
		}
	}
}

func (o *landlords) network(t *thing) string {
	for _, of := range o.model.chain(t) {
		if of.kind == "network" {
			return of.name
		}
	}
	return ""
}

// move moves a device to another group, and gives it another limit of space.
func (o *landlords) move(t *rapid.T) {
	d, to := o.any(t, "device"), o.any(t, "group")
	space := int64(rapid.IntRange(0, 3).Draw(t, "space")) * LeastSpace
	err := o.ChangeDevice(context.Background(), d.name, func(is *Device) {
		is.Group, is.Space = to.name, space
	})
	if o.network(d) != o.network(to) {
		if !errors.Is(err, ErrRefused) {
			t.Fatalf("a device leaves its network: %v", err)
		}
		return
	}
	if o.agrees(t, err, ErrLimit, func(e *estate) {
		is := e.find("device", d.name)
		is.above, is.space = to.name, space
	}) {
		d.above, d.space = to.name, space
	}
}

// give gives a disk to a device, and a menu to a group.
func (o *landlords) give(t *rapid.T) {
	disk, device, menu, group := o.any(t, "disk"), o.any(t, "device"), o.any(t, "menu"),
		o.any(t, "group")
	for _, of := range []struct {
		what, to *thing
		err      error
		had      *thing
		name     string
	}{
		{disk, device, o.Disks().Give(context.Background(), disk.name, device.name), disk, device.name},
		{menu, group, o.Menus().Give(group.name, menu.name), group, menu.name},
	} {
		same := o.network(of.what) == o.network(of.to)
		if same != (of.err == nil) || of.err != nil && !errors.Is(of.err, ErrRefused) {
			t.Fatalf("%s %s for %s %s: of one network: %t, and the room says: %v", of.what.kind,
				of.what.name, of.to.kind, of.to.name, same, of.err)
		}
		if same {
			of.had.with = of.name
		}
	}
}

// check: all is where the model has it, and as much.
func (o *landlords) check(t *rapid.T) {
	tree, err := o.Networks().Tree()
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]state.Table{"volume": AVolume, "group": AGroup, "device": ADevice,
		"disk": ADisk, "menu": AMenu}
	for _, of := range o.model.things {
		if of.kind == "client" || of.kind == "network" {
			var has Counts
			if of.kind == "client" {
				has = tree.OfClient(of.name)
			} else {
				has = tree.Has[of.name]
			}
			count := func(kind string) int64 {
				return o.model.count(limitKey{of.kind + " " + of.name, kind})
			}
			want := Counts{count("network"), count("volume"), count("group"), count("device"), count("disk"),
				count("menu"), count("space")}
			if has != want {
				t.Fatalf("%s %s has %+v, not %+v", of.kind, of.name, has, want)
			}
			continue
		}
		want := Place{}
		for _, above := range o.model.chain(of) {
			switch above.kind {
			case "client":
				want.Client = above.name
			case "network":
				want.Network = above.name
			case "group":
				want.Group = above.name
			}
		}
		if got := tree.Place(tables[of.kind], of.name); got != want {
			t.Fatalf("%s %s is at %+v, not at %+v", of.kind, of.name, got, want)
		}
	}
}

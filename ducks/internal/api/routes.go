package api

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"dalmatiner/access"
	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/alerts"
	"dalmatiner/ducks/internal/dhcp"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/room"
)

// The bodies of requests.
type (
	// NewVolume makes a volume.
	NewVolume struct {
		Name    string `json:"name"`
		Network string `json:"network,omitempty"` // the only one of who asks, or the default, if empty
		Size    int64  `json:"size"`              // bytes
	}
	// NewGroup makes a group.
	NewGroup struct {
		Name   string `json:"name"`
		Volume string `json:"volume"`
	}
	// Update is where a version comes from.
	Update struct {
		From string `json:"from,omitempty"` // the device; of a promotion nothing
		Note string `json:"note"`

		Canary *Canary `json:"canary,omitempty"` // who gets it first; nothing: all do
	}
	// Canary is the devices that get a version first, and how far they have to come.
	Canary struct {
		Share  int     `json:"share"`            // percent of the devices
		Until  string  `json:"until,omitempty"`  // read or up; up if empty
		Within float64 `json:"within,omitempty"` // seconds of a boot; 600 if 0
	}
	// Rollback names a version; 0 is the newest.
	Rollback struct {
		Version int `json:"version"`
	}
	// NewDevice makes a device.
	NewDevice struct {
		Name  string    `json:"name"`
		MAC   string    `json:"mac"`
		Group string    `json:"group"`
		Mode  room.Mode `json:"mode"`
		Until time.Time `json:"until,omitzero"`
		Limit int64     `json:"limit,omitempty"` // bits a second each way; 0: none
		Space int64     `json:"space,omitempty"` // bytes that its image may take; 0: no limit
	}
	// DeviceChange is what changes of a device; what is left out stays.
	DeviceChange struct {
		Group *string    `json:"group,omitempty"`
		Mode  *room.Mode `json:"mode,omitempty"`
		Until time.Time  `json:"until,omitzero"` // goes with mode until
		Pin   *int       `json:"pin,omitempty"`
		Limit *int64     `json:"limit,omitempty"` // bits a second each way; 0: none
		Space *int64     `json:"space,omitempty"` // bytes that its image may take; 0: no limit

		Afresh *bool `json:"afresh,omitempty"` // it begins anew when it boots next, whatever its mode
	}
	// Detach says how a disk is taken from a device.
	Detach struct {
		Force bool `json:"force,omitempty"` // also while somebody is logged in, whose session is closed
	}
	// NewToken makes a token.
	NewToken struct {
		Name string      `json:"name"`
		Role access.Role `json:"role"`
		Limited
		Expires time.Time `json:"expires,omitzero"`
	}
)

// none is the body of a request without one, and of an answer that says nothing.
type none struct{}

// asks is a route that changes nothing.
func asks[Out any](pattern, text string, role access.Role, do func(c *call) (Out, error)) route {
	return route{pattern: pattern, text: text, role: role, out: reflect.TypeFor[Out](),
		do: func(c *call) (any, error) {
			return do(c)
		}}
}

// acts is a route that changes something, with a body unless In is none. It is in the trail as
// what.
func acts[In, Out any](pattern, text string, role access.Role, what string,
	do func(c *call, in In) (Out, error)) route {
	r := route{pattern: pattern, text: text, role: role, what: what, in: reflect.TypeFor[In](),
		out: reflect.TypeFor[Out]()}
	if r.in == reflect.TypeFor[none]() {
		r.in = nil
	}
	r.do = func(c *call) (any, error) {
		var in In
		if r.in != nil {
			var err error
			if in, err = read[In](c); err != nil {
				return nil, err
			}
		}
		return do(c, in)
	}
	return r
}

// removes is a route that takes the thing of its address away.
func removes(pattern, text string, role access.Role, what string, do func(c *call) error) route {
	return acts(pattern, text, role, what, func(c *call, _ none) (none, error) {
		return none{}, do(c)
	})
}

func routes() []route {
	return slices.Concat(owners(), images(), volumes(), groups(), versions(), menus(), disks(),
		devices(), people())
}

func images() []route {
	return []route{
		asks("GET /api/v1/pool", "How large the pool is, and how much is free.", access.Viewer,
			func(c *call) (pool.Space, error) {
				return c.Pool.Space(c.Context())
			}),
		asks("GET /api/v1/orphans", "Images that no device has.", access.Viewer,
			func(c *call) ([]string, error) {
				return c.Room.Orphans(c.Context())
			}),
		removes("DELETE /api/v1/orphans/{name}", "Delete one of these images.", access.Operator,
			"delete orphan", func(c *call) error {
				return c.Room.RemoveOrphan(c.Context(), c.object)
			}),
	}
}

func volumes() []route {
	return []route{
		within(theirs, asks("GET /api/v1/volumes", "All volumes, with their versions.", access.Viewer,
			func(c *call) ([]room.Volume, error) {
				list, err := c.Room.Volumes()
				return seen(c, list, err, room.AVolume, func(v room.Volume) string { return v.Name })
			})),
		within(theirs, acts("POST /api/v1/volumes", "Make an empty volume.", access.Operator,
			"create volume", createVolume)),
		within(about(room.AVolume),
			removes("DELETE /api/v1/volumes/{name}", "Delete a volume that no group is of.", access.Operator,
				"delete volume", func(c *call) error {
					return c.Room.RemoveVolume(c.Context(), c.object)
				})),
		{pattern: "PUT /api/v1/volumes/{name}/image",
			text: "Make a volume, or its next version, of the bytes of a disk, which may be packed " +
				"(Content-Encoding: zstd). Their SHA-256 is in the header or trailer " + SumHeader + ".",
			role: access.Operator, what: "import image", do: importVolume,
			out: reflect.TypeFor[room.Version](), image: true, query: []string{"size", "note", "network"},
			scope: theirs},
		{pattern: "GET /api/v1/volumes/{name}/image",
			text: "The bytes of the disk of a version, packed for who takes that (Accept-Encoding: zstd), " +
				"with their SHA-256 in the trailer " + SumHeader + ".",
			role: access.Operator, what: "export image", do: exportVolume, query: []string{"version"},
			scope: about(room.AVolume)},
		within(about(room.AVolume), asks("GET /api/v1/volumes/{name}/versions/{number}/files",
			"Which files differ from the version before.", access.Viewer, volumeFiles)),
	}
}

func groups() []route {
	return []route{
		within(theirs, asks("GET /api/v1/groups", "All groups, with their versions.", access.Viewer,
			func(c *call) ([]room.Group, error) {
				list, err := c.Room.Groups()
				return seen(c, list, err, room.AGroup, func(g room.Group) string { return g.Name })
			})),
		within(about(room.AGroup), asks("GET /api/v1/groups/{name}", "A group.", access.Viewer,
			func(c *call) (room.Group, error) {
				return c.Room.Group(c.object)
			})),
		within(theirs, acts("POST /api/v1/groups", "Make a group that begins with the newest version "+
			"of a volume.", access.Operator, "create group", createGroup)),
		within(above(room.AGroup),
			removes("DELETE /api/v1/groups/{name}", "Delete a group without devices.", access.Operator,
				"delete group", deleteGroup)),
		within(about(room.AGroup),
			acts("PUT /api/v1/groups/{name}/menu", "Give a menu to its devices, or take it away.",
				access.Operator, "give menu", func(c *call, to GroupMenu) (none, error) {
					return none{}, c.Room.Menus().Give(c.object, to.Menu)
				})),
		within(about(room.AGroup),
			acts("PUT /api/v1/groups/{name}/timeouts",
				"Say how long its devices wait for a disk that does not answer.", access.Operator,
				"change group", func(c *call, to room.Timeouts) (none, error) {
					return none{}, c.Room.SetTimeouts(c.object, to)
				})),
	}
}

// versions are the routes of a group's versions, and of which of them its devices get.
func versions() []route {
	return []route{
		within(about(room.AGroup), asks("GET /api/v1/groups/{name}/versions/{number}/files",
			"Which files differ from the version before.", access.Viewer, groupFiles)),
		within(about(room.AGroup), removes("DELETE /api/v1/groups/{name}/versions/{number}",
			"Delete a version that no device gets.", access.Operator, "delete version", deleteVersion)),
		within(about(room.AGroup),
			acts("POST /api/v1/groups/{name}/update", "Make what a device has written the newest version.",
				access.Operator, "update group", func(c *call, u Update) (room.Version, error) {
					if err := c.works(c.where(room.ADevice, u.From)); err != nil {
						return room.Version{}, err
					}
					of := room.Update{Device: u.From, Author: c.who.Name, Note: u.Note}
					if u.Canary != nil {
						of.Try = &room.Canary{Share: u.Canary.Share, Until: u.Canary.Until,
							Within: time.Duration(u.Canary.Within * float64(time.Second))}
					}
					return c.Room.UpdateGroup(c.Context(), c.object, of)
				})),
		within(about(room.AGroup),
			acts("POST /api/v1/groups/{name}/release",
				"Give all devices the version that canaries have tried.", access.Operator, "release group",
				func(c *call, _ none) (room.Version, error) {
					return c.Room.Canaries().Release(c.Context(), c.object)
				})),
		within(above(room.AGroup),
			acts("POST /api/v1/groups/{name}/promote", "Give the version of a group to its volume.",
				access.Operator, "promote group", func(c *call, u Update) (room.Version, error) {
					return c.Room.Promote(c.Context(), c.object, c.who.Name, u.Note)
				})),
		within(about(room.AGroup),
			acts("POST /api/v1/groups/{name}/rollback", "Let devices get an older version.", access.Operator,
				"roll back group", func(c *call, to Rollback) (none, error) {
					return none{}, c.Room.Rollback(c.Context(), c.object, to.Version)
				})),
	}
}

func menus() []route {
	return []route{
		within(theirs, asks("GET /api/v1/menus", "All menus.", access.Viewer,
			func(c *call) ([]room.Menu, error) {
				list, err := c.Room.Menus().List()
				return seen(c, list, err, room.AMenu, func(m room.Menu) string { return m.Name })
			})),
		within(theirs, acts("PUT /api/v1/menus/{name}", "Make a menu, or replace it.", access.Operator,
			"put menu", putMenu)),
		within(about(room.AMenu),
			removes("DELETE /api/v1/menus/{name}", "Delete a menu that no group has.", access.Operator,
				"delete menu", func(c *call) error {
					return c.Room.Menus().Remove(c.object)
				})),
	}
}

func disks() []route {
	return []route{
		within(theirs, asks("GET /api/v1/disks", "All further disks.", access.Viewer,
			func(c *call) ([]room.Disk, error) {
				list, err := c.Room.Disks().List()
				return seen(c, list, err, room.ADisk, func(d room.Disk) string { return d.Name })
			})),
		within(theirs, acts("POST /api/v1/disks", "Make an empty further disk.", access.Operator,
			"create disk", createDisk)),
		within(about(room.ADisk),
			acts("PUT /api/v1/disks/{name}/device",
				"Give it to a device from its next boot on, or take it away.", access.Operator, "give disk",
				func(c *call, to Owner) (none, error) {
					return none{}, c.Room.Disks().Give(c.Context(), c.object, to.Device)
				})),
		within(about(room.ADisk),
			removes("DELETE /api/v1/disks/{name}",
				"Delete a further disk that no device has, with all that is on it.", access.Operator,
				"delete disk", func(c *call) error {
					return c.Room.Disks().Remove(c.Context(), c.object)
				})),
	}
}

// GroupMenu is the menu that a group gets; empty: none.
type GroupMenu struct {
	Menu string `json:"menu"`
}

// Owner is the device that gets a further disk; empty: none has it.
type Owner struct {
	Device string `json:"device"`
}

func devices() []route {
	return []route{
		within(theirs, asks("GET /api/v1/devices", "All devices.", access.Viewer, listDevices)),
		within(about(room.ADevice),
			asks("GET /api/v1/devices/{name}", "A device, for an admin with its secret.", access.Viewer,
				showDevice)),
		within(about(room.ADevice),
			asks("GET /api/v1/devices/{name}/boots", "Its last boots, the newest first.", access.Viewer,
				showBoots)),
		within(theirs, acts("POST /api/v1/devices", "Make a machine known.", access.Operator,
			"add device", addDevice)),
		within(about(room.ADevice),
			acts("PATCH /api/v1/devices/{name}",
				"Move it to another group, pin it, or change its mode or limits.", access.Operator,
				"change device", changeDevice)),
		within(about(room.ADevice),
			acts("POST /api/v1/devices/{name}/attach",
				"Get its disk ready for an initiator that asks for no script.", access.Operator,
				"attach device", attachDevice)),
		within(about(room.ADevice),
			acts("POST /api/v1/devices/{name}/detach",
				"Take its disk away until it boots, or is attached, again.", access.Operator, "detach device",
				func(c *call, how Detach) (none, error) {
					return none{}, c.Room.Detach(c.Context(), c.object, how.Force)
				})),
		within(about(room.ADevice),
			acts("POST /api/v1/devices/{name}/wake", "Switch it on over the network.", access.Operator,
				"wake device", wakeDevice)),
		within(about(room.ADevice),
			removes("DELETE /api/v1/devices/{name}",
				"Delete a device that is off, with what it has written.", access.Operator, "delete device",
				func(c *call) error {
					return c.Room.RemoveDevice(c.Context(), c.object)
				})),
		within(theirs, asks("GET /api/v1/alerts", "What somebody should look at.", access.Viewer,
			showAlerts)),
		within(theirs, asks("GET /api/v1/plan", "What each device gets when it boots next, and loses.",
			access.Viewer, func(c *call) ([]room.Boot, error) {
				list, err := c.Room.Plan(c.Context())
				return seen(c, list, err, room.ADevice, func(b room.Boot) string { return b.Device })
			})),
		asks("GET /api/v1/leases", "The addresses that machines have.", access.Viewer,
			func(c *call) ([]dhcp.Lease, error) {
				return c.Leases()
			}),
		within(theirs, asks("GET /api/v1/unknown", "Machines that wait to be added.", access.Viewer,
			func(c *call) ([]room.Unknown, error) {
				return c.Room.Unknowns()
			})),
	}
}

func createVolume(c *call, v NewVolume) (none, error) {
	c.object = v.Name
	network, err := c.network(v.Network)
	if err != nil {
		return none{}, err
	}
	return none{}, c.Room.CreateVolume(c.Context(),
		room.Volume{Name: v.Name, Network: network, Size: v.Size}, c.who.Name)
}

func createDisk(c *call, v NewVolume) (none, error) {
	c.object = v.Name
	network, err := c.network(v.Network)
	if err != nil {
		return none{}, err
	}
	return none{}, c.Room.Disks().Create(c.Context(),
		room.Disk{Name: v.Name, Network: network, Size: v.Size})
}

func putMenu(c *call, m room.Menu) (_ none, err error) {
	m.Name = c.object
	switch within, e := c.where(room.AMenu, m.Name); {
	case errors.Is(e, state.ErrUnknown):
		m.Network, err = c.network(m.Network)
	default:
		err = c.works(within, e)
	}
	if err != nil {
		return none{}, err
	}
	return none{}, c.Room.Menus().Put(m)
}

func deleteGroup(c *call) error {
	if err := c.free(ofGroup + c.object); err != nil {
		return err
	}
	return c.Room.RemoveGroup(c.Context(), c.object)
}

func createGroup(c *call, g NewGroup) (none, error) {
	c.object = g.Name
	if err := c.works(c.where(room.AVolume, g.Volume)); err != nil {
		return none{}, err
	}
	return none{}, c.Room.CreateGroup(c.Context(), g.Name, g.Volume, c.who.Name)
}

func deleteVersion(c *call) error {
	number, err := c.version()
	if err != nil {
		return err
	}
	return c.Room.RemoveVersion(c.Context(), c.object, number)
}

func showAlerts(c *call) ([]alerts.Alert, error) {
	r := alerts.Room{Now: time.Now(), Boots: c.Times.Of}
	all, err := c.Room.Devices()
	if r.Devices, err = seen(c, all, err, room.ADevice, func(d room.Device) string {
		return d.Name
	}); err != nil {
		return nil, err
	}
	groups, err := c.Room.Groups()
	if r.Groups, err = seen(c, groups, err, room.AGroup, func(g room.Group) string {
		return g.Name
	}); err != nil {
		return nil, err
	}
	if r.Unknown, err = c.Room.Unknowns(); err != nil {
		return nil, err
	}
	if len(c.who.Scopes) == 0 { // the pool is that of all
		if r.Space, err = c.Pool.Space(c.Context()); err != nil {
			return nil, err
		}
	}
	return alerts.Look(&r), nil
}

func wakeDevice(c *call, _ none) (none, error) {
	d, err := c.Room.Device(c.object)
	if err != nil {
		return none{}, err
	}
	if c.Wake == nil {
		return none{}, fmt.Errorf("device %s: %w: start ducks serve with --dhcp: it has to know the "+
			"network of the room", d.Name, room.ErrRefused)
	}
	return none{}, c.Wake(d.MAC)
}

func addDevice(c *call, d NewDevice) (none, error) {
	c.object = d.Name
	if err := c.works(c.where(room.AGroup, d.Group)); err != nil {
		return none{}, err
	}
	return none{}, c.Room.AddDevice(c.Context(), room.Device{Name: d.Name, MAC: d.MAC, Group: d.Group,
		Mode: d.Mode, Until: d.Until, Limit: d.Limit, Space: d.Space})
}

func changeDevice(c *call, to DeviceChange) (none, error) {
	if to.Mode == nil && !to.Until.IsZero() {
		return none{}, fmt.Errorf("%w: a date goes with a mode", errRequest)
	}
	if to.Group != nil {
		if err := c.works(c.where(room.AGroup, *to.Group)); err != nil {
			return none{}, err
		}
	}
	return none{}, c.Room.ChangeDevice(c.Context(), c.object, func(d *room.Device) {
		if to.Group != nil {
			d.Group = *to.Group
		}
		if to.Mode != nil {
			d.Mode, d.Until = *to.Mode, to.Until
		}
		if to.Pin != nil {
			d.Pin = *to.Pin
		}
		if to.Limit != nil {
			d.Limit = *to.Limit
		}
		if to.Space != nil {
			d.Space = *to.Space
		}
		if to.Afresh != nil {
			d.Afresh = *to.Afresh
		}
	})
}

package api

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"dalmatiner/internal/access"
	"dalmatiner/internal/ducks/alerts"
	"dalmatiner/internal/ducks/dhcp"
	"dalmatiner/internal/ducks/pool"
	"dalmatiner/internal/ducks/room"
)

// The bodies of requests.
type (
	// NewVolume makes a volume.
	NewVolume struct {
		Name string `json:"name"`
		Size int64  `json:"size"` // bytes
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
	}
	// NewToken makes a token.
	NewToken struct {
		Name    string      `json:"name"`
		Role    access.Role `json:"role"`
		Groups  []string    `json:"groups,omitempty"` // to which it is limited; none: all
		Expires time.Time   `json:"expires,omitzero"`
	}
)

// none is the body of a request without one, and of an answer that says nothing.
type none struct{}

// asks is a route that changes nothing.
func asks[Out any](pattern, text string, role access.Role, do func(c *call) (Out, error)) route {
	return route{pattern: pattern, text: text, role: role, out: reflect.TypeFor[Out](), do: func(c *call) (any, error) { return do(c) }}
}

// acts is a route that changes something, with a body unless In is none. It is in the trail as what.
func acts[In, Out any](pattern, text string, role access.Role, what string, do func(c *call, in In) (Out, error)) route {
	r := route{pattern: pattern, text: text, role: role, what: what, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out]()}
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
	return acts(pattern, text, role, what, func(c *call, _ none) (none, error) { return none{}, do(c) })
}

func routes() []route { return slices.Concat(images(), disks(), devices(), people()) }

func images() []route {
	return []route{
		asks("GET /api/v1/pool", "How large the pool is, and how much is free.", access.Viewer, func(c *call) (pool.Space, error) { return c.Pool.Space(c.Context()) }),
		asks("GET /api/v1/orphans", "Images that no device has.", access.Viewer, func(c *call) ([]string, error) { return c.Room.Orphans(c.Context()) }),
		removes("DELETE /api/v1/orphans/{name}", "Delete one of these images.", access.Operator, "delete orphan", func(c *call) error { return c.Room.RemoveOrphan(c.Context(), c.object) }),
		asks("GET /api/v1/volumes", "All volumes, with their versions.", access.Viewer, func(c *call) ([]room.Volume, error) { return c.Room.Volumes() }),
		acts("POST /api/v1/volumes", "Make an empty volume.", access.Operator, "create volume", createVolume),
		removes("DELETE /api/v1/volumes/{name}", "Delete a volume that no group is of.", access.Operator, "delete volume", func(c *call) error { return c.Room.RemoveVolume(c.Context(), c.object) }),
		{pattern: "PUT /api/v1/volumes/{name}/image", text: "Make a volume, or its next version, of the bytes of a disk. Their SHA-256 is in the header or trailer " + SumHeader + ".",
			role: access.Operator, what: "import image", do: importVolume, out: reflect.TypeFor[room.Version](), image: true, query: []string{"size", "note"}},
		{pattern: "GET /api/v1/volumes/{name}/image", text: "The bytes of the disk of a version, with their SHA-256 in the trailer " + SumHeader + ".",
			role: access.Operator, what: "export image", do: exportVolume, query: []string{"version"}},
		within(their, asks("GET /api/v1/groups", "All groups, with their versions.", access.Viewer, func(c *call) ([]room.Group, error) {
			list, err := c.Room.Groups()
			return seen(c, list, err, func(g room.Group) string { return g.Name })
		})),
		within(theGroup, asks("GET /api/v1/groups/{name}", "A group.", access.Viewer, func(c *call) (room.Group, error) { return c.Room.Group(c.object) })),
		acts("POST /api/v1/groups", "Make a group that begins with the newest version of a volume.", access.Operator, "create group", createGroup),
		removes("DELETE /api/v1/groups/{name}", "Delete a group without devices.", access.Operator, "delete group", func(c *call) error { return c.Room.RemoveGroup(c.Context(), c.object) }),
		asks("GET /api/v1/volumes/{name}/versions/{number}/files", "Which files differ from the version before.", access.Viewer, volumeFiles),
		within(theGroup, asks("GET /api/v1/groups/{name}/versions/{number}/files", "Which files differ from the version before.", access.Viewer, groupFiles)),
		within(theGroup, removes("DELETE /api/v1/groups/{name}/versions/{number}", "Delete a version that no device gets.", access.Operator, "delete version", deleteVersion)),
		within(theGroup, acts("POST /api/v1/groups/{name}/update", "Make what a device has written the newest version.", access.Operator, "update group", func(c *call, u Update) (room.Version, error) {
			from, err := c.Room.Device(u.From)
			if err == nil {
				err = c.works(from.Group)
			}
			if err != nil {
				return room.Version{}, err
			}
			of := room.Update{Device: u.From, Author: c.who.Name, Note: u.Note}
			if u.Canary != nil {
				of.Try = &room.Canary{Share: u.Canary.Share, Until: u.Canary.Until, Within: time.Duration(u.Canary.Within * float64(time.Second))}
			}
			return c.Room.UpdateGroup(c.Context(), c.object, of)
		})),
		within(theGroup, acts("POST /api/v1/groups/{name}/release", "Give all devices the version that canaries have tried.", access.Operator, "release group", func(c *call, _ none) (room.Version, error) {
			return c.Room.Canaries().Release(c.Context(), c.object)
		})),
		acts("POST /api/v1/groups/{name}/promote", "Give the version of a group to its volume.", access.Operator, "promote group", func(c *call, u Update) (room.Version, error) {
			return c.Room.Promote(c.Context(), c.object, c.who.Name, u.Note)
		}),
		within(theGroup, acts("PUT /api/v1/groups/{name}/menu", "Give a menu to its devices, or take it away.", access.Operator, "give menu", func(c *call, to GroupMenu) (none, error) {
			return none{}, c.Room.Menus().Give(c.object, to.Menu)
		})),
		asks("GET /api/v1/menus", "All menus.", access.Viewer, func(c *call) ([]room.Menu, error) { return c.Room.Menus().List() }),
		acts("PUT /api/v1/menus/{name}", "Make a menu, or replace it.", access.Operator, "put menu", func(c *call, m room.Menu) (none, error) {
			m.Name = c.object
			return none{}, c.Room.Menus().Put(m)
		}),
		removes("DELETE /api/v1/menus/{name}", "Delete a menu that no group has.", access.Operator, "delete menu", func(c *call) error { return c.Room.Menus().Remove(c.object) }),
		within(theGroup, acts("POST /api/v1/groups/{name}/rollback", "Let devices get an older version.", access.Operator, "roll back group", func(c *call, to Rollback) (none, error) {
			return none{}, c.Room.Rollback(c.Context(), c.object, to.Version)
		})),
	}
}

func disks() []route {
	return []route{
		asks("GET /api/v1/disks", "All further disks.", access.Viewer, func(c *call) ([]room.Disk, error) { return c.Room.Disks().List() }),
		acts("POST /api/v1/disks", "Make an empty further disk.", access.Operator, "create disk", func(c *call, v NewVolume) (none, error) {
			c.object = v.Name
			return none{}, c.Room.Disks().Create(c.Context(), v.Name, v.Size)
		}),
		acts("PUT /api/v1/disks/{name}/device", "Give it to a device from its next boot on, or take it away.", access.Operator, "give disk", func(c *call, to Owner) (none, error) {
			return none{}, c.Room.Disks().Give(c.Context(), c.object, to.Device)
		}),
		removes("DELETE /api/v1/disks/{name}", "Delete a further disk that no device has, with all that is on it.", access.Operator, "delete disk", func(c *call) error { return c.Room.Disks().Remove(c.Context(), c.object) }),
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
		within(their, asks("GET /api/v1/devices", "All devices.", access.Viewer, listDevices)),
		within(theDevice, asks("GET /api/v1/devices/{name}", "A device, for an admin with its secret.", access.Viewer, showDevice)),
		within(theDevice, asks("GET /api/v1/devices/{name}/boots", "Its last boots, the newest first.", access.Viewer, showBoots)),
		within(their, acts("POST /api/v1/devices", "Make a machine known.", access.Operator, "add device", addDevice)),
		within(theDevice, acts("PATCH /api/v1/devices/{name}", "Move it to another group, pin it, or change its mode or limits.", access.Operator, "change device", changeDevice)),
		within(theDevice, acts("POST /api/v1/devices/{name}/wake", "Switch it on over the network.", access.Operator, "wake device", wakeDevice)),
		within(theDevice, removes("DELETE /api/v1/devices/{name}", "Delete a device that is off, with what it has written.", access.Operator, "delete device", func(c *call) error { return c.Room.RemoveDevice(c.Context(), c.object) })),
		asks("GET /api/v1/alerts", "What somebody should look at.", access.Viewer, showAlerts),
		within(their, asks("GET /api/v1/plan", "What each device gets when it boots next, and loses.", access.Viewer, func(c *call) ([]room.Boot, error) {
			list, err := c.Room.Plan(c.Context())
			return seen(c, list, err, func(b room.Boot) string { return b.Group })
		})),
		asks("GET /api/v1/leases", "The addresses that machines have.", access.Viewer, func(c *call) ([]dhcp.Lease, error) { return c.Leases() }),
		asks("GET /api/v1/unknown", "Machines that wait to be added.", access.Viewer, func(c *call) ([]room.Unknown, error) { return c.Room.Unknowns() }),
	}
}

func people() []route {
	trail := asks("GET /api/v1/trail", "What was done, by whom, the newest first.", access.Admin, showTrail)
	trail.query = []string{"before"}
	return []route{
		asks("GET /api/v1/tokens", "Who is let in.", access.Admin, func(c *call) ([]access.Token, error) { return c.Access.Tokens() }),
		acts("POST /api/v1/tokens", "Make a token. It is shown once.", access.Admin, "create token", createToken),
		removes("DELETE /api/v1/tokens/{name}", "Take a token away, at once.", access.Admin, "delete token", func(c *call) error { return c.Access.DeleteToken(c.object) }),
		trail,
		acts("POST /api/v1/login", "Begin a session of a user. Its secret lets in as a token does, for 12 hours.", "", "log in", login),
		within(their, acts("POST /api/v1/logout", "End the session that asks.", access.Viewer, "log out", func(c *call, _ none) (none, error) { return none{}, c.Access.Logout(c.secret) })),
		asks("GET /api/v1/users", "All users.", access.Admin, func(c *call) ([]access.Identity, error) { return c.Access.Users() }),
		acts("POST /api/v1/users", "Make a user.", access.Admin, "create user", createUser),
		within(their, acts("PUT /api/v1/users/{name}/password", "Give a user another password: an admin any, a user the own one. The sessions of the user end.", access.Viewer, "change password", setPassword)),
		removes("DELETE /api/v1/users/{name}", "Take a user away, with all sessions.", access.Admin, "delete user", func(c *call) error { return c.Access.DeleteUser(c.object) }),
	}
}

// Login is the name and password of a user.
type Login struct {
	Name     string `json:"name"`
	Password string `json:"password"`
}

// Session is one that has begun.
type Session struct {
	Secret string `json:"session"`
}

func login(c *call, l Login) (Session, error) {
	c.who.Name = l.Name
	secret, err := c.Access.Login(l.Name, l.Password)
	return Session{secret}, err
}

// NewUser makes a user.
type NewUser struct {
	Name     string      `json:"name"`
	Role     access.Role `json:"role"`
	Groups   []string    `json:"groups,omitempty"` // to which the user is limited; none: all
	Password string      `json:"password"`
}

func createUser(c *call, u NewUser) (none, error) {
	c.object = u.Name
	return none{}, c.Access.CreateUser(access.Identity{Name: u.Name, Role: u.Role, Scopes: u.Groups}, u.Password)
}

// Password is a new one.
type Password struct {
	Password string `json:"password"`
}

// setPassword lets users change their own. A token that has the name of a user is none of that user's.
func setPassword(c *call, p Password) (none, error) {
	if own := c.who.Name == c.object && access.IsSession(c.secret); !own {
		if err := c.who.May(access.Admin, ""); err != nil {
			return none{}, err
		}
	}
	return none{}, c.Access.SetPassword(c.object, p.Password)
}

func createVolume(c *call, v NewVolume) (none, error) {
	c.object = v.Name
	return none{}, c.Room.CreateVolume(c.Context(), v.Name, v.Size, c.who.Name)
}

func createGroup(c *call, g NewGroup) (none, error) {
	c.object = g.Name
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
	var err error
	if r.Devices, err = c.Room.Devices(); err != nil {
		return nil, err
	}
	if r.Groups, err = c.Room.Groups(); err != nil {
		return nil, err
	}
	if r.Unknown, err = c.Room.Unknowns(); err != nil {
		return nil, err
	}
	if r.Space, err = c.Pool.Space(c.Context()); err != nil {
		return nil, err
	}
	return alerts.Look(&r), nil
}

func wakeDevice(c *call, _ none) (none, error) {
	d, err := c.Room.Device(c.object)
	if err != nil {
		return none{}, err
	}
	if c.Wake == nil {
		return none{}, fmt.Errorf("device %s: %w: start ducks serve with --dhcp: it has to know the network of the room", d.Name, room.ErrRefused)
	}
	return none{}, c.Wake(d.MAC)
}

func addDevice(c *call, d NewDevice) (none, error) {
	c.object = d.Name
	if err := c.works(d.Group); err != nil {
		return none{}, err
	}
	return none{}, c.Room.AddDevice(c.Context(), room.Device{Name: d.Name, MAC: d.MAC, Group: d.Group, Mode: d.Mode, Until: d.Until, Limit: d.Limit, Space: d.Space})
}

func changeDevice(c *call, to DeviceChange) (none, error) {
	if to.Mode == nil && !to.Until.IsZero() {
		return none{}, fmt.Errorf("%w: a date goes with a mode", errRequest)
	}
	if to.Group != nil {
		if err := c.works(*to.Group); err != nil {
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
	})
}

// MadeToken is a token as it is shown once.
type MadeToken struct {
	Name  string `json:"name"`
	Token string `json:"token"`
}

func createToken(c *call, t NewToken) (MadeToken, error) {
	c.object = t.Name
	secret, err := c.Access.CreateToken(access.Token{Identity: access.Identity{Name: t.Name, Role: t.Role, Scopes: t.Groups}, Expires: t.Expires})
	return MadeToken{t.Name, secret}, err
}

// mostShown is how many acts are shown at once.
const mostShown = 200

func showTrail(c *call) ([]access.Act, error) {
	before, text := uint64(0), c.FormValue("before")
	if text != "" {
		var err error
		if before, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, fmt.Errorf("%w: before=%q is no number", errRequest, text)
		}
	}
	return c.Access.Acts(before, mostShown)
}

package api

import (
	"fmt"
	"strconv"
	"time"

	"dalmatiner/internal/access"
	"dalmatiner/internal/ducks/boot"
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
	}
	// DeviceChange is what changes of a device; what is left out stays.
	DeviceChange struct {
		Group *string    `json:"group,omitempty"`
		Mode  *room.Mode `json:"mode,omitempty"`
		Until time.Time  `json:"until,omitzero"` // goes with mode until
		Pin   *int       `json:"pin,omitempty"`
	}
	// NewToken makes a token.
	NewToken struct {
		Name    string      `json:"name"`
		Role    access.Role `json:"role"`
		Expires time.Time   `json:"expires,omitzero"`
	}
)

// Device is one as it is shown. Secret is empty unless an admin asks for this one.
type Device struct {
	Name      string    `json:"name"`
	MAC       string    `json:"mac"`
	Group     string    `json:"group"`
	Mode      room.Mode `json:"mode"`
	Until     time.Time `json:"until,omitzero"`
	Pin       int       `json:"pin,omitempty"`
	Version   int       `json:"version,omitempty"` // that its image began with
	IQN       string    `json:"iqn"`
	Initiator string    `json:"initiator"`
	User      string    `json:"chap_user"`
	Secret    string    `json:"chap_secret,omitempty"`
}

func (c *call) shown(d room.Device) Device {
	return Device{Name: d.Name, MAC: d.MAC, Group: d.Group, Mode: d.Mode, Until: d.Until, Pin: d.Pin, Version: d.Version,
		IQN: c.Room.IQN(d.Name), Initiator: c.Room.Initiator(d.Name), User: d.Name}
}

func routes() []route {
	return []route{
		{"GET /api/v1/pool", access.Viewer, "", func(c *call) (any, error) { return c.Pool.Space(c.Context()) }, false},
		{"GET /api/v1/volumes", access.Viewer, "", func(c *call) (any, error) { return c.Room.Volumes() }, false},
		{"POST /api/v1/volumes", access.Operator, "create volume", createVolume, false},
		{"DELETE /api/v1/volumes/{name}", access.Operator, "delete volume", func(c *call) (any, error) { return nil, c.Room.RemoveVolume(c.Context(), c.object) }, false},
		{"PUT /api/v1/volumes/{name}/image", access.Operator, "import image", importVolume, true},
		{"GET /api/v1/volumes/{name}/image", access.Operator, "export image", exportVolume, false},
		{"GET /api/v1/orphans", access.Viewer, "", func(c *call) (any, error) { return c.Room.Orphans(c.Context()) }, false},
		{"DELETE /api/v1/orphans/{name}", access.Operator, "delete orphan", func(c *call) (any, error) { return nil, c.Room.RemoveOrphan(c.Context(), c.object) }, false},
		{"GET /api/v1/groups", access.Viewer, "", func(c *call) (any, error) { return c.Room.Groups() }, false},
		{"GET /api/v1/groups/{name}", access.Viewer, "", func(c *call) (any, error) { return c.Room.Group(c.object) }, false},
		{"POST /api/v1/groups", access.Operator, "create group", createGroup, false},
		{"DELETE /api/v1/groups/{name}", access.Operator, "delete group", func(c *call) (any, error) { return nil, c.Room.RemoveGroup(c.Context(), c.object) }, false},
		{"DELETE /api/v1/groups/{name}/versions/{number}", access.Operator, "delete version", deleteVersion, false},
		{"POST /api/v1/groups/{name}/update", access.Operator, "update group", updateGroup, false},
		{"POST /api/v1/groups/{name}/promote", access.Operator, "promote group", promoteGroup, false},
		{"POST /api/v1/groups/{name}/rollback", access.Operator, "roll back group", rollbackGroup, false},
		{"GET /api/v1/devices", access.Viewer, "", listDevices, false},
		{"GET /api/v1/devices/{name}", access.Viewer, "", showDevice, false},
		{"GET /api/v1/devices/{name}/boots", access.Viewer, "", showBoots, false},
		{"POST /api/v1/devices", access.Operator, "add device", addDevice, false},
		{"POST /api/v1/devices/{name}/wake", access.Operator, "wake device", wakeDevice, false},
		{"DELETE /api/v1/devices/{name}", access.Operator, "delete device", func(c *call) (any, error) { return nil, c.Room.RemoveDevice(c.Context(), c.object) }, false},
		{"PATCH /api/v1/devices/{name}", access.Operator, "change device", changeDevice, false},
		{"GET /api/v1/plan", access.Viewer, "", func(c *call) (any, error) { return c.Room.Plan(c.Context()) }, false},
		{"GET /api/v1/leases", access.Viewer, "", func(c *call) (any, error) { return c.Leases() }, false},
		{"GET /api/v1/unknown", access.Viewer, "", func(c *call) (any, error) { return c.Room.Unknowns() }, false},
		{"GET /api/v1/tokens", access.Admin, "", func(c *call) (any, error) { return c.Access.Tokens() }, false},
		{"POST /api/v1/tokens", access.Admin, "create token", createToken, false},
		{"DELETE /api/v1/tokens/{name}", access.Admin, "delete token", func(c *call) (any, error) { return nil, c.Access.DeleteToken(c.object) }, false},
		{"GET /api/v1/trail", access.Admin, "", showTrail, false},
	}
}

func createVolume(c *call) (any, error) {
	v, err := read[NewVolume](c)
	if err != nil {
		return nil, err
	}
	c.object = v.Name
	return nil, c.Room.CreateVolume(c.Context(), v.Name, v.Size, c.who.Name)
}

func createGroup(c *call) (any, error) {
	g, err := read[NewGroup](c)
	if err != nil {
		return nil, err
	}
	c.object = g.Name
	return nil, c.Room.CreateGroup(c.Context(), g.Name, g.Volume, c.who.Name)
}

func updateGroup(c *call) (any, error) {
	u, err := read[Update](c)
	if err != nil {
		return nil, err
	}
	return c.Room.UpdateGroup(c.Context(), c.object, u.From, c.who.Name, u.Note)
}

func promoteGroup(c *call) (any, error) {
	u, err := read[Update](c)
	if err != nil {
		return nil, err
	}
	return c.Room.Promote(c.Context(), c.object, c.who.Name, u.Note)
}

func rollbackGroup(c *call) (any, error) {
	to, err := read[Rollback](c)
	if err != nil {
		return nil, err
	}
	return nil, c.Room.Rollback(c.Context(), c.object, to.Version)
}

func deleteVersion(c *call) (any, error) {
	number, err := strconv.Atoi(c.PathValue("number"))
	if err != nil {
		return nil, fmt.Errorf("%w: version %q is no number", errRequest, c.PathValue("number"))
	}
	return nil, c.Room.RemoveVersion(c.Context(), c.object, number)
}

func listDevices(c *call) (any, error) {
	all, err := c.Room.Devices()
	list := make([]Device, 0, len(all))
	for _, d := range all {
		list = append(list, c.shown(d))
	}
	return list, err
}

func showDevice(c *call) (any, error) {
	d, err := c.Room.Device(c.object)
	if err != nil {
		return nil, err
	}
	shown := c.shown(d)
	if c.who.Role.Allows(access.Admin) {
		shown.Secret = d.Secret
	}
	return shown, nil
}

// Course is a boot of a device, the seconds of each stage since it began.
type Course struct {
	Begun  time.Time `json:"begun"`
	Stages []Reached `json:"stages"`
}

// Reached is a stage that a device has reached.
type Reached struct {
	Stage string  `json:"stage"`
	After float64 `json:"seconds"` // since the boot began
}

func showBoots(c *call) (any, error) {
	d, err := c.Room.Device(c.object)
	if err != nil {
		return nil, err
	}
	list := []Course{}
	for _, of := range c.Times.Of(d.MAC) {
		shown := Course{Begun: of.Begun()}
		for s, at := range of.At {
			if !at.IsZero() {
				shown.Stages = append(shown.Stages, Reached{boot.Stage(s).String(), at.Sub(shown.Begun).Seconds()})
			}
		}
		list = append(list, shown)
	}
	return list, nil
}

func wakeDevice(c *call) (any, error) {
	d, err := c.Room.Device(c.object)
	if err != nil {
		return nil, err
	}
	if c.Wake == nil {
		return nil, fmt.Errorf("device %s: %w: start ducks serve with --dhcp: it has to know the network of the room", d.Name, room.ErrRefused)
	}
	return nil, c.Wake(d.MAC)
}

func addDevice(c *call) (any, error) {
	d, err := read[NewDevice](c)
	if err != nil {
		return nil, err
	}
	c.object = d.Name
	return nil, c.Room.AddDevice(c.Context(), room.Device{Name: d.Name, MAC: d.MAC, Group: d.Group, Mode: d.Mode, Until: d.Until})
}

func changeDevice(c *call) (any, error) {
	to, err := read[DeviceChange](c)
	if err != nil {
		return nil, err
	}
	if to.Mode == nil && !to.Until.IsZero() {
		return nil, fmt.Errorf("%w: a date goes with a mode", errRequest)
	}
	return nil, c.Room.ChangeDevice(c.Context(), c.object, func(d *room.Device) {
		if to.Group != nil {
			d.Group = *to.Group
		}
		if to.Mode != nil {
			d.Mode, d.Until = *to.Mode, to.Until
		}
		if to.Pin != nil {
			d.Pin = *to.Pin
		}
	})
}

func createToken(c *call) (any, error) {
	t, err := read[NewToken](c)
	if err != nil {
		return nil, err
	}
	c.object = t.Name
	secret, err := c.Access.CreateToken(access.Token{Identity: access.Identity{Name: t.Name, Role: t.Role}, Expires: t.Expires})
	return map[string]string{"name": t.Name, "token": secret}, err
}

// mostShown is how many acts are shown at once.
const mostShown = 200

func showTrail(c *call) (any, error) {
	before, text := uint64(0), c.FormValue("before")
	if text != "" {
		var err error
		if before, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, fmt.Errorf("%w: before=%q is no number", errRequest, text)
		}
	}
	return c.Access.Acts(before, mostShown)
}

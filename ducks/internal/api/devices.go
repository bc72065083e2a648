package api

import (
	"time"

	"dalmatiner/access"
	"dalmatiner/ducks/internal/boot"
	"dalmatiner/ducks/internal/room"
	"dalmatiner/ducks/internal/target"
)

// Device is one as it is shown. Secret is empty unless an admin asks for this one.
type Device struct {
	Name      string    `json:"name"`
	MAC       string    `json:"mac"`
	Group     string    `json:"group"`
	Network   string    `json:"network"` // that of its group
	Mode      room.Mode `json:"mode"`
	Until     time.Time `json:"until,omitzero"`
	Pin       int       `json:"pin,omitempty"`
	Version   int       `json:"version,omitempty"` // that its image began with
	Afresh    bool      `json:"afresh,omitempty"`  // it begins anew when it boots next
	Limit     int64     `json:"limit,omitempty"`   // bits a second each way; 0: none
	Space     int64     `json:"space,omitempty"`   // bytes that its image may take; 0: no limit
	IQN       string    `json:"iqn"`
	Portal    string    `json:"portal"`
	Initiator string    `json:"initiator"`
	User      string    `json:"chap_user"`
	Secret    string    `json:"chap_secret,omitempty"`

	On         bool      `json:"on"`                // it had a session with its disk
	ReadBytes  int64     `json:"read_bytes"`        // in that session
	WriteBytes int64     `json:"write_bytes"`       // in that session
	SeenAt     time.Time `json:"seen_at"`           // when that was so
	Stage      string    `json:"stage,omitempty"`   // that its last boot has reached, since ducks runs
	StageAt    time.Time `json:"stage_at,omitzero"` // when
	// the boot loader that it was to load and that is not there
	Lacks string `json:"lacks,omitempty"`
}

// live is what was seen of each target, and when.
type live struct {
	of map[string]target.Traffic
	at time.Time
}

func (c *call) live() (live, error) {
	sessions, at, err := c.Sessions(c.Context(), time.Second)
	now := live{make(map[string]target.Traffic, len(sessions)), at}
	for _, s := range sessions {
		t := now.of[s.IQN]
		t.ReadBytes, t.WriteBytes = t.ReadBytes+s.ReadBytes, t.WriteBytes+s.WriteBytes
		now.of[s.IQN] = t
	}
	return now, err
}

func (c *call) shown(d room.Device, now live) Device {
	out := Device{Name: d.Name, MAC: d.MAC, Group: d.Group, Mode: d.Mode, Until: d.Until, Pin: d.Pin,
		Version: d.Version, Afresh: d.Afresh, Limit: d.Limit, Space: d.Space,
		IQN: c.Room.IQN(d.Name), Portal: c.Server.Portal, Initiator: c.Room.Initiator(d.Name),
		User: d.Name, SeenAt: now.at}
	t, on := now.of[out.IQN]
	out.On, out.ReadBytes, out.WriteBytes = on, t.ReadBytes, t.WriteBytes
	if boots := c.Times.Of(d.MAC); len(boots) > 0 {
		stage, at := boots[0].Last()
		out.Stage, out.StageAt, out.Lacks = stage.String(), at, boots[0].Lacks
	}
	return out
}

func listDevices(c *call) ([]Device, error) {
	all, err := c.Room.Devices()
	if all, err = seen(c, all, err, room.ADevice, func(d room.Device) string {
		return d.Name
	}); err != nil {
		return nil, err
	}
	live, err := c.live()
	list := make([]Device, 0, len(all))
	for _, d := range all {
		list = append(list, c.shown(d, live))
	}
	if err != nil {
		return nil, err
	}
	t, err := c.tree()
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Network = t.Place(room.ADevice, list[i].Name).Network
	}
	return list, nil
}

func showDevice(c *call) (Device, error) {
	d, err := c.Room.Device(c.object)
	if err != nil {
		return Device{}, err
	}
	live, err := c.live()
	if err != nil {
		return Device{}, err
	}
	t, err := c.tree()
	if err != nil {
		return Device{}, err
	}
	shown := c.shown(d, live)
	shown.Network = t.Place(room.ADevice, d.Name).Network
	if c.who.Role.Allows(access.Admin) {
		shown.Secret = d.Secret
	}
	return shown, nil
}

// attachDevice gets the disk of a device ready, and shows where it is. What follows is seen as of a
// boot.
func attachDevice(c *call, _ none) (Device, error) {
	if _, _, err := (c.Room).Attach(c.Context(), c.object); err != nil {
		return Device{}, err
	}
	shown, err := showDevice(c)
	if err == nil {
		c.Times.Note(shown.MAC, boot.Scripted)
	}
	return shown, err
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

func showBoots(c *call) ([]Course, error) {
	d, err := c.Room.Device(c.object)
	if err != nil {
		return nil, err
	}
	list := []Course{}
	for _, of := range c.Times.Of(d.MAC) {
		shown := Course{Begun: of.Begun()}
		for s, at := range of.At {
			if !at.IsZero() {
				shown.Stages = append(shown.Stages,
					Reached{boot.Stage(s).String(), at.Sub(shown.Begun).Seconds()})
			}
		}
		list = append(list, shown)
	}
	return list, nil
}

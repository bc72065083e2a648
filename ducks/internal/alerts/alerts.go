// Package alerts lists the conditions of a room that need attention: devices that hang or are slow
// while they boot, withdrawn versions, machines waiting to be added, and a pool filling up.
package alerts

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dalmatiner/ducks/internal/boot"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/room"
)

// Alert is one thing.
type Alert struct {
	Object string    `json:"object"` // as: device pc1
	Text   string    `json:"text"`
	Since  time.Time `json:"since,omitzero"`
	Remedy string    `json:"remedy"`
}

// Room is what is looked at.
type Room struct {
	Now     time.Time
	Devices []room.Device
	Groups  []room.Group
	Unknown []room.Unknown
	Boots   func(mac string) []boot.Course // the newest first: boot.Times.Of
	Space   pool.Space
}

// next is what comes behind a stage, how long that may take, and where to look if it does not.
var next = [boot.Stages]struct {
	stage  boot.Stage
	within time.Duration
	remedy string
}{
	boot.Addressed: {boot.Fetched, time.Minute,
		"it did not load iPXE: look at the cable, at a firewall for UDP port 69, and at Secure Boot, " +
			"which refuses iPXE"},
	boot.Fetched: {boot.Loaded, time.Minute,
		"iPXE did not begin: Secure Boot refuses it, or its card is not known to it"},
	boot.Loaded: {boot.Scripted, time.Minute,
		"it did not ask for its script: look at a firewall for the port of devices"},
	boot.Scripted: {boot.LoggedIn, time.Minute,
		"it did not log in to its disk: look at a firewall for port 3260, and at what it shows"},
	boot.LoggedIn: {boot.Read, time.Minute, "it did not read from its disk: look at what it shows"},
	boot.Read: {boot.Up, 10 * time.Minute,
		"its system did not say that it is up: look at what it shows"},
}

// The bounds of what nobody has to look at.
const (
	recent    = 24 * time.Hour // boots that began before are over
	asked     = 10 * time.Minute
	slowTimes = 3 // as long as the fastest of its last boots, and more than slowLeast
	slowLeast = time.Minute
	freeLeast = 10 // 1 of so many of the pool
)

// Look returns what somebody should look at, the pool first, then by name.
func Look(r *Room) []Alert {
	list := []Alert{}
	if r.Space.Free < max(r.Space.Total/freeLeast, 2*r.Space.Reserve) {
		list = append(list,
			Alert{Object: "pool", Text: fmt.Sprintf("%d of %d MiB are free", r.Space.Free>>20,
				r.Space.Total>>20),
				Remedy: fmt.Sprintf("remove versions, groups or devices, or add disks: below %d MiB only "+
					"running devices write", r.Space.Reserve>>20)})
	}
	devices := slices.SortedFunc(slices.Values(r.Devices), func(a, b room.Device) int {
		return cmp.Compare(a.Name, b.Name)
	})
	for _, d := range devices {
		if a, is := look(r.Now, r.Boots(d.MAC)); is {
			a.Object = "device " + d.Name
			list = append(list, a)
		}
	}
	for _, g := range r.Groups {
		if w := g.Withdrawn; w != nil {
			list = append(list,
				Alert{Object: "group " + g.Name, Text: fmt.Sprintf("version %d was taken back: %s", w.Version,
					w.Why), Since: w.At,
					Remedy: fmt.Sprintf("update the group again; ducks group rollback %s --to %d lets all have "+
						"it all the same", g.Name, w.Version)})
		}
	}
	for _, u := range r.Unknown {
		if r.Now.Sub(u.Last) < asked {
			list = append(list, Alert{Object: "machine " + u.MAC, Text: "it waits to be added, at " +
				u.Address.String(), Since: u.First,
				Remedy: fmt.Sprintf("ducks device add %s --name NAME --group GROUP", u.MAC)})
		}
	}
	return list
}

// look looks at the boots of a device.
func look(now time.Time, boots []boot.Course) (Alert, bool) {
	if len(boots) == 0 || now.Sub(boots[0].Begun()) > recent {
		return Alert{}, false
	}
	last, at := boots[0].Last()
	if last < boot.Up {
		of := next[last]
		says := of.stage != boot.Up || slices.ContainsFunc(boots, func(c boot.Course) bool {
			return !c.At[boot.Up].IsZero()
		})
		if now.Sub(at) < of.within || !says { // a system that never says so cannot be missed
			return Alert{}, false
		}
		return Alert{Text: fmt.Sprintf("its boot stands at %s", last), Since: at, Remedy: of.remedy}, true
	}
	took, fastest := at.Sub(boots[0].Begun()), time.Duration(0)
	for _, c := range boots[1:] {
		if up := c.At[boot.Up]; !up.IsZero() && (fastest == 0 || up.Sub(c.Begun()) < fastest) {
			fastest = up.Sub(c.Begun())
		}
	}
	if fastest == 0 || took < slowLeast || took < slowTimes*fastest {
		return Alert{}, false
	}
	return Alert{Text: fmt.Sprintf("it was up after %.0f s, and once after %.0f s", took.Seconds(),
		fastest.Seconds()), Since: at,
		Remedy: "ducks device boots shows which stage was slow"}, true
}

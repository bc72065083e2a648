package room

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"dalmatiner/access/state"
)

// Canary is a version that some devices of a group get before all others do. Where one of these
// does not come far enough in time, nobody gets the version any more.
type Canary struct {
	Version int `json:"version"`
	Share   int `json:"share"` // percent of the devices
	// who draws less than this has it: the share, or what it takes for one device
	Draw   int           `json:"draw"`
	Until  string        `json:"until"`  // the stage that each has to reach: Read or Up
	Within time.Duration `json:"within"` // of the boot, in ns
	// devices that boot it and have not reached the stage yet
	Begun map[string]time.Time `json:"begun"`
}

// Withdrawn is a version that was tried and taken back.
type Withdrawn struct {
	Version int       `json:"version"`
	Why     string    `json:"why"`
	At      time.Time `json:"at"`
}

// The stages that a canary may have to reach: its system has read from its disk, or says that it is
// up.
const (
	UntilRead = "read"
	UntilUp   = "up"
)

// canaryWithin is how long a boot may take, if nobody says so.
const canaryWithin = 10 * time.Minute

// mostTested bounds the devices that are noted for a version.
const mostTested = 50

// check completes what an operator says of a canary.
func (c *Canary) check() error {
	if c.Until == "" {
		c.Until = UntilUp
	}
	if c.Within == 0 {
		c.Within = canaryWithin
	}
	switch {
	case c.Share < 1 || c.Share > 99:
		return fmt.Errorf("%w: a canary of %d %% of the devices: want 1 to 99", ErrRefused, c.Share)
	case c.Until != UntilRead && c.Until != UntilUp:
		return fmt.Errorf("%w: a canary until %q: want %s or %s", ErrRefused, c.Until, UntilRead, UntilUp)
	case c.Within < 0:
		return fmt.Errorf("%w: a canary that has to boot within %s", ErrRefused, c.Within)
	}
	return nil
}

// draws returns what a device draws, 0 to 99: the same while the version is tried, and something
// else for the next one.
func (c *Canary) draws(group, device string) int {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%s\x00%d\x00%s", group, c.Version, device) // it never fails
	return int(h.Sum32() % 100)
}

// gets returns the number of the version that a device of a group gets, and why.
func (g *Group) gets(device string) (number int, why string) {
	switch c := g.Canary; {
	case c == nil:
		return g.Use, "the version of its group"
	case c.draws(g.Name, device) < c.Draw:
		return c.Version, fmt.Sprintf("it is a canary of version %d", c.Version)
	default:
		return g.Use, fmt.Sprintf("the version of its group, while canaries try version %d", c.Version)
	}
}

// tries lets canaries boot the newest version. All others go on with the version that they get now.
// One device at least of those that take new versions is a canary.
func (g *Group) tries(c Canary, before int, all []Device, now time.Time) {
	c.Version, c.Begun, c.Draw = g.Versions[len(g.Versions)-1].Number, make(map[string]time.Time),
		c.Share
	least := -1
	for i := range all {
		d := &all[i]
		if d.Group != g.Name || d.Pin > 0 || d.keeps(now) {
			continue
		}
		if n := c.draws(g.Name, d.Name); least < 0 || n < least {
			least = n
		}
	}
	c.Draw = max(c.Draw, least+1)
	g.Canary, g.Use = &c, before
}

// settles ends what is tried, and what was: an operator has said what devices get.
func (g *Group) settles() { g.Canary, g.Withdrawn = nil, nil }

// Canaries are the versions of groups that are tried. Its methods may be called concurrently.
type Canaries struct{ *Room }

// Canaries returns those of the room.
func (r *Room) Canaries() Canaries { return Canaries{r} }

// Release gives all devices of a group the version that canaries have tried.
func (r Canaries) Release(_ context.Context, name string) (Version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var g Group
	if err := r.get(groups, name, &g); err != nil {
		return Version{}, err
	}
	if g.Canary == nil {
		return Version{}, fmt.Errorf("group %s: %w: no version is tried by canaries", name, ErrRefused)
	}
	v, err := version(g.Versions, g.Canary.Version)
	if err != nil {
		return Version{}, err
	}
	g.Use = 0 // what canaries try is the newest
	g.settles()
	return v, r.put(groups, name, g)
}

// begins notes that a canary boots.
func (r Canaries) begins(g *Group, d *Device, version int) error {
	if g.Canary == nil || version != g.Canary.Version || d.Pin > 0 {
		return nil
	}
	if _, waits := g.Canary.Begun[d.Name]; waits {
		return nil // it boots again and again: its time goes on
	}
	g.Canary.Begun[d.Name] = r.o.Now()
	return r.put(groups, g.Name, *g)
}

// Reached notes that a device has reached a stage, Read or Up: its version was tried by it.
func (r Canaries) Reached(mac, stage string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, err := r.ByMAC(mac)
	if errors.Is(err, state.ErrUnknown) {
		return nil
	}
	var g Group
	if err == nil {
		err = r.get(groups, d.Group, &g)
	}
	if err != nil || d.ImageOf != g.Name {
		return err
	}
	changed := false
	if c := g.Canary; c != nil && c.Version == d.Version && (stage == c.Until || stage == UntilUp) {
		if _, waits := c.Begun[d.Name]; waits {
			delete(c.Begun, d.Name)
			changed = true
		}
	}
	i := slices.IndexFunc(g.Versions, func(v Version) bool { return v.Number == d.Version })
	if i >= 0 && (stage == UntilUp || g.Canary != nil && g.Canary.Until == stage) &&
		!slices.Contains(g.Versions[i].Tested, d.Name) && len(g.Versions[i].Tested) < mostTested {
		g.Versions[i].Tested = append(g.Versions[i].Tested, d.Name)
		changed = true
	}
	if !changed {
		return nil
	}
	return r.put(groups, g.Name, g)
}

// Trying returns the MAC addresses of canaries that boot.
func (r Canaries) Trying() (macs []string, err error) {
	all, err := r.Groups()
	for _, g := range all {
		if g.Canary == nil {
			continue
		}
		for name := range g.Canary.Begun {
			if d, err := r.Device(name); err == nil { // else it was removed
				macs = append(macs, d.MAC)
			}
		}
	}
	return macs, err
}

// Withdraw takes versions back whose canaries did not come far enough in time. Those that have
// booted them get the version of the others when they boot next.
func (r Canaries) Withdraw() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, err := r.Groups()
	for i := range all {
		g := &all[i]
		if g.Canary == nil {
			continue
		}
		late := r.late(g)
		if len(late) == 0 {
			continue
		}
		w := &Withdrawn{Version: g.Canary.Version, At: r.o.Now(),
			Why: fmt.Sprintf("%s did not reach %s within %s", strings.Join(late, ", "), g.Canary.Until,
				g.Canary.Within)}
		g.settles()
		g.Withdrawn = w
		r.o.Logger.Warn("a version is taken back", "group", g.Name, "version", w.Version, "why", w.Why)
		err = errors.Join(err, r.put(groups, g.Name, *g))
	}
	return err
}

// late returns the canaries of a group that did not come far enough in time, by name. Those that
// have left the group do not count.
func (r Canaries) late(g *Group) (names []string) {
	for name, begun := range g.Canary.Begun {
		d, err := r.Device(name)
		if err == nil && d.Group == g.Name && r.o.Now().Sub(begun) > g.Canary.Within {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

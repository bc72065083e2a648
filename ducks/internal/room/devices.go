package room

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/target"
)

// secretBytes is the length of a secret of CHAP: the longest that all initiators take.
const secretBytes = 16

// LeastLimit is the lowest limit of a device, in bits a second: below it no system boots.
const LeastLimit = 1_000_000

// LeastSpace is the lowest limit of what an image takes, in bytes: with less no system writes its
// logs.
const LeastSpace = 16 << 20

// AddDevice makes a device known. It gets its image when it boots.
func (r *Room) AddDevice(_ context.Context, d Device) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fresh(devices, d.Name); err != nil {
		return err
	}
	mac, err := parseMAC(d.MAC)
	if err != nil {
		return fmt.Errorf("device %s: %w", d.Name, err)
	}
	if err := r.setUp(&d); err != nil {
		return err
	}
	d.MAC = mac
	switch o, err := r.ByMAC(mac); {
	case err == nil:
		return fmt.Errorf("device %s: %s is that of device %s: %w", d.Name, d.MAC, o.Name, ErrExists)
	case !errors.Is(err, state.ErrUnknown):
		return err
	}
	d.Secret = newSecret() // of its first image
	d.Image, d.ImageOf, d.Version, d.Afresh = "", "", 0, false
	return r.Networks().change(func(tx *state.Tx, t *Tree) (err error) {
		if err := t.takes(t.networks[groups][d.Group],
			Counts{Devices: 1, Space: t.promised(&d)}); err != nil {
			return fmt.Errorf("device %s: %w", d.Name, err)
		}
		if d.Number, err = tx.Next(devices); err != nil {
			return err
		}
		return errors.Join(tx.Put(devices, d.Name, d), tx.Delete(unknown, mac))
	})
}

func newSecret() string { return rand.Text()[:secretBytes] }

// setUp checks what may change of a device.
func (r *Room) setUp(d *Device) error {
	var g Group
	if err := r.get(groups, d.Group, &g); err != nil {
		return fmt.Errorf("device %s: %w", d.Name, err)
	}
	if _, err := version(g.Versions, d.Pin); err != nil {
		return fmt.Errorf("device %s: group %s: %w", d.Name, d.Group, err)
	}
	switch {
	case d.Limit != 0 && d.Limit < LeastLimit:
		return fmt.Errorf("device %s: %w: a limit of %d bits a second: at least %d, or 0 for none",
			d.Name, ErrRefused, d.Limit, LeastLimit)
	case d.Space != 0 && d.Space < LeastSpace:
		return fmt.Errorf("device %s: %w: a limit of %d bytes: at least %d, or 0 for none", d.Name,
			ErrRefused, d.Space, LeastSpace)
	case d.Space != 0 && !r.o.Pool.Limits():
		return fmt.Errorf("device %s: %w: a limit of space: %w, a pool on btrfs or ZFS can", d.Name,
			ErrRefused, pool.ErrUnsupported)
	case d.Mode != Volatile && d.Mode != Persistent && d.Mode != Until:
		return fmt.Errorf("device %s: %w: mode %q: want %s, %s or %s", d.Name, ErrRefused, d.Mode,
			Volatile, Persistent, Until)
	case (d.Mode == Until) != !d.Until.IsZero():
		return fmt.Errorf("device %s: %w: a date goes with mode %s, and with no other", d.Name,
			ErrRefused, Until)
	}
	return nil
}

// ChangeDevice moves a device to another group, pins it to a version, or gives it another mode,
// which it sees when it boots next, or other limits, which hold at once.
func (r *Room) ChangeDevice(ctx context.Context, name string, change func(d *Device)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var d Device
	if err := r.get(devices, name, &d); err != nil {
		return err
	}
	before, next := d, d
	change(&next)
	d.Group, d.Mode, d.Until, d.Pin, d.Limit, d.Space, d.Afresh = next.Group, next.Mode, next.Until,
		next.Pin, next.Limit, next.Space, next.Afresh
	if err := r.setUp(&d); err != nil {
		return err
	}
	if err := r.Networks().stays(&before, &d); err != nil {
		return fmt.Errorf("device %s: %w", name, err)
	}
	if d.Space != before.Space && d.Image != "" {
		if err := r.o.Pool.Limit(ctx, d.Image, d.Space); err != nil {
			return fmt.Errorf("device %s: %w", name, err)
		}
	}
	return r.put(devices, name, d)
}

// stays refuses a change that takes a device to another network, or that gives its network more
// than it may have.
func (r Networks) stays(before, after *Device) error {
	t, err := r.Tree()
	if err != nil {
		return err
	}
	from, to := t.networks[groups][before.Group], t.networks[groups][after.Group]
	if from != to {
		return fmt.Errorf("%w: it is of network %s, and group %s of %s: delete it there, and add it here",
			ErrRefused, from, after.Group, to)
	}
	return t.takes(to, Counts{Space: t.promised(after) - t.promised(before)})
}

// Boot is what a device gets when it boots next.
type Boot struct {
	Device  string `json:"device"`
	Group   string `json:"group"`
	Version int    `json:"version"`
	// it gets a new clone of the version; else it goes on with its image
	Fresh bool   `json:"fresh"`
	Why   string `json:"why"`         // in a few words
	Loses int64  `json:"loses_bytes"` // bytes that it has written, and that go
}

// keeps reports whether a device keeps what it writes when it boots.
func (d *Device) keeps(now time.Time) bool {
	if d.Afresh {
		return false
	}
	return d.Mode == Persistent || d.Mode == Until && now.Before(d.Until)
}

// plan says what a device gets at a time.
func plan(d *Device, g *Group, now time.Time) (Boot, Version, error) {
	number, why := g.gets(d.Name)
	if d.Pin > 0 {
		number, why = d.Pin, "it is pinned"
	}
	v, err := version(g.Versions, number)
	if err != nil {
		return Boot{}, v, fmt.Errorf("device %s: group %s: %w", d.Name, g.Name, err)
	}
	b := Boot{Device: d.Name, Group: g.Name, Version: v.Number, Fresh: true, Why: why}
	keeps := d.keeps(now)
	switch {
	case d.Image == "":
		b.Why = "it boots first: " + why
	case keeps && d.ImageOf == g.Name:
		b.Version, b.Fresh, b.Why = d.Version, false, "it keeps what it wrote"
		if d.Version != v.Number {
			b.Why += fmt.Sprintf(", and misses version %d", v.Number)
		}
	case keeps:
		b.Why = "it changes its group"
	case d.Afresh:
		b.Why = "it begins anew: " + why
	}
	return b, v, nil
}

// Plan says what each device gets when it boots next.
func (r *Room) Plan(ctx context.Context) (boots []Boot, err error) {
	boots = []Boot{}
	all, err := r.Devices()
	for i := range all {
		g, err := r.Group(all[i].Group)
		if err != nil {
			return nil, err
		}
		b, _, err := plan(&all[i], &g, r.o.Now())
		if err != nil {
			return nil, err
		}
		if b.Fresh && all[i].Image != "" {
			u, err := r.o.Pool.Usage(ctx, all[i].Image)
			if err != nil {
				return nil, err
			}
			b.Loses = u.Own
		}
		boots = append(boots, b)
	}
	return boots, err
}

// IQN returns the iSCSI name of the target of a device.
func (r *Room) IQN(device string) string { return r.o.Base + ":" + device }

// Initiator returns the iSCSI name with which a device logs in.
func (r *Room) Initiator(device string) string { return r.o.Base + ".initiator:" + device }

// Boot gets the disk of a device ready: a new clone, or the image that it has. Sessions that it has
// left are closed, since a device that boots has ended.
func (r *Room) Boot(ctx context.Context, name string) (Boot, target.Target, error) {
	return r.ready(ctx, name, true)
}

// ready gets the disk of a device ready. A session on it is closed, or the device is refused.
func (r *Room) ready(ctx context.Context, name string, closing bool) (Boot, target.Target, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var d Device
	var g Group
	if err := r.get(devices, name, &d); err != nil {
		return Boot{}, target.Target{}, err
	}
	if err := r.get(groups, d.Group, &g); err != nil {
		return Boot{}, target.Target{}, err
	}
	b, v, err := plan(&d, &g, r.o.Now())
	if err != nil {
		return Boot{}, target.Target{}, err
	}
	if b.Fresh {
		if err := spareFor(ctx, r.o.Pool, &d); err != nil {
			return Boot{}, target.Target{}, fmt.Errorf("device %s: %w", name, err)
		}
	}
	if err := r.o.Targets.Remove(ctx, r.IQN(name), closing); err != nil &&
		!errors.Is(err, target.ErrUnknown) {
		return Boot{}, target.Target{}, fmt.Errorf("device %s: %w", name, err)
	}
	if b.Fresh {
		if err := r.clone(ctx, &d, v); err != nil {
			return Boot{}, target.Target{}, fmt.Errorf("device %s: %w", name, err)
		}
	}
	if d.Space > 0 { // also of an image that it keeps: a crash may have come before its limit
		if err := r.o.Pool.Limit(ctx, d.Image, d.Space); err != nil {
			return Boot{}, target.Target{}, fmt.Errorf("device %s: %w", name, err)
		}
	}
	t := target.Target{
		IQN: r.IQN(name), Disks: []target.Disk{
			{Path: r.o.Pool.Path(d.Image), Serial: fmt.Sprintf("ducks%08d", d.Number)}},
		Initiators: []string{r.Initiator(name)}, User: name, Secret: d.Secret}
	more, err := r.Disks().of(name)
	if err != nil {
		return Boot{}, target.Target{}, err
	}
	t.Disks = append(t.Disks, more...)
	if err := r.o.Targets.Put(ctx, t); err != nil {
		return Boot{}, target.Target{}, err
	}
	return b, t, r.Canaries().begins(&g, &d, b.Version)
}

// spareFor refuses a device where what it would write has only the reserve of the pool. What it has
// written and loses counts as free.
func spareFor(ctx context.Context, p pool.Pool, d *Device) error {
	space, err := p.Space(ctx)
	if err != nil || d.Image == "" || space.Spares(0) == nil {
		return errors.Join(err, space.Spares(0))
	}
	u, err := p.Usage(ctx, d.Image)
	if err != nil && !errors.Is(err, pool.ErrUnknown) {
		return err
	}
	return space.Spares(-u.Own)
}

// clone gives a device a new image, with a secret of its own: a system that still knows the one of
// the old image does not log in to another disk by itself. The old image goes when the new one is
// noted.
func (r *Room) clone(ctx context.Context, d *Device, v Version) error {
	old := d.Image
	var number uint64
	if err := r.o.State.Update(func(tx *state.Tx) (err error) {
		number, err = tx.Next(devices)
		return err
	}); err != nil {
		return err
	}
	d.Image, d.ImageOf, d.Version, d.Afresh = deviceImage(d.Name, number), d.Group, v.Number, false
	if old != "" {
		d.Secret = newSecret()
	}
	if err := r.o.Pool.Clone(ctx, v.Snapshot, d.Image); err != nil {
		return err
	}
	if err := r.put(devices, d.Name, *d); err != nil {
		return errors.Join(err, r.o.Pool.Delete(ctx, d.Image))
	}
	if old == "" {
		return nil
	}
	if err := r.o.Pool.Delete(ctx, old); err != nil && !errors.Is(err, pool.ErrUnknown) {
		r.o.Logger.Warn("an image that nobody has any more stays", "image", old, "err", err)
	}
	return nil
}

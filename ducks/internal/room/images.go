package room

import (
	"context"
	"errors"
	"fmt"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/target"
)

// The images of a pool: those of volumes and groups are there as snapshots only.
func volumeImage(name string) string           { return "v." + name }
func groupImage(name string) string            { return "g." + name }
func deviceImage(name string, n uint64) string { return fmt.Sprintf("d.%s.%d", name, n) }
func snapshotOf(image string, n int) pool.Snapshot {
	return pool.Snapshot{Image: image, Name: fmt.Sprint(n)}
}

// CreateVolume makes an empty disk, of a name, network and size.
func (r *Room) CreateVolume(ctx context.Context, v Volume, author string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := v.Name
	if err := errors.Join(r.fresh(volumes, name),
		r.Networks().may(v.Network, Counts{Volumes: 1, Space: v.Size})); err != nil {
		return err
	}
	image := volumeImage(name)
	// by a try before this one
	if err := r.o.Pool.Create(ctx, image, v.Size); err != nil && !errors.Is(err, pool.ErrExists) {
		return fmt.Errorf("volume %s: %w", name, err)
	}
	v.Versions = nil
	err := r.freeze(ctx, image, image, &v.Versions, Version{From: "empty", Author: author})
	if err == nil {
		err = r.put(volumes, name, v)
	}
	return errors.Join(err, r.o.Pool.Delete(ctx, image))
}

// CreateGroup makes a group whose first version is the newest of a volume.
func (r *Room) CreateGroup(_ context.Context, name, volume, author string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fresh(groups, name); err != nil {
		return err
	}
	var v Volume
	if err := r.get(volumes, volume, &v); err != nil {
		return err
	}
	of, err := version(v.Versions, 0)
	if err != nil {
		return err
	}
	first := Version{
		Number:   1,
		Snapshot: of.Snapshot,
		From:     fmt.Sprintf("volume %s, version %d", volume, of.Number),
		Author:   author,
		At:       r.o.Now(),
	}
	return r.Networks().grow(v.Network, Counts{Groups: 1}, func(tx *state.Tx) error {
		return tx.Put(groups, name, Group{
			Name:     name,
			Network:  v.Network,
			Volume:   volume,
			Versions: []Version{first},
		})
	})
}

// freeze keeps an image as the next version of a list. A number whose snapshot is there already,
// from a try that was not noted, is passed over.
func (r *Room) freeze(ctx context.Context, image, as string, list *[]Version, v Version) error {
	before := pool.Snapshot{}
	if n := len(*list); n > 0 {
		before, v.Number = (*list)[n-1].Snapshot, (*list)[n-1].Number
	}
	for {
		v.Number++
		v.Snapshot, v.At = snapshotOf(as, v.Number), r.o.Now()
		err := r.o.Pool.Freeze(ctx, image, v.Snapshot)
		if errors.Is(err, pool.ErrExists) {
			continue
		}
		if err != nil {
			return err
		}
		break
	}
	if before != (pool.Snapshot{}) {
		changed, err := r.o.Pool.Delta(ctx, before, v.Snapshot)
		if err != nil {
			return errors.Join(err, r.o.Pool.DeleteSnapshot(ctx, v.Snapshot))
		}
		v.Changed = changed
	}
	*list = append(*list, v)
	return nil
}

// Update is what a device gives to its group.
type Update struct {
	Device       string // that has written it
	Author, Note string
	Try          *Canary // who gets it first; nil: all do
}

// UpdateGroup makes what a device has written the newest version of a group. The device is off:
// nobody has a session on its disk. Devices get the version when they boot next; where it is to be
// tried, only canaries do.
func (r *Room) UpdateGroup(ctx context.Context, name string, u Update) (Version, error) {
	if u.Try != nil {
		if err := u.Try.check(); err != nil {
			return Version{}, fmt.Errorf("group %s: %w", name, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var g Group
	var d Device
	if err := errors.Join(r.get(groups, name, &g), r.get(devices, u.Device, &d)); err != nil {
		return Version{}, err
	}
	if d.Image == "" {
		return Version{}, fmt.Errorf("device %s: %w: it has no image yet: boot it first", u.Device,
			ErrRefused)
	}
	if of, err := r.Group(d.Group); err != nil || of.Network != g.Network {
		return Version{}, errors.Join(err,
			fmt.Errorf("device %s: %w: it is of network %s, and group %s of %s", u.Device, ErrRefused,
				of.Network, name, g.Network))
	}
	// Without its target it cannot be switched on meanwhile. It gets it again when it boots.
	switch err := r.o.Targets.Remove(ctx, r.IQN(u.Device), false); {
	case errors.Is(err, target.ErrBusy):
		return Version{}, fmt.Errorf("device %s: %w: it is on: shut it down, then update the group",
			u.Device, ErrBusy)
	case err != nil && !errors.Is(err, target.ErrUnknown):
		return Version{}, err
	}
	before, err := version(g.Versions, g.Use)
	if err != nil {
		return Version{}, fmt.Errorf("group %s: %w", name, err)
	}
	if err := r.freeze(ctx, d.Image, groupImage(name), &g.Versions, Version{
		From:   "device " + u.Device,
		Author: u.Author,
		Note:   u.Note,
	}); err != nil {
		return Version{}, fmt.Errorf("group %s: %w", name, err)
	}
	v := g.Versions[len(g.Versions)-1]
	g.Use = 0
	g.settles()
	if u.Try != nil {
		all, err := r.Devices()
		if err != nil {
			return Version{}, err
		}
		g.tries(*u.Try, before.Number, all, r.o.Now())
	}
	return v, r.put(groups, name, g)
}

// Promote makes the version that a group uses the newest one of its volume. Groups that are made
// later begin with it.
func (r *Room) Promote(ctx context.Context, name, author, note string) (Version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var g Group
	if err := r.get(groups, name, &g); err != nil {
		return Version{}, err
	}
	of, err := version(g.Versions, g.Use)
	if err != nil {
		return Version{}, err
	}
	var v Volume
	if err := r.get(volumes, g.Volume, &v); err != nil {
		return Version{}, err
	}
	last := v.Versions[len(v.Versions)-1]
	if last.Snapshot == of.Snapshot {
		return last, nil
	}
	if err := pool.Spare(ctx, r.o.Pool, 0); err != nil { // what it keeps does not come back
		return Version{}, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	next := Version{Number: last.Number + 1, Snapshot: of.Snapshot,
		From:   fmt.Sprintf("group %s, version %d", name, of.Number),
		Author: author, Note: note, At: r.o.Now(), Changed: of.Changed}
	v.Versions = append(v.Versions, next)
	return next, r.put(volumes, v.Name, v)
}

// The bounds of timeouts, in seconds.
const (
	leastWait   = 5
	longestWait = 30 * 24 * 3600
)

// SetTimeouts says how long the devices of a group wait for their disk. They hear it when they are
// up the next time.
func (r *Room) SetTimeouts(name string, t Timeouts) error {
	for _, s := range []int{t.Recovery, t.Command} {
		if s != 0 && (s < leastWait || s > longestWait) {
			return fmt.Errorf("group %s: %w: %d seconds: want %d to %d, or 0 for what the image says", name,
				ErrRefused, s, leastWait, longestWait)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g, err := r.Group(name)
	if err != nil {
		return err
	}
	g.Timeouts = t
	return r.put(groups, name, g)
}

// Rollback lets the devices of a group get a version when they boot next; 0 is the newest, also of
// those to come.
func (r *Room) Rollback(_ context.Context, name string, number int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var g Group
	if err := r.get(groups, name, &g); err != nil {
		return err
	}
	if _, err := version(g.Versions, number); err != nil {
		return fmt.Errorf("group %s: %w", name, err)
	}
	g.Use = number
	g.settles()
	return r.put(groups, name, g)
}

package room

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/target"
)

// RemoveDevice removes a device that is off, with what it has written.
func (r *Room) RemoveDevice(ctx context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, err := r.Device(name)
	if err != nil {
		return err
	}
	switch err := r.o.Targets.Remove(ctx, r.IQN(name), false); {
	case errors.Is(err, target.ErrBusy):
		return fmt.Errorf("device %s: %w: it is on: shut it down first", name, ErrBusy)
	case err != nil && !errors.Is(err, target.ErrUnknown):
		return err
	}
	if err := r.o.State.Update(func(tx *state.Tx) error {
		return errors.Join(tx.Delete(devices, name), r.Disks().none(tx, name))
	}); err != nil {
		return err
	}
	if d.Image == "" {
		return nil
	}
	return gone(r.o.Pool.Delete(ctx, d.Image))
}

// RemoveGroup removes a group that no device is in, with its versions.
func (r *Room) RemoveGroup(ctx context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	g, err := r.Group(name)
	if err != nil {
		return err
	}
	all, err := r.Devices()
	if err != nil {
		return err
	}
	for _, d := range all {
		if d.Group == name {
			return fmt.Errorf("group %s: %w: device %s is in it: move or remove it first", name, ErrBusy,
				d.Name)
		}
	}
	if err := r.delete(groups, name); err != nil {
		return err
	}
	return r.removeSnapshots(ctx, g.Versions)
}

// RemoveVolume removes a volume that no group began with, with its versions.
func (r *Room) RemoveVolume(ctx context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var v Volume
	if err := r.get(volumes, name, &v); err != nil {
		return err
	}
	all, err := r.Groups()
	if err != nil {
		return err
	}
	for _, g := range all {
		if g.Volume == name {
			return fmt.Errorf("volume %s: %w: group %s is of it: remove that first", name, ErrBusy, g.Name)
		}
	}
	if err := r.delete(volumes, name); err != nil {
		return err
	}
	return r.removeSnapshots(ctx, v.Versions)
}

// RemoveVersion removes a version of a group that devices do not get. What was cloned from it
// stays.
func (r *Room) RemoveVersion(ctx context.Context, name string, number int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	g, err := r.Group(name)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(g.Versions, func(v Version) bool { return v.Number == number })
	if at < 0 {
		return fmt.Errorf("group %s: version %d: %w", name, number, state.ErrUnknown)
	}
	all, err := r.Devices()
	if err != nil {
		return err
	}
	for _, d := range all {
		if d.Group == name && d.Pin == number {
			return fmt.Errorf("group %s: %w: device %s is pinned to version %d", name, ErrBusy, d.Name,
				number)
		}
	}
	if used, err := version(g.Versions, g.Use); err != nil || used.Number == number ||
		at == len(g.Versions)-1 {
		return errors.Join(err,
			fmt.Errorf("group %s: %w: version %d is the one that devices get, or the newest", name, ErrBusy,
				number))
	}
	removed := g.Versions[at]
	g.Versions = slices.Delete(g.Versions, at, at+1)
	if err := r.put(groups, name, g); err != nil {
		return err
	}
	return r.removeSnapshots(ctx, []Version{removed})
}

// removeSnapshots removes those of versions that are no version of anything any more.
func (r *Room) removeSnapshots(ctx context.Context, of []Version) error {
	vs, err := r.Volumes()
	if err != nil {
		return err
	}
	gs, err := r.Groups()
	if err != nil {
		return err
	}
	used := make(map[pool.Snapshot]bool)
	note := func(list []Version) {
		for _, v := range list {
			used[v.Snapshot] = true
		}
	}
	for _, v := range vs {
		note(v.Versions)
	}
	for _, g := range gs {
		note(g.Versions)
	}
	for _, v := range of {
		if !used[v.Snapshot] {
			err = errors.Join(err, gone(r.o.Pool.DeleteSnapshot(ctx, v.Snapshot)))
		}
	}
	return err
}

// gone takes it for done that something is not there.
func gone(err error) error {
	if errors.Is(err, pool.ErrUnknown) {
		return nil
	}
	return err
}

func (r *Room) delete(t state.Table, name string) error {
	return r.o.State.Update(func(tx *state.Tx) error { return tx.Delete(t, name) })
}

// Orphans returns the images of the pool that no device has: a crash or a failed removal has left
// them.
func (r *Room) Orphans(ctx context.Context) (list []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, err := r.o.Pool.Images(ctx)
	if err != nil {
		return nil, err
	}
	of, err := r.Devices()
	if err != nil {
		return nil, err
	}
	list = []string{}
	more, err := r.Disks().List()
	if err != nil {
		return nil, err
	}
	used := make(map[string]bool)
	for _, d := range of {
		used[d.Image] = true
	}
	for _, d := range more {
		used[diskImage(d.Name)] = true
	}
	for _, image := range all {
		if !used[image] && !strings.HasPrefix(image, transferring) {
			list = append(list, image)
		}
	}
	return list, nil
}

// RemoveOrphan removes one of Orphans.
func (r *Room) RemoveOrphan(ctx context.Context, image string) error {
	list, err := r.Orphans(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(list, image) {
		return fmt.Errorf("image %s: %w, or a device has it", image, state.ErrUnknown)
	}
	return r.o.Pool.Delete(ctx, image)
}

package room

import (
	"context"
	"errors"
	"fmt"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/target"
)

// Disk is a further disk, which a device has beside the one that it boots from. What is written to
// it stays, whatever the mode of the device. It has no versions.
type Disk struct {
	Name    string `json:"name"`
	Network string `json:"network"`
	Size    int64  `json:"size"`
	Device  string `json:"device,omitempty"` // that has it from its next boot on; empty: none
	Number  uint64 `json:"number"`           // for good
}

const disks state.Table = "disk"

// diskImage is the image of a disk.
func diskImage(name string) string { return "x." + name }

// Disks are the further disks of a room. Its methods may be called concurrently.
type Disks struct{ r *Room }

// Disks returns the further disks.
func (r *Room) Disks() Disks { return Disks{r} }

// List returns all, by name.
func (d Disks) List() ([]Disk, error) { return list[Disk](d.r, disks) }

// Create makes an empty disk that no device has, of a name, network and size.
func (d Disks) Create(ctx context.Context, of Disk) error {
	r, name, more := d.r, of.Name, Counts{Disks: 1, Space: of.Size}
	r.mu.Lock()
	defer r.mu.Unlock()
	of.Device = ""
	if err := errors.Join(r.fresh(disks, name), r.Networks().may(of.Network, more)); err != nil {
		return err
	}
	if err := r.o.Pool.Create(ctx, diskImage(name), of.Size); err != nil {
		return fmt.Errorf("disk %s: %w", name, err)
	}
	err := r.o.State.Update(func(tx *state.Tx) (err error) {
		if of.Number, err = tx.Next(disks); err != nil {
			return err
		}
		return tx.Put(disks, name, of)
	})
	if err != nil {
		return errors.Join(err, r.o.Pool.Delete(ctx, diskImage(name)))
	}
	return nil
}

// Give gives a disk to a device from its next boot on; "" takes it from the one that has it. That
// one is off: a disk is never that of two.
func (d Disks) Give(ctx context.Context, name, device string) error {
	r := d.r
	r.mu.Lock()
	defer r.mu.Unlock()
	var of Disk
	if err := r.get(disks, name, &of); err != nil {
		return err
	}
	if device != "" {
		t, err := r.Networks().Tree()
		if err == nil {
			_, err = r.Device(device)
		}
		if err != nil {
			return err
		}
		if to := t.Place(devices, device).Network; to != of.Network {
			return fmt.Errorf("disk %s: %w: it is of network %s, and device %s of %s", name, ErrRefused,
				of.Network, device, to)
		}
	}
	if of.Device == device {
		return nil
	}
	if err := d.free(ctx, &of); err != nil {
		return err
	}
	of.Device = device
	return r.put(disks, name, of)
}

// free removes the target of the device that has a disk. When the device boots, it gets its target
// again without the disk.
func (d Disks) free(ctx context.Context, of *Disk) error {
	if of.Device == "" {
		return nil
	}
	switch err := d.r.o.Targets.Remove(ctx, d.r.IQN(of.Device), false); {
	case errors.Is(err, target.ErrBusy):
		return fmt.Errorf("disk %s: %w: device %s has it, and is on: shut it down first", of.Name,
			ErrBusy, of.Device)
	case err != nil && !errors.Is(err, target.ErrUnknown):
		return err
	}
	return nil
}

// Remove removes a disk that no device has, with all that is on it.
func (d Disks) Remove(ctx context.Context, name string) error {
	r := d.r
	r.mu.Lock()
	defer r.mu.Unlock()
	var of Disk
	if err := r.get(disks, name, &of); err != nil {
		return err
	}
	if of.Device != "" {
		return fmt.Errorf("disk %s: %w: device %s has it: take it away first", name, ErrBusy, of.Device)
	}
	if err := r.delete(disks, name); err != nil {
		return err
	}
	return gone(r.o.Pool.Delete(ctx, diskImage(name)))
}

// of returns the further disks of a device for its target, by name.
func (d Disks) of(device string) (list []target.Disk, err error) {
	all, err := d.List()
	for _, of := range all {
		if of.Device == device {
			list = append(list, target.Disk{Path: d.r.o.Pool.Path(diskImage(of.Name)),
				Serial: fmt.Sprintf("duckd%08d", of.Number)})
		}
	}
	return list, err
}

// none takes all disks from a device that is removed.
func (d Disks) none(tx *state.Tx, device string) error {
	var had []Disk
	err := state.Each(tx, disks, func(_ string, of Disk) error {
		if of.Device == device {
			had = append(had, of)
		}
		return nil
	})
	for _, of := range had {
		of.Device = ""
		err = errors.Join(err, tx.Put(disks, of.Name, of))
	}
	return err
}

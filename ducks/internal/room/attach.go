package room

import (
	"context"
	"errors"
	"fmt"

	"dalmatiner/ducks/internal/target"
)

// Attach gets the disk of a device ready as Boot does, for an initiator that does not ask for a
// script. It is refused while somebody is logged in: nothing says that the device has ended.
func (r *Room) Attach(ctx context.Context, name string) (Boot, target.Target, error) {
	b, t, err := r.ready(ctx, name, false)
	if errors.Is(err, target.ErrBusy) {
		err = fmt.Errorf("%w: log it out first, or detach it with force", err)
	}
	return b, t, err
}

// Detach takes the disk of a device away until it boots, or is attached, again. Its image stays. It
// is refused while somebody is logged in, unless that session is to be closed.
func (r *Room) Detach(ctx context.Context, name string, closing bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.Device(name); err != nil {
		return err
	}
	switch err := r.o.Targets.Remove(ctx, r.IQN(name), closing); {
	case errors.Is(err, target.ErrUnknown):
		return fmt.Errorf("device %s: %w: it is not attached", name, ErrRefused)
	case errors.Is(err, target.ErrBusy):
		return fmt.Errorf("device %s: %w: log it out first, or detach it with force", name, err)
	case err != nil:
		return fmt.Errorf("device %s: %w", name, err)
	}
	return nil
}

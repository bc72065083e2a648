package agent

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"dalmatiner/ducks/internal/room"
	"dalmatiner/ducks/internal/sockets"
	"dalmatiner/ducks/internal/target"
	"dalmatiner/ducks/internal/traffic"
)

// shares gives devices that boot, and those that are logged in, their parts of the line.
type shares struct {
	shaper interface {
		Set(list []traffic.Share) error
		Add(of traffic.Share) error
		Used() ([]traffic.Used, error)
		Close() error
	}
	room interface {
		Devices() ([]room.Device, error)
		IQN(device string) string
	}
	targets interface {
		Traffic(ctx context.Context) ([]target.Traffic, error)
		Sessions(ctx context.Context, iqn string) ([]target.Session, error)
	}
	tables string                      // where the kernel shows its sockets
	port   uint16                      // of the disks
	at     map[target.Login]netip.Addr // where sessions come from
	now    func() time.Time

	seen    []sockets.Socket // the connections, when shares were given out
	limits  map[string]int64 // and the limits of devices
	settled bool             // they have all that follows from these

	mu      sync.Mutex
	on      []traffic.Share   // those that are logged in
	booting map[string]begins // those that were told where their disk is, by device
	more    bool              // one has begun since all shares were given out
}

// begins is the share of a device that was told where its disk is, until it logs in.
type begins struct {
	share traffic.Share
	until time.Time // then it does not come any more
}

// loginTime is how long a device may take from its script to its disk.
const loginTime = time.Minute

// shareEvery is how soon a device that logs in has its part, at most.
const shareEvery = time.Second

// startShares shares the line of the interface, if there is one, until the context ends: then wait
// returns.
func startShares(ctx context.Context, o *Options, devices *room.Room, targets *target.Targets) (
	s *shares, wait func() error, err error) {
	if o.Shape.Interface == "" {
		return nil, func() error { return nil }, nil
	}
	s = &shares{
		room:    devices,
		targets: targets,
		tables:  sockets.Proc,
		port:    o.Portal.Port(),
		at:      make(map[target.Login]netip.Addr),
		now:     time.Now,
		booting: make(map[string]begins),
	}
	shaper, err := traffic.Start(o.Shape)
	if err != nil {
		return nil, nil, err
	}
	s.shaper = shaper
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run(ctx, o)
	}()
	return s, func() error {
		<-done
		return s.shaper.Close()
	}, nil
}

// run gives out shares until the context ends. It says once that this fails, and once that it works
// again.
func (s *shares) run(ctx context.Context, o *Options) {
	tick := time.NewTicker(shareEvery)
	defer tick.Stop()
	for failing := false; ; {
		err := s.share(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			o.Logger.Warn("devices that came or went last have not their part of the line", "err", err)
		case err == nil && failing:
			o.Logger.Info("all devices have their part of the line again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// begin gives a device its share before it reaches its disk. Nothing is asked for it.
func (s *shares) begin(d *room.Device, at netip.Addr) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := traffic.Share{Device: d.Name, Address: at, Limit: d.Limit}
	s.booting[d.Name], s.more = begins{of, s.now().Add(loginTime)}, true
	if s.taken(s.on, at) {
		return nil // until who had it has gone
	}
	return s.shaper.Add(of)
}

// taken reports whether a device of a list has an address.
func (s *shares) taken(list []traffic.Share, at netip.Addr) bool {
	return slices.ContainsFunc(list, func(o traffic.Share) bool { return o.Address == at })
}

// set gives out all shares. A device that is logged in boots no more, and an address is of one
// device.
func (s *shares) set() error {
	list := slices.Clone(s.on)
	for name, b := range s.booting {
		if s.now().After(b.until) || slices.ContainsFunc(s.on, func(o traffic.Share) bool {
			return o.Device == name
		}) {
			delete(s.booting, name)
			continue
		}
		if !s.taken(list, b.share.Address) {
			list = append(list, b.share)
		}
	}
	s.more = false
	return s.shaper.Set(list)
}

// due reports whether a device has begun to boot, or was to come and has not.
func (s *shares) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.more {
		return true
	}
	for _, b := range s.booting {
		if s.now().After(b.until) {
			return true
		}
	}
	return false
}

// share gives each device that is logged in its share, if one came or went, or has another limit.
func (s *shares) share(ctx context.Context) error {
	devices, err := s.room.Devices()
	if err != nil {
		return err
	}
	limits := make(map[string]int64, len(devices))
	for _, d := range devices {
		limits[d.Name] = d.Limit
	}
	// tgtd is not asked: its devices wait while it answers.
	seen, err := sockets.At(s.tables, sockets.Established, s.port)
	if err != nil || s.settled && slices.Equal(seen, s.seen) && maps.Equal(limits, s.limits) &&
		!s.due() {
		return err
	}
	s.settled = false
	sessions, err := s.targets.Traffic(ctx)
	if err != nil {
		return err
	}
	if err := s.locate(ctx, sessions, seen); err != nil {
		return err
	}
	of := make(map[string]room.Device, len(devices))
	for _, d := range devices {
		of[s.room.IQN(d.Name)] = d
	}
	list := make([]traffic.Share, 0, len(sessions))
	for _, t := range sessions {
		d, known := of[t.IQN]
		if at, located := s.at[t.Login]; known && located {
			list = append(list, traffic.Share{Device: d.Name, Address: at, Limit: d.Limit})
		}
	}
	s.mu.Lock()
	s.on = list
	err = s.set()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	// A connection that has not logged in yet is looked at again, and a session that came after the
	// connections were read.
	s.seen, s.limits, s.settled = seen, limits, len(list) == len(seen)
	return nil
}

// locate finds where new sessions come from, and forgets those that have ended. The next boot of a
// device may have a session of the same number: one from where nobody is connected any more is
// looked at again.
func (s *shares) locate(ctx context.Context, sessions []target.Traffic,
	seen []sockets.Socket) error {
	now := make(map[target.Login]netip.Addr, len(sessions))
	for _, t := range sessions {
		at, known := s.at[t.Login]
		if known && slices.ContainsFunc(seen, func(c sockets.Socket) bool {
			return c.Remote.Addr() == at
		}) {
			now[t.Login] = at
			continue
		}
		list, err := s.targets.Sessions(ctx, t.IQN)
		if err != nil {
			return err
		}
		for _, of := range list {
			if of.Address.IsValid() { // else it begins or ends just now, and is looked at again
				now[target.Login{IQN: t.IQN, Session: of.ID}] = of.Address.Unmap().WithZone("")
			}
		}
	}
	s.at = now
	return nil
}

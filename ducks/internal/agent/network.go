package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/boot"
	"dalmatiner/ducks/internal/dhcp"
	"dalmatiner/ducks/internal/noroute"
	"dalmatiner/ducks/internal/room"
	"dalmatiner/ducks/internal/target"
	"dalmatiner/ducks/internal/tftp"
	"dalmatiner/ducks/internal/wake"
)

// Network is the interface at which machines get addresses and boot loaders.
type Network struct {
	Interface   string     // empty: there is none
	Proxy       bool       // another server gives addresses
	First, Last netip.Addr // that are given; zero: the upper half of the network
	Router, DNS netip.Addr // that machines are told; may be zero
	Loaders     string     // a directory with boot loaders
}

// network answers machines at the interface until it is closed.
type network struct {
	dhcp    *dhcp.Server
	tftp    *tftp.Server
	noroute func() // ends what tells machines that there is no router
}

// openNetwork begins to answer machines that find their script at a port.
func openNetwork(ctx context.Context, o *Options, port uint16, file *state.File, devices *room.Room,
	times *boot.Times) (*network, error) {
	if o.Network.Interface == "" {
		return &network{}, nil
	}
	files := tftp.Files{Dir: o.Network.Loaders}
	err := files.Check(dhcp.Debian.BIOS, dhcp.Debian.UEFI)
	if err != nil {
		return nil, fmt.Errorf("boot loaders in %s: %w: on Debian apt-get install ipxe has them",
			o.Network.Loaders, err)
	}
	n := &network{}
	n.dhcp, err = dhcp.Start(ctx, dhcp.Options{Interface: o.Network.Interface, Proxy: o.Network.Proxy,
		First: o.Network.First, Last: o.Network.Last,
		Router: o.Network.Router, DNS: o.Network.DNS, HTTP: port, Script: boot.Path, Loader: boot.Loader,
		Loaders: dhcp.Debian, State: file,
		Has:   func(name string) bool { return files.Check(name) == nil },
		Known: func(mac string) bool { _, err := devices.ByMAC(mac); return err == nil },
		Seen: func(mac string, ipxe bool) {
			stage := boot.Addressed
			if ipxe {
				stage = boot.Loaded
			}
			times.Note(mac, stage)
		},
		Lacks: times.Lacks,
		Now:   time.Now, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	n.tftp, err = tftp.Start(netip.AddrPortFrom(n.dhcp.Self.Addr(), tftp.Port),
		tftp.Options{Files: files, Logger: o.Logger, Seen: func(who netip.Addr) {
			if mac, err := boot.Neighbour(who); err == nil && mac != "" {
				times.Note(mac, boot.Fetched)
			}
		}})
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	n.noroute = startNoroute(ctx, o, times)
	return n, nil
}

// startNoroute tells machines that their iPXE waits in vain for a router, until the function it
// returns is called.
func startNoroute(ctx context.Context, o *Options, times *boot.Times) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		noroute.Run(ctx, noroute.Options{Interface: o.Network.Interface, Logger: o.Logger,
			Waits: func(mac string) bool {
				boots := times.Of(mac)
				if len(boots) == 0 {
					return false
				}
				stage, _ := boots[0].Last()
				return stage == boot.Loaded
			}})
	})
	return func() {
		stop()
		running.Wait()
	}
}

// Close ends what answers machines.
func (n *network) Close() (err error) {
	if n.noroute != nil {
		n.noroute()
	}
	if n.tftp != nil {
		n.tftp.Close()
	}
	if n.dhcp != nil {
		err = n.dhcp.Close()
	}
	return err
}

// lookEvery is how often it is looked whether a device has logged in, and read.
const lookEvery = 500 * time.Millisecond

// watchSessions notes when devices that were told their disk have logged in and read, and takes
// versions back that canaries do not boot, until the context ends.
func watchSessions(ctx context.Context, o *Options, devices *room.Room, targets *target.Targets,
	times *boot.Times) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := devices.Canaries().Withdraw(); err != nil {
			o.Logger.Warn("it is not known whether canaries boot", "err", err)
		}
		trying, err := devices.Canaries().Trying()
		if err != nil {
			o.Logger.Warn("it is not known whether canaries boot", "err", err)
		}
		waiting := append(times.Waiting(), trying...)
		if len(waiting) == 0 {
			continue
		}
		sessions, _, err := targets.Recent(ctx, lookEvery/2)
		if err != nil {
			if ctx.Err() == nil {
				o.Logger.Warn("it is not known whether devices have logged in", "err", err)
			}
			continue
		}
		reads := make(map[string]int64, len(sessions)) // by target
		for _, s := range sessions {
			reads[s.IQN] += s.Reads
		}
		for _, mac := range waiting {
			d, err := devices.ByMAC(mac)
			if err != nil {
				continue // it was removed
			}
			n, on := reads[devices.IQN(d.Name)]
			if on {
				times.Note(mac, boot.LoggedIn)
			}
			if n == 0 {
				continue
			}
			times.Note(mac, boot.Read)
			if err := devices.Canaries().Reached(mac, room.UntilRead); err != nil {
				o.Logger.Warn("it is not noted that a device reads", "device", d.Name, "err", err)
			}
		}
	}
}

// waker returns what switches machines on at the interface, nil if there is none.
func waker(o *Options) func(mac string) error {
	if o.Network.Interface == "" {
		return nil
	}
	return func(mac string) error {
		self, err := dhcp.AddressOf(o.Network.Interface)
		if err != nil {
			return err
		}
		return wake.Send(self, mac)
	}
}

// Package agent is ducks on one machine: the state, a pool, tgtd, what devices ask and what people
// ask.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"dalmatiner/access"
	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/api"
	"dalmatiner/ducks/internal/boot"
	"dalmatiner/ducks/internal/contents"
	"dalmatiner/ducks/internal/dhcp"
	"dalmatiner/ducks/internal/figures"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/room"
	"dalmatiner/ducks/internal/sockets"
	"dalmatiner/ducks/internal/target"
	"dalmatiner/ducks/internal/tftp"
	"dalmatiner/ducks/internal/traffic"
)

// Options say where everything is.
type Options struct {
	DataDir  string         // of the state
	Pool     string         // as pool.Open takes it
	Reserve  pool.Reserve   // what of it is kept for devices
	HTTP     string         // address of the API: loopback, unless there is a certificate
	TLS      TLS            // of the API
	Devices  string         // address at which devices ask for their script; empty: they cannot
	Portal   netip.AddrPort // of the disks
	Base     string         // of iSCSI names
	Network  Network
	Shape    traffic.Options // without an interface, devices have no classes
	Store    string          // the TCP address of ddb, which gets figures; empty: none
	Logger   *slog.Logger
	Listened func(http, devices net.Addr) // is told the addresses; may be nil
}

// FirstToken is the file in DataDir with the token of an admin that a new state begins with.
const FirstToken = "first-token"

// targetsDir is where tgtd is told what to do, in a data directory.
const targetsDir = "tgt"

// StopTargets ends the tgtd that Run has left, with the sessions of devices, and returns how many
// these were; false if none ran. While Run runs it is refused.
func StopTargets(ctx context.Context, dataDir string) (sessions int, ran bool, err error) {
	path := filepath.Join(dataDir, stateFile)
	if _, err := os.Stat(path); err != nil {
		return 0, false, fmt.Errorf("%s is no data directory of ducks: %w", dataDir, err)
	}
	file, err := state.Open(path, layouts())
	if err != nil {
		return 0, false, fmt.Errorf("stop ducks serve first: %w", err)
	}
	sessions, ran, err = target.Stop(ctx, filepath.Join(dataDir, targetsDir))
	return sessions, ran, errors.Join(err, file.Close())
}

// Run runs until the context ends. tgtd and the sessions of devices go on behind it.
func Run(ctx context.Context, o Options) (err error) {
	if err := o.reachable(); err != nil {
		return err
	}
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return err
	}
	// The state first: it is locked, and opening a pool removes what another ducks has in the making
	// there.
	file, err := state.Open(filepath.Join(o.DataDir, stateFile), layouts())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	images, dir, lock, err := openPool(o.Pool, o.Reserve)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	gate := access.New(file, time.Now)
	if err := first(gate, &o); err != nil {
		return err
	}
	targets, err := target.Start(ctx, target.Options{Dir: filepath.Join(o.DataDir, targetsDir),
		Portal: o.Portal, Logger: o.Logger})
	if err != nil {
		return err
	}
	defer o.leave(targets)
	devices := room.New(room.Options{State: file, Pool: images, Targets: targets, Base: o.Base,
		Now: time.Now, Logger: o.Logger})
	if err := devices.Transfers().Tidy(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	lines, shared, err := startShares(ctx, &o, devices, targets)
	if err != nil {
		return err
	}
	defer func() {
		stop()
		err = errors.Join(err, shared())
	}()
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	sent := sends(&o, host, devices, images, targets, lines)
	times := boot.NewTimes(time.Now, func(mac string, s boot.Stage, since time.Duration) {
		o.Logger.Info("a machine boots", "mac", mac, "stage", s, "after", since)
		sent.Stage(mac, s, since)
	})
	var beside sync.WaitGroup
	beside.Go(func() { watchSessions(ctx, &o, devices, targets, times) })
	beside.Go(func() { sent.Run(ctx) })
	beside.Go(func() { keepBackup(ctx, file, images, dir, o.Logger) })
	defer beside.Wait()
	defer stop()
	people := api.Options{Room: devices, Pool: images, Access: gate, Times: times,
		Server: api.Server{Name: host, Role: "master", Portal: o.Portal.String(), Pool: o.Pool,
			Since: time.Now()},
		Leases:   func() ([]dhcp.Lease, error) { return dhcp.Leases(file) },
		Sessions: targets.Recent, Reads: contents.NewTurns(), Wake: waker(&o), Logger: o.Logger}
	return serve(ctx, &o, file, api.Handler(people), boot.Handler(answers(&o, devices, times, lines)),
		func(port uint16) (io.Closer, error) { return openNetwork(ctx, &o, port, file, devices, times) })
}

// leave ends what ducks does with targets, and says that tgtd goes on.
func (o *Options) leave(targets *target.Targets) {
	targets.Close()
	o.Logger.Info("ducks has stopped, and tgtd goes on: devices keep their disks; ducks stop "+
		"--targets ends it", "targets", targets.Count(), "data_dir", o.DataDir)
}

// answers returns what devices are answered from.
func answers(o *Options, devices *room.Room, times *boot.Times, lines *shares) boot.Options {
	of := boot.Options{Room: devices, Menu: devices.Menus().Of, Portal: o.Portal, Times: times,
		Logger: o.Logger,
		Heard: func(at netip.Addr) (time.Duration, bool, error) {
			return sockets.Heard(at, o.Portal.Port())
		},
		Up: func(mac string) error { return devices.Canaries().Reached(mac, room.UntilUp) },
		Timeouts: func(mac string) (room.Timeouts, error) {
			d, err := devices.ByMAC(mac)
			if err != nil {
				return room.Timeouts{}, err
			}
			g, err := devices.Group(d.Group)
			return g.Timeouts, err
		}}
	if lines != nil {
		of.Begins = lines.begin
	}
	if o.Network.Loaders != "" {
		of.Files = tftp.Files{Dir: o.Network.Loaders}
	}
	return of
}

// openPool opens a pool for this process alone, until the lock is closed, and returns its directory
// as well.
func openPool(spec string,
	keep pool.Reserve) (images pool.Pool, dir string, lock io.Closer, err error) {
	if dir, err = pool.Dir(spec); err != nil {
		return nil, "", nil, err
	}
	if lock, err = pool.Lock(spec); err != nil {
		return nil, "", nil, err
	}
	if images, err = pool.Open(spec, keep); err != nil {
		return nil, "", nil, errors.Join(err, lock.Close())
	}
	return images, dir, lock, nil
}

// sends returns what sends figures to the store, if there is one.
func sends(o *Options, host string, devices *room.Room, images pool.Pool, targets *target.Targets,
	lines *shares) *figures.Figures {
	of := figures.Options{Address: o.Store, Server: host, Room: devices, Pool: images,
		Targets: targets, Now: time.Now, Logger: o.Logger}
	if lines != nil {
		of.Line = lines.shaper
	}
	return figures.New(of)
}

// reachable refuses addresses that other machines reach without TLS: tokens would cross the network
// in clear.
func (o *Options) reachable() error {
	host, _, err := net.SplitHostPort(o.HTTP)
	if o.TLS != (TLS{}) {
		return err
	}
	if err != nil {
		return fmt.Errorf("address of the API: %w", err)
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return fmt.Errorf("the API listens on a loopback address, as 127.0.0.1:8091, not on %s: give "+
			"--tls-own-ca, or --tls-cert and --tls-key, or let a proxy with TLS stand before it", o.HTTP)
	}
	return nil
}

// first writes the token of the first admin into a file that only the owner reads.
func first(gate *access.Access, o *Options) error {
	secret, err := gate.First()
	if err != nil || secret == "" {
		return err
	}
	path := filepath.Join(o.DataDir, FirstToken)
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		return errors.Join(err, gate.DeleteToken("first"))
	}
	o.Logger.Info("a token of an admin was made", "file", path)
	return nil
}

// serve answers at both addresses until the context ends, and machines that ask for an address,
// once they find the rest at a port.
func serve(ctx context.Context, o *Options, file *state.File, people, devices http.Handler,
	network func(port uint16) (io.Closer, error)) (err error) {
	main, err := net.Listen("tcp", o.HTTP)
	if err != nil {
		return fmt.Errorf("address of the API: %w", err)
	}
	if main, err = secureAPI(main, o, file); err != nil {
		return err
	}
	servers := []*http.Server{server(people, o.Logger)}
	listeners := []net.Listener{main}
	var second net.Addr
	var port uint16
	if o.Devices != "" {
		l, err := net.Listen("tcp", o.Devices)
		if err != nil {
			return errors.Join(fmt.Errorf("address for devices: %w", err), main.Close())
		}
		servers, listeners, second = append(servers, server(devices, o.Logger)), append(listeners, l),
			l.Addr()
		port = uint16(l.Addr().(*net.TCPAddr).Port)
	}
	open, err := network(port)
	if err != nil {
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
		return err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	if o.Listened != nil {
		o.Listened(main.Addr(), second)
	}
	ended := make(chan error, len(servers))
	for i, s := range servers {
		go func() { ended <- s.Serve(listeners[i]) }()
	}
	select {
	case <-ctx.Done():
		err = nil
	case err = <-ended:
	}
	for _, s := range servers {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		err = errors.Join(err, s.Shutdown(limit))
		cancel()
	}
	return err
}

// server returns one that waits for nobody for ever.
func server(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ReadTimeout: 30 * time.Second, WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10}
}

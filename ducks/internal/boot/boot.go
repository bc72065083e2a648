// Package boot tells a device what to boot: a script of iPXE, over HTTP. It has the secret of the
// disk, so it goes only to the address that the kernel has seen the device's MAC address at.
package boot

import (
	"bufio"
	"context"
	_ "embed" // the unit
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/room"
	"dalmatiner/ducks/internal/target"
)

// Room has the devices: a *room.Room.
type Room interface {
	Find(ctx context.Context, mac string, at netip.Addr) (room.Device, error)
	Boot(ctx context.Context, name string) (room.Boot, target.Target, error)
}

// Options say where disks are, and who asks.
type Options struct {
	Room   Room
	Portal netip.AddrPort // of the targets, as devices reach it
	// Neighbour returns the MAC address that a machine of the local network has; "" if it is not
	// known. Neighbour of this package if nil.
	Neighbour func(netip.Addr) (string, error)
	// Menu returns the menu of a group, nil if it has none. It may be nil: then no group has one.
	Menu func(group string) (*room.Menu, error)
	// Timeouts returns how long the device of a MAC address waits; nil: as long as its image says.
	Timeouts func(mac string) (room.Timeouts, error)
	// Heard returns how long ago a machine has said something to its disk, and whether it is connected
	// to one; nil: none is.
	Heard func(at netip.Addr) (ago time.Duration, connected bool, err error)
	// Begins is told which device gets its script, and where it is, before it has it; nil: nobody is.
	Begins func(d *room.Device, at netip.Addr) error
	Times  *Times
	Up     func(mac string) error // is told whose system is up; nil: nobody is
	Files  Files                  // that machines may load; nil: none
	Logger *slog.Logger
}

// Files opens boot loaders: a tftp.Files.
type Files interface {
	Open(name string) (*os.File, int64, error)
}

// Path is where a device asks. It puts its MAC address there: ?mac=${net0/mac}
const Path = "/boot/v1/script"

// Loader is where firmware finds boot loaders, by their name, Done where a system says that it is
// up, Waits where it reads how long it has to wait for its disk, and UnitPath where an image gets
// the unit that does both.
const (
	Loader   = "/boot/v1/file/"
	Done     = "/boot/v1/up"
	Waits    = "/boot/v1/timeouts"
	UnitPath = "/boot/v1/unit"
)

//go:embed up.service
var unit string

// Unit returns the unit of systemd for images whose devices find ducks at a URL, as
// http://10.77.0.1:8092.
func Unit(url string) string { return strings.ReplaceAll(unit, "SERVER", url) }

// Handler answers devices.
func Handler(o Options) http.Handler {
	if o.Neighbour == nil {
		o.Neighbour = Neighbour
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if r.Method == http.MethodHead {
			return // a script is made with a disk: who does not read it gets neither
		}
		text := o.script(r)
		if _, err := io.WriteString(w, text); err != nil {
			o.Logger.Warn("a device has gone while it was told what to boot", "address", r.RemoteAddr, "err",
				err)
		}
	})
	mux.HandleFunc("GET "+Loader+"{name}", o.file)
	mux.HandleFunc("POST "+Done, o.up)
	mux.HandleFunc("GET "+Waits, o.waits)
	mux.HandleFunc("GET "+UnitPath, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, Unit(server(r))) // who asked may have gone
	})
	return mux
}

// file gives a boot loader to firmware that loads over HTTP.
func (o *Options) file(w http.ResponseWriter, r *http.Request) {
	if o.Files == nil {
		http.NotFound(w, r)
		return
	}
	f, size, err := o.Files.Open(r.PathValue("name"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	if mac := o.sender(r); mac != "" && r.Method == http.MethodGet {
		o.Times.Note(mac, Fetched)
	}
	w.Header().Set("Content-Type", "application/efi")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	_, _ = io.Copy(w, f) // firmware that has gone asks again
}

// up notes that the system of a device is up. The device is the one whose MAC address asks.
func (o *Options) up(w http.ResponseWriter, r *http.Request) {
	mac := o.sender(r)
	if mac == "" {
		http.Error(w, "your address is not that of a machine of the local network", http.StatusForbidden)
		return
	}
	o.Times.Note(mac, Up)
	if o.Up != nil {
		if err := o.Up(mac); err != nil {
			o.Logger.Warn("it is not noted that a system is up", "mac", mac, "err", err)
			http.Error(w, "it could not be noted: say it again", http.StatusServiceUnavailable)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// waits tells a system how long it has to wait for its disk: lines of a name and seconds, none of
// what its image decides.
func (o *Options) waits(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	mac := o.sender(r)
	if mac == "" || o.Timeouts == nil {
		return
	}
	t, err := o.Timeouts(mac)
	if err != nil {
		o.Logger.Warn("a system is not told how long it waits for its disk", "mac", mac, "err", err)
		http.Error(w, "it is not known: ask again", http.StatusServiceUnavailable)
		return
	}
	for _, of := range []struct {
		name    string
		seconds int
	}{{"recovery", t.Recovery}, {"command", t.Command}} {
		if of.seconds > 0 {
			fmt.Fprintln(w, of.name, of.seconds)
		}
	}
}

// sender returns the MAC address of the machine that asks, "" if it is not known.
func (o *Options) sender(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	mac, err := o.Neighbour(from.Addr().Unmap())
	if err != nil {
		o.Logger.Warn("the table of neighbours cannot be read", "err", err)
	}
	return mac
}

// script returns what a device boots. A device shows errors to whoever stands before it, so they
// are scripts, too.
func (o *Options) script(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return message("this server does not know your address", here(r))
	}
	at, mac, again := from.Addr().Unmap(), r.URL.Query().Get("mac"), here(r)
	d, err := o.Room.Find(r.Context(), mac, at)
	switch {
	case errors.Is(err, state.ErrUnknown):
		o.Logger.Info("an unknown machine wants to boot", "mac", mac, "address", at)
		return waiting(mac, again)
	case err != nil:
		o.Logger.Warn("a device cannot boot", "mac", mac, "address", at, "err", err)
		return message("this server cannot serve you now: see its log", again)
	}
	if seen, err := o.Neighbour(at); err != nil || seen != d.MAC {
		o.Logger.Warn("an address asks for the secret of a device that is not there", "device", d.Name,
			"address", at, "mac", seen, "err", err)
		return message("your address is not that of "+d.Name, again)
	}
	if o.inUse(&d, at) {
		o.Logger.Warn("a device that uses its disk asks what to boot: it keeps that disk", "device",
			d.Name, "address", at)
		return message(d.Name+" is in use, and keeps its disk", again)
	}
	b, t, err := o.Room.Boot(r.Context(), d.Name)
	if err != nil {
		o.Logger.Error("a device cannot boot", "device", d.Name, "err", err)
		return message("the disk of "+d.Name+" is not ready: see the log of the server", again)
	}
	var menu *room.Menu
	if o.Menu != nil {
		if menu, err = o.Menu(b.Group); err != nil {
			o.Logger.Error("a device boots without its menu", "device", d.Name, "err", err)
		}
	}
	if o.Begins != nil {
		if err := o.Begins(&d, at); err != nil {
			o.Logger.Warn("a device boots without its part of the line", "device", d.Name, "err", err)
		}
	}
	o.Times.Note(d.MAC, Scripted)
	o.Logger.Info("a device boots", "device", d.Name, "group", b.Group, "version", b.Version, "fresh",
		b.Fresh)
	return script(o.Portal, t, menu, again)
}

// silence is for how long a device whose disk is taken from it has said nothing to that. open-iscsi
// asks each five seconds whether the disk is there, and a device that begins anew says nothing
// while its firmware starts.
const silence = 6 * time.Second

// inUse reports whether a device uses its disk: then not its firmware asks for the script but
// somebody who is logged in, and the disk of a running system is not to be replaced. Where it is
// not known the device boots.
func (o *Options) inUse(d *room.Device, at netip.Addr) bool {
	if o.Heard == nil || o.Times.begun(d.MAC) {
		return false
	}
	ago, connected, err := o.Heard(at)
	if err != nil {
		o.Logger.Warn("it is not known whether a device uses its disk", "device", d.Name, "err", err)
		return false
	}
	return connected && ago < silence
}

// here returns where a device asks again: at the address at which it has reached this server. What
// comes behind a disk that does not boot knows no place to begin a path at.
func here(r *http.Request) string { return server(r) + Path + "?mac=${net0/mac}" }

// server returns the URL of this server at the address at which it was reached.
func server(r *http.Request) string {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return "http://" + a.String()
	}
	return ""
}

// host returns an address as part of a URI.
func host(a netip.Addr) string {
	if a.Is6() {
		return "[" + a.String() + "]"
	}
	return a.String()
}

// waiting lets an unknown machine ask again until somebody has added it.
func waiting(mac, again string) string {
	return fmt.Sprintf(`#!ipxe
echo This machine is not known yet: %s
echo It boots when somebody has added it. Asking again in 10 seconds.
sleep 10
chain --replace --autofree %s
`, clean(mac), again)
}

// message shows a text, and tries again.
func message(text, again string) string {
	return fmt.Sprintf(`#!ipxe
echo %s
sleep 10
chain --replace --autofree %s
`, clean(text), again)
}

// clean keeps a text from being more than a text for iPXE.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == ':' || r == '.' || r == '-' || r == ',' || r >= '0' && r <= '9' || r >= 'a' &&
			r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '?'
	}, text)
}

// Neighbour returns the MAC address that the kernel has for a machine of the local network, "" for
// none.
func Neighbour(of netip.Addr) (string, error) {
	f, err := os.Open("/proc/thread-self/net/arp") // of the namespace of this thread
	if err != nil {
		return "", err
	}
	defer f.Close()
	return neighbour(f, of)
}

// neighbour reads the table of neighbours: a title, then address, type, flags, MAC address, mask
// and interface. Source: proc_pid_net(5). An entry that somebody has made by hand has more flags
// than that of a known address.
func neighbour(table io.Reader, of netip.Addr) (string, error) {
	const complete = 0x2 // ATF_COM of include/uapi/linux/if_arp.h
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || f[0] != of.String() {
			continue
		}
		if flags, err := strconv.ParseUint(f[2], 0, 32); err != nil || flags&complete == 0 {
			continue
		}
		mac, err := net.ParseMAC(f[3])
		if err != nil {
			return "", fmt.Errorf("the table of neighbours has %q for %s", f[3], of)
		}
		return mac.String(), nil
	}
	return "", lines.Err()
}

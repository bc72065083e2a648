package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"dalmatiner/ducks/internal/agent"
	"dalmatiner/ducks/internal/dhcp"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/traffic"
)

type serveCommand struct {
	DataDir     string  `name:"data-dir" required:"" help:"Where the state is, with the first token." placeholder:"DIR"`
	Pool        string  `required:"" help:"btrfs:DIR, or reflink:DIR on xfs: a directory for images; zfs:DATASET." placeholder:"POOL"`
	Reserve     Reserve `default:"5%" help:"What of the pool is kept free for what running devices write: a part, as 5%, or a size, as 40G. Nothing else takes it." placeholder:"PART"`
	HTTPAddr    string  `name:"http-addr" default:"127.0.0.1:8091" help:"Where these commands ask: a loopback address, unless there is a certificate." placeholder:"ADDRESS"`
	TLSCert     string  `name:"tls-cert" help:"The certificate of that address, in PEM: then it may be one that other machines reach. It is read again when it changes." placeholder:"FILE"`
	TLSKey      string  `name:"tls-key" help:"The key of the certificate." placeholder:"FILE"`
	OwnCA       bool    `name:"tls-own-ca" help:"Or the certificate is of a CA that ducks makes, for all names and addresses of this machine: ca.crt in the data directory is what --ca of these commands takes."`
	DevicesAddr string  `name:"devices-addr" help:"Where devices ask for their script of iPXE, at /boot/v1/script?mac=…; without it, and without --dhcp, they cannot." placeholder:"ADDRESS"`
	Portal      string  `help:"Where disks are over iSCSI: 127.0.0.1:3260, with --dhcp the address of that interface." placeholder:"IP:PORT"`
	Base        string  `name:"iqn-base" default:"iqn.2026-11.internal.ducks" help:"The beginning of iSCSI names: iqn.YYYY-MM. and a domain of yours, backwards." placeholder:"IQN"`
	Store       string  `name:"ddb" help:"Send figures to a ddb there, each second: what devices read and write, the pool, and boots as events." placeholder:"HOST:PORT"`

	Shape string `help:"Share the line of this interface fairly among devices, and keep them to their limits; refused where somebody else shapes it." placeholder:"INTERFACE"`
	Line  Rate   `help:"The speed of that line, as 1gbit; without it, what the card says." placeholder:"RATE"`

	DHCP      string `name:"dhcp" help:"Give machines on this interface their addresses and boot loaders; refused where another server does." placeholder:"INTERFACE"`
	Proxy     bool   `name:"dhcp-proxy" help:"Another server gives addresses on it: give boot loaders only."`
	Range     string `name:"dhcp-range" help:"The addresses: FIRST-LAST; without it, the upper half of the network of the interface." placeholder:"FIRST-LAST"`
	Router    string `name:"dhcp-router" help:"The router that machines are told." placeholder:"IP"`
	DNS       string `name:"dhcp-dns" help:"The name server that they are told." placeholder:"IP"`
	BootFiles string `name:"boot-files" default:"/usr/lib/ipxe" help:"The directory of undionly.kpxe and ipxe.efi." placeholder:"DIR"`
}

// The ports of what devices ask, where only an interface is named.
const (
	devicesPort = 8092
	portalPort  = 3260
)

// addresses completes those of the disks and of what devices ask.
func (c *serveCommand) addresses() (devices string, portal netip.AddrPort, err error) {
	self := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	devices = c.DevicesAddr
	if c.DHCP != "" {
		of, err := dhcp.AddressOf(c.DHCP)
		if err != nil {
			return "", portal, fmt.Errorf("--dhcp: %w", err)
		}
		self = of.Addr()
		devices = cmp.Or(devices, netip.AddrPortFrom(self, devicesPort).String())
	}
	if c.Portal == "" {
		return devices, netip.AddrPortFrom(self, portalPort), nil
	}
	if portal, err = netip.ParseAddrPort(c.Portal); err != nil {
		err = fmt.Errorf("--portal: %w", err)
	}
	return devices, portal, err
}

// network reads what machines are told.
func (c *serveCommand) network() (n agent.Network, err error) {
	n = agent.Network{Interface: c.DHCP, Proxy: c.Proxy, Loaders: c.BootFiles}
	if c.DHCP == "" && (c.Proxy || c.Range+c.Router+c.DNS != "") {
		return n, errors.New("--dhcp-proxy, --dhcp-range, --dhcp-router and --dhcp-dns go with --dhcp")
	}
	read := func(flag, text string) (a netip.Addr) {
		if text == "" || err != nil {
			return a
		}
		if a, err = netip.ParseAddr(text); err == nil && !a.Is4() {
			err = errors.New("it is no IPv4 address")
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", flag, err)
		}
		return a
	}
	if c.Range != "" {
		first, last, _ := strings.Cut(c.Range, "-")
		n.First, n.Last = read("--dhcp-range", first), read("--dhcp-range", last)
		if err == nil && !n.Last.IsValid() {
			err = errors.New("--dhcp-range: want FIRST-LAST, as 10.77.0.100-10.77.0.200")
		}
	}
	n.Router, n.DNS = read("--dhcp-router", c.Router), read("--dhcp-dns", c.DNS)
	return n, err
}

// Run runs it until a signal.
func (c *serveCommand) Run(ctx context.Context, out io.Writer) error {
	devices, portal, err := c.addresses()
	if err != nil {
		return err
	}
	network, err := c.network()
	if err != nil {
		return err
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	if c.OwnCA && c.TLSCert != "" {
		return errors.New("--tls-own-ca makes what --tls-cert names: give one of them")
	}
	if c.Shape == "" && c.Line != 0 {
		return errors.New("--line goes with --shape")
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return agent.Run(ctx,
		agent.Options{DataDir: c.DataDir, Pool: c.Pool, Reserve: pool.Reserve(c.Reserve),
			HTTP: c.HTTPAddr, TLS: agent.TLS{
				Cert: c.TLSCert,
				Key:  c.TLSKey,
				Own:  c.OwnCA,
			}, Devices: devices, Portal: portal, Base: c.Base, Network: network, Store: c.Store,
			Shape:  traffic.Options{Interface: c.Shape, Line: int64(c.Line)},
			Logger: slog.New(slog.NewTextHandler(out, nil)),
			Listened: func(people, devices net.Addr) {
				slog.New(slog.NewTextHandler(out, nil)).Info("ducks serves", "api", people, "devices", devices,
					"portal", portal)
			}})
}

type restoreCommand struct {
	DataDir string  `name:"data-dir" required:"" help:"Where the state is to be: there is none yet." placeholder:"DIR"`
	Pool    string  `required:"" help:"The pool whose backup it is made of, that nobody serves." placeholder:"POOL"`
	Reserve Reserve `default:"5%" help:"What of the pool is kept free, as that of serve: it counts where the data directory is in the pool." placeholder:"PART"`
	JSON    bool    `name:"json" help:"Print the outcome as JSON."`
}

func (c *restoreCommand) Run(out io.Writer) error {
	err := agent.Restore(c.DataDir, c.Pool, pool.Reserve(c.Reserve))
	if err == nil && c.JSON {
		err = json.NewEncoder(out).Encode(map[string]string{"data_dir": c.DataDir, "pool": c.Pool})
	}
	return err
}

// Bytes is a number of bytes, as 40G.
type Bytes int64

// units are those of sizes: of 1,024 each.
const units = "KMGT"

// UnmarshalText reads it.
func (b *Bytes) UnmarshalText(text []byte) error {
	number, factor := string(text), 1.0
	if n := len(number); n > 0 {
		if i := strings.IndexByte(units, number[n-1]); i >= 0 {
			number, factor = number[:n-1], math.Pow(1024, float64(i+1))
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v > 0 && v*factor <= 1<<60) { // not a number is neither
		return fmt.Errorf("%q is no size: want a number with K, M, G or T, as 40G", text)
	}
	*b = Bytes(v * factor)
	return nil
}

// Reserve is what of a pool is kept free: a part, as 5%, or a size, as 40G.
type Reserve pool.Reserve

// The bounds of a reserve. With none, one import could stop the writes of all devices.
const (
	leastPercent = 1
	mostPercent  = 50
	leastReserve = 64 << 20
)

// UnmarshalText reads it.
func (r *Reserve) UnmarshalText(text []byte) error {
	if number, is := strings.CutSuffix(string(text), "%"); is {
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || !(v >= leastPercent && v <= mostPercent) { // not a number is neither
			return fmt.Errorf("%q: a reserve is %d%% to %d%% of the pool", text, leastPercent, mostPercent)
		}
		*r = Reserve{Percent: v}
		return nil
	}
	var size Bytes
	if err := size.UnmarshalText(text); err != nil || size < leastReserve {
		return fmt.Errorf(
			"%q: a reserve is a part of the pool, as 5%%, or a size of at least %dM, as 40G", text,
			leastReserve>>20)
	}
	*r = Reserve{Bytes: int64(size)}
	return nil
}

// Rate is a number of bits a second, as 200mbit.
type Rate int64

// rates are the units of speeds: of 1,000 each.
var rates = []struct {
	name string
	of   float64
}{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}}

// UnmarshalText reads it.
func (r *Rate) UnmarshalText(text []byte) error {
	if string(text) == "0" {
		*r = 0
		return nil
	}
	for _, u := range rates {
		number, is := strings.CutSuffix(string(text), u.name)
		if v, err := strconv.ParseFloat(number, 64); is && err == nil && v > 0 && v*u.of <= 1e15 {
			*r = Rate(v * u.of)
			return nil
		}
	}
	return fmt.Errorf("%q is no speed: want a number with kbit, mbit or gbit, as 200mbit", text)
}

// rateText returns a number of bits a second as Rate reads it, and "-" for 0.
func rateText(n int64) string {
	for _, u := range rates {
		if v := float64(n) / u.of; v >= 1 {
			return strconv.FormatFloat(v, 'f', -1, 64) + u.name
		}
	}
	return "-"
}

// bytesText returns a number of bytes as people read it.
func bytesText(n int64) string {
	v, unit := float64(n), ""
	for _, u := range units {
		if v < 1024 {
			break
		}
		v, unit = v/1024, string(u)
	}
	if unit == "" {
		return strconv.FormatInt(n, 10)
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + unit
}

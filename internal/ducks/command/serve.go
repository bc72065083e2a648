package command

import (
	"context"
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

	"dalmatiner/internal/ducks/agent"
)

// Serve is a command.
type Serve struct {
	DataDir     string `name:"data-dir" required:"" help:"Where the state is, with the first token." placeholder:"DIR"`
	Pool        string `required:"" help:"btrfs:DIR, or reflink:DIR on xfs: a directory for images." placeholder:"POOL"`
	HTTPAddr    string `name:"http-addr" default:"127.0.0.1:8091" help:"Where these commands ask: a loopback address." placeholder:"ADDRESS"`
	DevicesAddr string `name:"devices-addr" help:"Where devices ask for their script of iPXE, at /boot/v1/script?mac=…; without it they cannot." placeholder:"ADDRESS"`
	Portal      string `default:"127.0.0.1:3260" help:"Where disks are over iSCSI." placeholder:"IP:PORT"`
	Base        string `name:"iqn-base" default:"iqn.2026-11.internal.ducks" help:"The beginning of iSCSI names: iqn.YYYY-MM. and a domain of yours, backwards." placeholder:"IQN"`
}

// Run runs it until a signal.
func (c *Serve) Run(ctx context.Context, out io.Writer) error {
	portal, err := netip.ParseAddrPort(c.Portal)
	if err != nil {
		return fmt.Errorf("--portal: %w", err)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return agent.Run(ctx, agent.Options{DataDir: c.DataDir, Pool: c.Pool, HTTP: c.HTTPAddr, Devices: c.DevicesAddr, Portal: portal, Base: c.Base,
		Logger: slog.New(slog.NewTextHandler(out, nil)),
		Listened: func(people, devices net.Addr) {
			slog.New(slog.NewTextHandler(out, nil)).Info("ducks serves", "api", people, "devices", devices, "portal", portal)
		}})
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

// Package noroute tells machines whose iPXE looks for a router of IPv6 that there is none here.
// iPXE asks for addresses of both kinds at once and goes on when it has both answers: it asks six
// times and waits 16 s in all before it believes that nobody answers. A router of lifetime 0 is
// none. With neither addresses nor a hint that DHCPv6 has some, it ends the wait at once, and is no
// router to anybody else. Package noroute is the only one that imports mdlayher/ndp. Sources: RFC
// 4861 6.2.3 and 6.3.4; iPXE's net/ipv6.c.
package noroute

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/mdlayher/ndp"
)

// Options say who is told.
type Options struct {
	Interface string
	// whether a machine is in iPXE's hands, and is yet to ask for its script
	Waits  func(mac string) bool
	Logger *slog.Logger
}

// again is how long it takes until an interface is looked at once more that has no address of IPv6:
// a bridge gets one with its first machine.
const again = time.Second

// allRouters is the group that who looks for a router asks. Source: RFC 4291 2.7.1.
var allRouters = netip.MustParseAddr("ff02::2")

// Run answers until the context ends. An interface without IPv6 is no error: machines wait there
// then.
func Run(ctx context.Context, o Options) {
	tick := time.NewTicker(again)
	defer tick.Stop()
	for said := false; ctx.Err() == nil; {
		if err := serve(ctx, o); ctx.Err() == nil && !said {
			o.Logger.Info("machines that look for a router of IPv6 are not answered yet: iPXE waits 16 s "+
				"for one", "interface", o.Interface, "err", err)
			said = true
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// serve answers until the context or the address of the interface ends.
func serve(ctx context.Context, o Options) error {
	ifi, err := net.InterfaceByName(o.Interface)
	if err != nil {
		return err
	}
	conn, _, err := ndp.Listen(ifi, ndp.LinkLocal)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // ends the read below
	defer conn.Close()
	if err := conn.JoinGroup(allRouters); err != nil {
		return err
	}
	for {
		m, _, from, err := conn.ReadFrom()
		if errors.Is(err, io.ErrUnexpectedEOF) {
			continue // a message that is none
		} else if err != nil {
			return err
		}
		// Nobody of another network has such an address.
		if mac, asks := solicitor(m); asks && from.IsLinkLocalUnicast() && o.Waits(mac) {
			if err := conn.WriteTo(&ndp.RouterAdvertisement{}, nil, from); err != nil {
				o.Logger.Debug("a machine that looks for a router of IPv6 was not answered", "mac", mac, "err",
					err)
			}
		}
	}
}

// solicitor returns who looks for a router. One that has no address yet does not say so, and cannot
// be answered.
func solicitor(m ndp.Message) (mac string, asks bool) {
	s, is := m.(*ndp.RouterSolicitation)
	if !is {
		return "", false
	}
	for _, o := range s.Options {
		if a, is := o.(*ndp.LinkLayerAddress); is && a.Direction == ndp.Source {
			return a.Addr.String(), true
		}
	}
	return "", false
}

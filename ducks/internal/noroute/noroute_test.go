package noroute

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/ndp"

	"dalmatiner/ducks/internal/duckstest"
	"dalmatiner/ducks/internal/emulate"
)

// A machine that boots and looks for a router is told at once that there is none. A machine that
// does not boot is told nothing.
func TestThereIsNoRouter(t *testing.T) {
	duckstest.Unchanged(t)
	if !duckstest.Alone(t, "ip") {
		return
	}
	duckstest.Run(t, "ip", "link", "add", "room", "address", "02:00:00:00:00:01", "type", "bridge")
	duckstest.Run(t, "ip", "link", "set", "room", "up")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The bridge has no address before its first machine comes.
		Run(ctx, Options{Interface: "room", Waits: func(mac string) bool {
			return mac == "02:00:00:00:00:02"
		}, Logger: slog.New(slog.DiscardHandler)})
	}()
	boots, runs := asker(t, "02:00:00:00:00:02"), asker(t, "02:00:00:00:00:03")
	var told *ndp.RouterAdvertisement
	duckstest.Until(t, "it is told", func() bool {
		told = boots.ask(t)
		return told != nil
	})
	if told.RouterLifetime != 0 || told.ManagedConfiguration || told.OtherConfiguration ||
		len(told.Options) != 0 {
		t.Errorf("it is told %+v", told)
	}
	if told := runs.ask(t); told != nil {
		t.Errorf("who does not boot is told %+v", told)
	}
	stop()
	<-done
}

// soliciting is a machine that looks for a router.
type soliciting struct {
	conn *ndp.Conn
	mac  net.HardwareAddr
}

func asker(t *testing.T, address string) *soliciting {
	t.Helper()
	mac, err := net.ParseMAC(address)
	if err != nil {
		t.Fatal(err)
	}
	m, err := emulate.Plug("room", mac)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Unplug(); err != nil {
			t.Error(err)
		}
	})
	s := &soliciting{mac: mac}
	duckstest.Until(t, "its card has an address", func() bool {
		return m.Do(func() error {
			card, err := net.InterfaceByName("eth0")
			if err == nil {
				s.conn, _, err = ndp.Listen(card, ndp.LinkLocal)
			}
			return err
		}) == nil
	})
	t.Cleanup(func() { _ = s.conn.Close() })
	return s
}

// ask asks once, and returns what comes within a moment, nil for nothing.
func (s *soliciting) ask(t *testing.T) *ndp.RouterAdvertisement {
	t.Helper()
	m := &ndp.RouterSolicitation{
		Options: []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: s.mac}}}
	if err := s.conn.WriteTo(m, nil, netip.MustParseAddr("ff02::2")); err != nil {
		t.Fatal(err)
	}
	if err := s.conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for {
		m, _, _, err := s.conn.ReadFrom()
		if err != nil {
			if !os.IsTimeout(err) && !strings.Contains(err.Error(), "timeout") {
				t.Fatal(err)
			}
			return nil
		}
		if told, is := m.(*ndp.RouterAdvertisement); is {
			return told
		}
	}
}

package emulate

import (
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/dhcp"
	"dalmatiner/ducks/internal/duckstest"
)

// A second server of addresses on a network does not start, unless it leaves addresses to the
// first.
func TestAnotherServer(t *testing.T) {
	if !duckstest.Alone(t) {
		return
	}
	duckstest.Run(t, "ip", "link", "add", "br0", "address", "02:00:00:00:00:01", "type", "bridge")
	duckstest.Run(t, "ip", "addr", "add", "192.0.2.1/24", "dev", "br0")
	duckstest.Run(t, "ip", "link", "set", "br0", "up")
	first, err := Plug("br0", net.HardwareAddr{2, 0, 0, 0, 0, 9})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Unplug()
	if err := first.address(netip.MustParsePrefix("192.0.2.9/24")); err != nil {
		t.Fatal(err)
	}
	file, err := state.Open(filepath.Join(t.TempDir(), "state"), []state.Migration{dhcp.Migration})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	o := dhcp.Options{Interface: card, State: file, Known: func(string) bool {
		return false
	}, Seen: func(string, bool) {}, Lacks: func(string, string) {}, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler)}
	var other *dhcp.Server
	if err := first.Do(func() (err error) {
		other, err = dhcp.Start(t.Context(), o)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	o.Interface = "br0"
	if s, err := dhcp.Start(t.Context(), o); err == nil ||
		!strings.Contains(err.Error(), "192.0.2.9 gives addresses on br0 already") {
		t.Errorf("%v, %v", s, err)
	}
	o.Proxy = true
	proxy, err := dhcp.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := proxy.Close(); err != nil {
		t.Error(err)
	}
	for name, what := range map[string]string{"none": "none", "lo": "no bridge"} {
		if m, err := Plug(name, net.HardwareAddr{2, 0, 0, 0, 0, 8}); err == nil ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}

func TestMACs(t *testing.T) {
	list := MACs(net.HardwareAddr{2, 0, 0, 0, 0xff, 0xfe}, 3)
	if got := list[2].String(); len(list) != 3 || list[0].String() != "02:00:00:00:ff:fe" ||
		got != "02:00:00:01:00:00" {
		t.Errorf("%v", list)
	}
}

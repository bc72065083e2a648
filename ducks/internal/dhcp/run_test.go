package dhcp

import (
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4/server4"

	"dalmatiner/ducks/internal/duckstest"
)

// startOn starts a server on an interface. It returns it with what it logs at the start, or nil
// with why it does not start.
func startOn(t *testing.T, name string, proxy bool) (*Server, string) {
	t.Helper()
	file := openFile(t, filepath.Join(t.TempDir(), "state"))
	t.Cleanup(func() { _ = file.Close() })
	all := func(string) bool { return true }
	var said strings.Builder
	d, err := Start(t.Context(), Options{Interface: name, Proxy: proxy, State: file, Loaders: Debian,
		Has: all, Known: all, Seen: func(string, bool) {}, Now: time.Now,
		Logger: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		return nil, err.Error()
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, said.String()
}

// Where another server gives addresses, at the other end of a cable or as a program of this
// machine, a server does not start, unless it is a proxy.
func TestAnotherServerIsLeftAlone(t *testing.T) {
	duckstest.Unchanged(t)
	if !duckstest.Alone(t, "ip") {
		return
	}
	duckstest.Run(t, "ip", "link", "add", "room", "type", "veth", "peer", "name", "far")
	for i, name := range []string{"room", "far"} {
		duckstest.Run(t, "ip", "addr", "add", fmt.Sprintf("10.77.%d.1/24", i), "dev", name)
		duckstest.Run(t, "ip", "link", "set", name, "up")
	}
	far, said := startOn(t, "far", false)
	if far == nil || said != "" {
		t.Fatalf("the first says %q", said)
	}
	if d, said := startOn(t, "room", false); d != nil || !strings.Contains(said,
		"10.77.1.1 gives addresses on room already: let it, and start with --dhcp-proxy") {
		t.Errorf("beside another it says %q", said)
	}
	if d, said := startOn(t, "room", true); d == nil || said != "" {
		t.Errorf("as a proxy it says %q", said)
	} else if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	own, err := server4.NewIPv4UDPConn("room", &net.UDPAddr{Port: serverPort})
	if err != nil {
		t.Fatal(err)
	}
	if d, said := startOn(t, "room", false); d != nil || !strings.Contains(said,
		"a program of this machine gives addresses on room already, at UDP port 67") {
		t.Errorf("beside a program of this machine it says %q", said)
	}
	if d, said := startOn(t, "far", false); d == nil || said != "" {
		t.Errorf("beside one on another interface it says %q", said)
	} else if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := own.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := server4.NewIPv4UDPConn("", &net.UDPAddr{Port: serverPort})
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	if d, said := startOn(t, "room", false); d == nil || !strings.Contains(said, "on all interfaces") {
		t.Errorf("beside one on all interfaces it says %q", said)
	}
}

package boot

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/ducks/room"
	"dalmatiner/internal/ducks/target"
	"dalmatiner/internal/state"
)

// oneRoom has one device.
type oneRoom struct {
	boots int
	fails error
}

const mac = "02:00:00:00:00:01"

func (r *oneRoom) Find(_ context.Context, of string, _ netip.Addr) (room.Device, error) {
	if of != mac {
		return room.Device{}, state.ErrUnknown
	}
	return room.Device{Name: "pc1", MAC: mac}, nil
}

func (r *oneRoom) Boot(context.Context, string) (room.Boot, target.Target, error) {
	r.boots++
	return room.Boot{}, target.Target{IQN: "iqn.2026-11.test:pc1", Initiators: []string{"iqn.2026-11.test.initiator:pc1"}, User: "pc1", Secret: "SECRETSECRET"}, r.fails
}

func ask(t *testing.T, r *oneRoom, mac, from string) string {
	t.Helper()
	seen := func(a netip.Addr) (string, error) {
		switch a.String() {
		case "192.0.2.7":
			return "02:00:00:00:00:01", nil
		case "192.0.2.8":
			return "02:00:00:00:00:08", nil
		}
		return "", nil
	}
	h := Handler(Options{Room: r, Portal: netip.MustParseAddrPort("192.0.2.1:3260"), Neighbour: seen, Times: NewTimes(time.Now, func(string, Stage, time.Duration) {}), Logger: slog.New(slog.DiscardHandler)})
	request := httptest.NewRequest("GET", Path+"?mac="+url.QueryEscape(mac), nil)
	request.RemoteAddr = from
	request = request.WithContext(context.WithValue(request.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8092}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	if w.Code != 200 || w.Header().Get("Cache-Control") != "no-store" || !strings.HasPrefix(w.Body.String(), "#!ipxe\n") {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
	return w.Body.String()
}

func TestADeviceIsToldItsDisk(t *testing.T) {
	const want = `#!ipxe
set initiator-iqn iqn.2026-11.test.initiator:pc1
set username pc1
set password SECRETSECRET
set keep-san 1
sanboot --drive 0x80 iscsi:192.0.2.1::3260:1:iqn.2026-11.test:pc1 || goto failed
:failed
echo The disk cannot be booted. Trying again in 10 seconds.
sleep 10
chain --replace --autofree http://192.0.2.1:8092/boot/v1/script?mac=${net0/mac}
`
	for _, from := range []string{"192.0.2.7:1000", "[::ffff:192.0.2.7]:1000"} {
		if got := ask(t, new(oneRoom), mac, from); got != want {
			t.Errorf("%s\nnot\n%s", got, want)
		}
	}
}

// Nobody else gets the secret, and no image is touched for who only asks.
func TestTheSecretGoesToTheDeviceOnly(t *testing.T) {
	r := new(oneRoom)
	for what, c := range map[string][3]string{
		"another machine":  {mac, "192.0.2.8:1000", "not that of pc1"},
		"no neighbour":     {mac, "198.51.100.1:1000", "not that of pc1"},
		"an unknown one":   {"02:00:00:00:00:09", "192.0.2.7:1000", "not known yet: 02:00:00:00:00:09"},
		"one that injects": {"x\nset password y ${z} && poweroff", "192.0.2.7:1000", "not known yet: x?set password y ??z? ?? poweroff"},
		"no address":       {mac, "nowhere", "does not know your address"},
	} {
		if got := ask(t, r, c[0], c[1]); strings.Contains(got, "SECRET") || !strings.Contains(got, c[2]) || strings.Count(got, "\n") > 5 {
			t.Errorf("%s gets %q", what, got)
		}
	}
	if r.boots != 0 {
		t.Errorf("%d disks were made ready", r.boots)
	}
	r.fails = errors.New("the pool is full: /srv/secret/path")
	if got := ask(t, r, mac, "192.0.2.7:1"); strings.Contains(got, "SECRET") || strings.Contains(got, "path") || !strings.Contains(got, "is not ready") {
		t.Errorf("a failure is told as %q", got)
	}
}

func TestNeighbours(t *testing.T) {
	const table = `IP address       HW type     Flags       HW address            Mask     Device
192.0.2.7        0x1         0x2         02:00:00:00:00:0A     *        eth0
192.0.2.8        0x1         0x0         00:00:00:00:00:00     *        eth0
192.0.2.9        0x1         0x2         what                  *        eth0
192.0.2.10       0x1         0x6         02:00:00:00:00:0b     *        eth0
192.0.2.11       0x1         0x1e        02:00:00:00:00:0c     *        eth0
192.0.2.12       0x1         0x4         02:00:00:00:00:0d     *        eth0
192.0.2.13       0x1         0xc         00:00:00:00:00:00     *        eth0
192.0.2.14       0x1         0x22        02:00:00:00:00:0e     *        eth0
192.0.2.15       0x1         complete    02:00:00:00:00:0f     *        eth0
192.0.2.16       0x1         0x0         00:00:00:00:00:00     *        eth0
192.0.2.16       0x1         0x6         02:00:00:00:00:10     *        eth1
short line
`
	for of, want := range map[string]string{"192.0.2.7": "02:00:00:00:00:0a", "192.0.2.8": "", "192.0.2.70": "", "2001:db8::1": "",
		"192.0.2.10": "02:00:00:00:00:0b", // permanent
		"192.0.2.11": "02:00:00:00:00:0c", // permanent, published, with trailers
		"192.0.2.12": "",                  // permanent and not complete
		"192.0.2.13": "",                  // published only
		"192.0.2.14": "02:00:00:00:00:0e", "192.0.2.15": "", "192.0.2.16": "02:00:00:00:00:10"} {
		if got, err := neighbour(strings.NewReader(table), netip.MustParseAddr(of)); err != nil || got != want {
			t.Errorf("%s is %q, %v", of, got, err)
		}
	}
	if _, err := neighbour(strings.NewReader(table), netip.MustParseAddr("192.0.2.9")); err == nil {
		t.Error("what is no address is one")
	}
	if got, err := Neighbour(netip.MustParseAddr("198.51.100.1")); err != nil || got != "" {
		t.Errorf("on this machine it is %q, %v", got, err)
	}
}

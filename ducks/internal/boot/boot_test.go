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
	"os"
	"strings"
	"testing"
	"time"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/room"
	"dalmatiner/ducks/internal/target"
)

// oneRoom has one device.
type oneRoom struct {
	boots  int
	begins int
	finds  int
	fails  error
}

const mac = "02:00:00:00:00:01"

func (r *oneRoom) Find(_ context.Context, of string, _ netip.Addr) (room.Device, error) {
	r.finds++
	if of != mac {
		return room.Device{}, state.ErrUnknown
	}
	return room.Device{Name: "pc1", MAC: mac}, nil
}

func (r *oneRoom) Boot(context.Context, string) (room.Boot, target.Target, error) {
	r.boots++
	return room.Boot{},
		target.Target{IQN: "iqn.2026-11.test:pc1", Initiators: []string{"iqn.2026-11.test.initiator:pc1"},
			User: "pc1", Secret: "SECRETSECRET"}, r.fails
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
	h := Handler(Options{Room: r, Portal: netip.MustParseAddrPort("192.0.2.1:3260"), Neighbour: seen,
		Times:  NewTimes(time.Now, func(string, Stage, time.Duration) {}),
		Logger: slog.New(slog.DiscardHandler)})
	request := httptest.NewRequest("GET", Path+"?mac="+url.QueryEscape(mac), nil)
	request.RemoteAddr = from
	request = request.WithContext(context.WithValue(request.Context(), http.LocalAddrContextKey,
		&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8092}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	if w.Code != 200 || w.Header().Get("Cache-Control") != "no-store" ||
		!strings.HasPrefix(w.Body.String(), "#!ipxe\n") {
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

// aRoom returns what answers one device, by options that may change.
func aRoom(r *oneRoom, now func() time.Time, log *slog.Logger) (http.Handler, *Options) {
	o := &Options{Room: r, Portal: netip.MustParseAddrPort("192.0.2.1:3260"), Logger: log,
		Times:     NewTimes(now, func(string, Stage, time.Duration) {}),
		Neighbour: func(netip.Addr) (string, error) { return mac, nil }}
	o.Begins = func(*room.Device, netip.Addr) error {
		r.begins++
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Handler(*o).ServeHTTP(w, r)
	}), o
}

// askFor asks for something as a machine.
func askFor(h http.Handler, method, path string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, nil)
	request.RemoteAddr = "192.0.2.7:1000"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	return w
}

// Who only asks whether there is a script changes nothing: no disk, no boot, no machine that waits
// to be added.
func TestHEADHasNoEffect(t *testing.T) {
	r := new(oneRoom)
	h, o := aRoom(r, time.Now, slog.New(slog.DiscardHandler))
	o.Files = noFiles{}
	for _, path := range []string{Path + "?mac=" + mac, Path + "?mac=02:00:00:00:00:09", Path, Loader +
		"ipxe.efi", Waits, UnitPath} {
		w := askFor(h, http.MethodHead, path)
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "#!ipxe") ||
			w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %d %v %q", path, w.Code, w.Header(), w.Body)
		}
		if *r != (oneRoom{}) || len(o.Times.Of(mac)) > 0 {
			t.Errorf("%s: %+v, boots %v", path, r, o.Times.Of(mac))
		}
	}
	if w := askFor(h, http.MethodPost, Path+"?mac="+mac); w.Code != http.StatusMethodNotAllowed ||
		*r != (oneRoom{}) {
		t.Errorf("POST: %d, %+v", w.Code, r)
	}
	if w := askFor(h, http.MethodGet, Path+"?mac="+mac); !strings.Contains(w.Body.String(),
		"sanboot") || r.boots != 1 || r.begins != 1 || len(o.Times.Of(mac)) != 1 {
		t.Errorf("GET: %s, %+v, boots %v", w.Body, r, o.Times.Of(mac))
	}
}

// noFiles has one, which is empty.
type noFiles struct{}

func (noFiles) Open(string) (*os.File, int64, error) {
	file, err := os.Open(os.DevNull)
	return file, 0, err
}

// A device that uses its disk keeps it, whoever asks for its script there; one that has begun to
// boot gets its disk.
func TestADeviceInUseKeepsItsDisk(t *testing.T) {
	unknown := errors.New("it is not known")
	for what, c := range map[string]struct {
		stages    []Stage       // of its last boots
		ago       time.Duration // since the last of these
		heard     time.Duration
		connected bool
		err       error
		keeps     bool
	}{
		"it is off": {},
		"it was told its disk and did not log in": {stages: []Stage{Loaded, Scripted}},
		"it is in use": {
			stages: []Stage{Loaded, Scripted, LoggedIn, Read, Up}, ago: time.Hour, heard: time.Second,
			connected: true, keeps: true},
		"it is in use, and ducks began anew": {heard: time.Second, connected: true, keeps: true},
		"it is idle, and says that it is there": {stages: []Stage{Loaded, Scripted, Read},
			ago: time.Hour, heard: 5 * time.Second, connected: true, keeps: true},
		"it crashed, and another server's DHCP": {stages: []Stage{Scripted, Read}, ago: time.Hour,
			heard: 9 * time.Second, connected: true},
		"its disk did not boot": {stages: []Stage{Loaded, Scripted, LoggedIn, Read},
			ago: 10 * time.Second, heard: 10 * time.Second, connected: true},
		"it crashed just now": {
			stages: []Stage{Loaded, Scripted, Up, Addressed, Fetched, Loaded}, ago: time.Millisecond,
			heard: time.Second, connected: true},
		"it crashed just now, its firmware is iPXE": {stages: []Stage{Loaded, Scripted, Up, Loaded},
			ago: time.Millisecond, heard: time.Second, connected: true},
		"it is in use, and loads a file": {stages: []Stage{Loaded, Scripted, Up, Fetched},
			ago: time.Millisecond, heard: time.Second, connected: true, keeps: true},
		"it asked for an address long ago": {stages: []Stage{Loaded}, ago: time.Hour,
			heard: time.Second, connected: true, keeps: true},
		"it is not known whether it is in use": {err: unknown},
	} {
		var said strings.Builder
		r, now := new(oneRoom), time.Unix(1e9, 0)
		h, o := aRoom(r, func() time.Time { return now }, slog.New(slog.NewTextHandler(&said, nil)))
		for _, s := range c.stages {
			o.Times.Note(mac, s)
		}
		now = now.Add(c.ago)
		before := len(o.Times.Of(mac))
		o.Heard = func(at netip.Addr) (time.Duration, bool, error) {
			if at.String() != "192.0.2.7" {
				t.Errorf("%s: %s is looked for", what, at)
			}
			return c.heard, c.connected, c.err
		}
		got := askFor(h, http.MethodGet, Path+"?mac="+mac).Body.String()
		if keeps := r.boots == 0; keeps != c.keeps || strings.Contains(got, "SECRET") == c.keeps ||
			r.begins != r.boots {
			t.Errorf("%s: %+v, %s", what, r, got)
		}
		if c.keeps && (!strings.Contains(got, "pc1 is in use") ||
			!strings.Contains(said.String(), "level=WARN") || !strings.Contains(said.String(), "pc1") ||
			len(o.Times.Of(mac)) != before) {
			t.Errorf("%s: it is told %q, the log says %q", what, got, said.String())
		}
		if c.err != nil && !strings.Contains(said.String(), c.err.Error()) {
			t.Errorf("%s: the log says %q", what, said.String())
		}
	}
}

// Nobody else gets the secret, and no image is touched for who only asks.
func TestTheSecretGoesToTheDeviceOnly(t *testing.T) {
	r := new(oneRoom)
	for what, c := range map[string][3]string{
		"another machine": {mac, "192.0.2.8:1000", "not that of pc1"},
		"no neighbour":    {mac, "198.51.100.1:1000", "not that of pc1"},
		"an unknown one":  {"02:00:00:00:00:09", "192.0.2.7:1000", "not known yet: 02:00:00:00:00:09"},
		"one that injects": {"x\nset password y ${z} && poweroff", "192.0.2.7:1000",
			"not known yet: x?set password y ??z? ?? poweroff"},
		"no address": {mac, "nowhere", "does not know your address"},
	} {
		if got := ask(t, r, c[0], c[1]); strings.Contains(got, "SECRET") ||
			!strings.Contains(got, c[2]) || strings.Count(got, "\n") > 5 {
			t.Errorf("%s gets %q", what, got)
		}
	}
	if r.boots != 0 {
		t.Errorf("%d disks were made ready", r.boots)
	}
	r.fails = errors.New("the pool is full: /srv/secret/path")
	if got := ask(t, r, mac, "192.0.2.7:1"); strings.Contains(got, "SECRET") ||
		strings.Contains(got, "path") || !strings.Contains(got, "is not ready") {
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
	for of, want := range map[string]string{"192.0.2.7": "02:00:00:00:00:0a", "192.0.2.8": "",
		"192.0.2.70": "", "2001:db8::1": "",
		"192.0.2.10": "02:00:00:00:00:0b", // permanent
		"192.0.2.11": "02:00:00:00:00:0c", // permanent, published, with trailers
		"192.0.2.12": "",                  // permanent and not complete
		"192.0.2.13": "",                  // published only
		"192.0.2.14": "02:00:00:00:00:0e", "192.0.2.15": "", "192.0.2.16": "02:00:00:00:00:10"} {
		if got, err := neighbour(strings.NewReader(table), netip.MustParseAddr(of)); err != nil ||
			got != want {
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

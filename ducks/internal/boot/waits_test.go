package boot

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/room"
)

// A system is told how long its group waits, and gets the unit that asks.
func TestASystemIsToldHowLongItWaits(t *testing.T) {
	waits := map[string]room.Timeouts{mac: {Recovery: 86400},
		"02:00:00:00:00:02": {Recovery: 5, Command: 90}, "02:00:00:00:00:03": {}}
	h := Handler(Options{Times: NewTimes(time.Now, func(string, Stage, time.Duration) {}),
		Logger: slog.New(slog.DiscardHandler),
		Neighbour: func(a netip.Addr) (string, error) {
			return map[string]string{"192.0.2.1": mac, "192.0.2.2": "02:00:00:00:00:02",
				"192.0.2.3": "02:00:00:00:00:03", "192.0.2.4": "02:00:00:00:00:04"}[a.String()], nil
		},
		Timeouts: func(mac string) (room.Timeouts, error) {
			of, is := waits[mac]
			if !is {
				return of, state.ErrUnknown
			}
			return of, nil
		}})
	ask := func(path, from string) (int, string) {
		r := httptest.NewRequest("GET", path, nil)
		r.RemoteAddr = from + ":4000"
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey,
			&net.TCPAddr{IP: net.IPv4(192, 0, 2, 99), Port: 8092}))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for from, want := range map[string]string{"192.0.2.1": "recovery 86400\n",
		"192.0.2.2": "recovery 5\ncommand 90\n", "192.0.2.3": "", "192.0.2.77": ""} {
		if code, got := ask(Waits, from); code != http.StatusOK || got != want {
			t.Errorf("%s is told %d %q, not %q", from, code, got, want)
		}
	}
	if code, _ := ask(Waits, "192.0.2.4"); code != http.StatusServiceUnavailable {
		t.Errorf("a machine that nobody knows is told %d", code)
	}
	_, unit := ask(UnitPath, "192.0.2.1")
	if unit != Unit("http://192.0.2.99:8092") || strings.Contains(unit, "SERVER") ||
		strings.Count(unit, "http://192.0.2.99:8092/boot/v1/") != 2 {
		t.Errorf("the unit is\n%s", unit)
	}
}

package agent

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/ducks/internal/room"
	"dalmatiner/ducks/internal/sockets"
	"dalmatiner/ducks/internal/target"
	"dalmatiner/ducks/internal/traffic"
)

// oneSession is a tgtd with one session, whose number stays the same, and the device that it is of.
type oneSession struct {
	from  netip.Addr // where it comes from; invalid while it begins or ends
	none  bool       // it has ended
	asked int
}

func (b *oneSession) Devices() ([]room.Device, error) {
	return []room.Device{{Name: "pc1"}}, nil
}

func (b *oneSession) IQN(device string) string { return "iqn:" + device }

func (b *oneSession) Traffic(context.Context) ([]target.Traffic, error) {
	if b.none {
		return nil, nil
	}
	return []target.Traffic{{Login: target.Login{IQN: "iqn:pc1", Session: 1}}}, nil
}

func (b *oneSession) Sessions(context.Context, string) ([]target.Session, error) {
	b.asked++
	return []target.Session{{ID: 1, Address: b.from}}, nil
}

// A session is located once, when it has an address; the one of the same number after the next boot
// is located anew.
func TestSessionsAreLocated(t *testing.T) {
	tgtd := &oneSession{}
	s := &shares{targets: tgtd, at: make(map[target.Login]netip.Addr)}
	first, second := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	for i, c := range []struct {
		from, want netip.Addr
		asked      int
	}{{netip.Addr{}, netip.Addr{}, 1}, {first, first, 2}, {first, first, 2}, {second, second, 3},
		{second, second, 3}, {netip.Addr{}, netip.Addr{}, 4}} {
		tgtd.from = c.from
		sessions, err := tgtd.Traffic(t.Context())
		if err == nil {
			err = s.locate(t.Context(), sessions,
				[]sockets.Socket{{Remote: netip.AddrPortFrom(c.from, 1000)}})
		}
		if got := s.at[sessions[0].Login]; err != nil || got != c.want || tgtd.asked != c.asked {
			t.Errorf("round %d: %v, asked %d times, %v", i, got, tgtd.asked, err)
		}
	}
}

// parts is a shaper that notes what it is given.
type parts struct{ list []traffic.Share }

func (p *parts) Set(list []traffic.Share) error { p.list = list; return nil }
func (p *parts) Add(of traffic.Share) error     { p.list = append(p.list, of); return nil }
func (p *parts) Used() ([]traffic.Used, error)  { return nil, nil }
func (p *parts) Close() error                   { return nil }

// A device has its part of the line from its script on, until it has logged in and ended, or has
// not come.
func TestADeviceThatBootsHasItsPart(t *testing.T) {
	now := time.Unix(0, 0)
	p := &parts{}
	s := &shares{shaper: p, now: func() time.Time { return now }, booting: make(map[string]begins)}
	first, second := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	check := func(what string, want ...traffic.Share) {
		t.Helper()
		slices.SortFunc(p.list, func(a, b traffic.Share) int {
			return strings.Compare(a.Device, b.Device)
		})
		if !slices.Equal(p.list, want) {
			t.Errorf("%s: %+v, not %+v", what, p.list, want)
		}
	}
	set := func() {
		if err := s.set(); err != nil {
			t.Fatal(err)
		}
	}
	one, two := traffic.Share{Device: "pc1", Address: first, Limit: 5},
		traffic.Share{Device: "pc2", Address: second}
	if err := s.begin(&room.Device{Name: "pc1", Limit: 5}, first); err != nil {
		t.Fatal(err)
	}
	check("it has its script", one)
	if !s.due() {
		t.Error("the others are not told")
	}
	set()
	check("the others are told", one)
	s.on = []traffic.Share{one}
	set()
	check("it is logged in", one)
	s.on = nil
	set()
	check("it has ended")
	now = now.Add(time.Hour)
	s.on = []traffic.Share{{Device: "pc3", Address: second}}
	set()
	if err := s.begin(&room.Device{Name: "pc2"}, second); err != nil {
		t.Fatal(err)
	}
	set()
	check("somebody else is there", traffic.Share{Device: "pc3", Address: second})
	s.on = nil
	set()
	check("and is not any more", two)
	if now = now.Add(loginTime); s.due() {
		t.Error("it is late too early")
	}
	if now = now.Add(1); !s.due() {
		t.Error("it is not late")
	}
	set()
	check("it does not come")
}

// A session that comes and goes between two looks at the connections leaves no class.
func TestASessionThatIsNotSeenLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	const title = "  sl  local_address rem_address   st\n"
	// no look shows a connection
	if err := os.WriteFile(filepath.Join(dir, "tcp"), []byte(title), 0o600); err != nil {
		t.Fatal(err)
	}
	p, tgtd := &parts{}, &oneSession{none: true, from: netip.MustParseAddr("10.0.0.1")}
	s := &shares{shaper: p, room: tgtd, targets: tgtd, tables: dir, port: 3260,
		at: make(map[target.Login]netip.Addr), now: time.Now, booting: make(map[string]begins)}
	look := func(want int) {
		t.Helper()
		if err := s.share(t.Context()); err != nil || len(p.list) != want {
			t.Errorf("%d have a part, not %d: %v", len(p.list), want, err)
		}
	}
	look(0)
	if err := s.begin(&room.Device{Name: "pc1"}, tgtd.from); err != nil {
		t.Fatal(err)
	}
	tgtd.none = false // it logs in when the connections were read
	look(1)
	tgtd.none = true
	look(0)
}

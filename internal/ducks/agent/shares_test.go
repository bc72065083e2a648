package agent

import (
	"context"
	"net/netip"
	"testing"

	"dalmatiner/internal/ducks/sockets"
	"dalmatiner/internal/ducks/target"
)

// booting is a tgtd with one session, whose number stays the same.
type booting struct {
	from  netip.Addr // where it comes from; invalid while it begins or ends
	asked int
}

func (b *booting) Traffic(context.Context) ([]target.Traffic, error) {
	return []target.Traffic{{Login: target.Login{IQN: "iqn:pc1", Session: 1}}}, nil
}

func (b *booting) Sessions(context.Context, string) ([]target.Session, error) {
	b.asked++
	return []target.Session{{ID: 1, Address: b.from}}, nil
}

// A session is located once, when it has an address; the one of the same number after the next boot is located anew.
func TestSessionsAreLocated(t *testing.T) {
	tgtd := &booting{}
	s := &shares{targets: tgtd, at: make(map[target.Login]netip.Addr)}
	first, second := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	for i, c := range []struct {
		from, want netip.Addr
		asked      int
	}{{netip.Addr{}, netip.Addr{}, 1}, {first, first, 2}, {first, first, 2}, {second, second, 3}, {second, second, 3}, {netip.Addr{}, netip.Addr{}, 4}} {
		tgtd.from = c.from
		sessions, err := tgtd.Traffic(t.Context())
		if err == nil {
			err = s.locate(t.Context(), sessions, []sockets.Socket{{Remote: netip.AddrPortFrom(c.from, 1000)}})
		}
		if got := s.at[sessions[0].Login]; err != nil || got != c.want || tgtd.asked != c.asked {
			t.Errorf("round %d: %v, asked %d times, %v", i, got, tgtd.asked, err)
		}
	}
}

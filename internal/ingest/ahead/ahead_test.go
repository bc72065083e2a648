package ahead

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/host/loglimit"
)

var start = time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)

// newSenders has a log that takes every line.
func newSenders() (s *Senders, lines func() int) {
	var text bytes.Buffer
	clock := start
	s = New(loglimit.New(slog.New(slog.NewTextHandler(&text, nil)), func() time.Time {
		clock = clock.Add(time.Hour)
		return clock
	}))
	return s, func() int { return strings.Count(text.String(), "clock of a sender is ahead") }
}

// TestOneLineAMinute: the log names a sender a minute after its last line at the earliest, and
// others are not held back by it.
func TestOneLineAMinute(t *testing.T) {
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("::ffff:192.0.2.2")
	s, lines := newSenders()
	for _, c := range []struct {
		addr netip.Addr
		at   time.Duration
		want bool
	}{
		{one, 0, true}, {one, 59 * time.Second, false}, {two, 59 * time.Second, true},
		{one, time.Minute, true}, {two, 2 * time.Minute, true},
		{two, time.Minute, true}, // a clock that was set back
	} {
		before := lines()
		at := start.Add(c.at)
		s.Tell(Found{Listener: "syslog", Addr: c.addr, Count: 2, Sent: at.Add(time.Hour), Arrived: at})
		if got := lines() > before; got != c.want {
			t.Errorf("%s after %s: %t", c.addr, c.at, got)
		}
	}
	list := s.List()
	if len(list) != 2 || list[0].Addr != one || list[0].Count != 6 || list[1].Count != 6 ||
		list[0].Most != time.Hour {
		t.Errorf("%+v", list)
	}
}

// TestSendersAreBounded: the one heard of longest ago makes room.
func TestSendersAreBounded(t *testing.T) {
	s, _ := newSenders()
	for i := range 2 * maxSenders {
		at := start.Add(time.Duration(i) * time.Second)
		addr := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		s.Tell(Found{Listener: "graphite", Addr: addr, Count: 1,
			Sent: at.Add(time.Duration(i) * time.Hour), Arrived: at})
	}
	list := s.List()
	if len(list) != maxSenders || list[0].Most < list[1].Most ||
		list[maxSenders-1].Addr != netip.AddrFrom4([4]byte{10, 0, 1, 0}) {
		t.Errorf("%d: %+v …", len(list), list[:2])
	}
	s = nil
	if s.Tell(Found{Count: 1}); s.List() != nil {
		t.Error("none has some")
	}
}

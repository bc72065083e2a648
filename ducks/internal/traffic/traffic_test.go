package traffic

import (
	"errors"
	"net/netip"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"dalmatiner/ducks/internal/duckstest"
)

// queues returns the queues, classes and filters of an interface, and the interfaces.
func queues(t *testing.T, of string) string {
	t.Helper()
	var all strings.Builder
	for _, args := range [][]string{{"ip", "-o", "link"}, {"tc", "qdisc", "show"},
		{"tc", "class", "show", "dev", of}, {"tc", "filter", "show", "dev", of}} {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		all.Write(out)
	}
	return passed.ReplaceAllString(all.String(), "")
}

// passed is what the kernel has sent by itself, as it does with IPv6.
var passed = regexp.MustCompile(` direct_packets_stat \d+`)

func cable(t *testing.T) {
	t.Helper()
	duckstest.Run(t, "ip", "link", "add", "srv", "type", "veth", "peer", "name", "far")
	duckstest.Run(t, "ip", "link", "set", "srv", "up")
	duckstest.Run(t, "ip", "link", "set", "far", "up")
	duckstest.Until(t, "the cable carries", func() bool {
		return strings.Count(queues(t, "srv"), "state UP") == 2
	})
}

// started shares the line of the cable.
func started(t *testing.T) *Shaper {
	t.Helper()
	s, err := Start(Options{Interface: "srv", Line: 1e9})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func shares(addresses ...string) (list []Share) {
	for i, a := range addresses {
		list = append(list, Share{Device: string(rune('a' + i)), Address: netip.MustParseAddr(a)})
	}
	return list
}

// Classes come and go with devices, and nothing is left behind them.
func TestNothingIsLeftOfClasses(t *testing.T) {
	t.Parallel()
	duckstest.Unchanged(t)
	if !duckstest.Alone(t, "tc") {
		return
	}
	cable(t)
	before := queues(t, "srv")
	s := started(t)
	empty := queues(t, "srv")
	for _, list := range [][]Share{shares("10.0.0.1"), shares("10.0.0.1", "10.0.0.2", "fd00::1"),
		shares("10.0.0.3", "10.0.0.2"), nil} {
		if err := s.Set(list); err != nil {
			t.Fatal(err)
		}
		used, err := s.Used()
		if err != nil || len(used) != len(list) {
			t.Fatalf("%d devices: %+v, %v", len(list), used, err)
		}
		now := queues(t, "srv")
		for _, class := range []string{"class htb dc:1 ", "class htb dc:2 "} {
			if !strings.Contains(now, class) {
				t.Errorf("there is no %sin\n%s", class, now)
			}
		}
		part := "none" // 970 Mbit for these and all else
		switch len(list) {
		case 1:
			part = "rate 485Mbit ceil 970Mbit"
		case 2:
			part = "rate 323333Kbit ceil 970Mbit"
		case 3:
			part = "rate 242500Kbit ceil 970Mbit"
		}
		if got := strings.Count(now, part); got != len(list) {
			t.Errorf("%d of %d devices have their part:\n%s", got, len(list), now)
		}
		if got := strings.Count(now, "class htb dc:1"); got != 1+len(list) { // dc:1, and dc:10 and on
			t.Errorf("%d classes for %d devices:\n%s", got-1, len(list), now)
		}
	}
	if now := queues(t, "srv"); now != empty {
		t.Errorf("without devices it was\n%s\nand is\n%s", empty, now)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if after := queues(t, "srv"); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
}

// One that is added has its part at once, and leaves the others theirs until all are said again.
func TestOneIsAdded(t *testing.T) {
	t.Parallel()
	duckstest.Unchanged(t)
	if !duckstest.Alone(t, "tc") {
		return
	}
	cable(t)
	s := started(t)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	both := shares("10.0.0.1", "10.0.0.2")
	check := func(what string, halves, thirds int) {
		t.Helper()
		now := queues(t, "srv")
		if h, t3 := strings.Count(now, "rate 485Mbit ceil 970Mbit"),
			strings.Count(now, "rate 323333Kbit ceil 970Mbit"); h != halves || t3 != thirds {
			t.Errorf("%s: %d have a half, and %d a third:\n%s", what, h, t3, now)
		}
	}
	if err := errors.Join(s.Set(both[:1]), s.Add(both[1])); err != nil {
		t.Fatal(err)
	}
	check("one is added", 1, 1)
	if err := errors.Join(s.Add(both[1]), s.Set(both)); err != nil {
		t.Fatal(err)
	}
	check("all are said", 0, 2)
	if err := s.Set(both[1:]); err != nil {
		t.Fatal(err)
	}
	check("one has gone", 1, 0)
}

// An attempt that failed half-way does not keep later ones from success.
func TestSharesAreGivenAgain(t *testing.T) {
	t.Parallel()
	duckstest.Unchanged(t)
	if !duckstest.Alone(t, "tc") {
		return
	}
	cable(t)
	s := started(t)
	// the filter of the same address, and that of another one
	for i, at := range []string{"10.0.0.1", "10.0.0.9"} {
		for side := range s.sides {
			if err := errors.Join(s.sides[side].class(first+uint16(i), 1e6, 1e6),
				s.sides[side].point(netip.MustParseAddr(at), first+uint16(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		if err := s.Set(shares("10.0.0.1", "10.0.0.2")); err != nil {
			t.Fatal(err)
		}
	}
	if now := queues(t, "srv"); strings.Count(now, "rate 323333Kbit ceil 970Mbit") != 2 ||
		strings.Count(now, "flowid dc:1") != 2 {
		t.Errorf("it is\n%s", now)
	}
	if err := errors.Join(s.Set(nil), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// What is tried of the kernel leaves nothing behind, and works where the rest does.
func TestTry(t *testing.T) {
	t.Parallel()
	duckstest.Unchanged(t)
	if !duckstest.Alone(t, "tc") {
		return
	}
	before := queues(t, "lo")
	if err := Try(); err != nil {
		t.Error(err)
	}
	if after := queues(t, "lo"); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
}

// What a killed process has left is taken over, whatever it was at; what others have made stays.
func TestOnlyItsOwnIsReplaced(t *testing.T) {
	t.Parallel()
	duckstest.Unchanged(t)
	if !duckstest.Alone(t, "tc") {
		return
	}
	cable(t)
	before := queues(t, "srv")
	o := Options{Interface: "srv", Line: 1e9}
	left, err := Start(o)
	if err == nil {
		err = left.Set(shares("10.0.0.1"))
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Set(shares("10.0.0.2")), s.Close()); err != nil {
		t.Fatal(err)
	}
	if after := queues(t, "srv"); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	for add, del := range map[string]string{
		"tc qdisc add dev srv root tbf rate 1gbit burst 256kb latency 20ms": "tc qdisc del dev srv root",
		"tc qdisc add dev srv root handle 1: htb":                           "tc qdisc del dev srv root",
		"tc qdisc add dev srv ingress": "tc qdisc del dev srv " +
			"ingress",
		"ip link add dk-srv type ifb": "ip link del dk-srv",
	} {
		duckstest.Run(t, strings.Fields(add)...)
		theirs := queues(t, "srv")
		if _, err := Start(o); !errors.Is(err, ErrTaken) {
			t.Errorf("%q: %v", add, err)
		}
		if now := queues(t, "srv"); now != theirs {
			t.Errorf("%q: it was\n%s\nand is\n%s", add, theirs, now)
		}
		duckstest.Run(t, strings.Fields(del)...)
	}
	if _, err := Start(Options{Interface: "lo"}); err == nil ||
		!strings.Contains(err.Error(), "--line") {
		t.Errorf("a line of unknown speed: %v", err)
	}
	if _, err := Start(Options{Interface: "nothing", Line: 1e9}); err == nil {
		t.Error("an interface that is not there is shaped")
	}
}

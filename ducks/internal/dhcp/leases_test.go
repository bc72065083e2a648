package dhcp

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/access/state"
)

func openFile(t testing.TB, path string) *state.File {
	t.Helper()
	f, err := state.Open(path, []state.Migration{Migration})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestLeases: machines do anything, in any order and with restarts. No address belongs to two of
// them, none is given that is not to be, and a device keeps the address that it had.
func TestLeases(t *testing.T) {
	path, run := filepath.Join(t.TempDir(), "state"), 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		file := openFile(t, fmt.Sprint(path, run))
		defer func() { _ = file.Close() }()
		now := time.Unix(1e9, 0)
		server := netip.MustParseAddr("192.0.2.4")
		isDevice := func(mac string) bool { return mac == "m0" || mac == "m1" }
		open := func() *leases {
			l := &leases{file: file, first: netip.MustParseAddr("192.0.2.2"),
				last: netip.MustParseAddr("192.0.2.7"), except: map[netip.Addr]bool{server: true},
				now: func() time.Time { return now }, known: isDevice}
			if err := openLeases(l); err != nil {
				rt.Fatal(err)
			}
			return l
		}
		l := open()
		has := make(map[string]Lease) // as the machines believe
		device := make(map[string]netip.Addr)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			mac := fmt.Sprint("m", rapid.IntRange(0, 8).Draw(rt, "machine"))
			a := netip.AddrFrom4([4]byte{192, 0, 2, byte(rapid.IntRange(1, 9).Draw(rt, "address"))})
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0, 1:
				got, err := l.offer(mac, a)
				if err != nil {
					continue
				}
				if ok, err := l.take(mac, got); !ok || err != nil {
					rt.Fatalf("%s does not get %s, which it was offered: %v", mac, got, err)
				}
				a = got
			case 2:
				if ok, err := l.take(mac, a); err != nil || !ok {
					continue
				}
			case 3:
				if of := has[mac]; of.Address == a {
					delete(has, mac)
				}
				if err := l.release(mac, a); err != nil {
					rt.Fatal(err)
				}
				continue
			case 4:
				l = open()
				continue
			case 5:
				now = now.Add(time.Duration(rapid.IntRange(1, 9).Draw(rt, "hours")) * time.Hour)
				continue
			}
			has[mac] = Lease{mac, a, now.Add(leaseFor)}
			if before, is := device[mac]; is && before != a && isDevice(mac) && l.holders[before] != mac &&
				l.holders[before] != "" {
				rt.Fatalf("%s had %s, which %s has now", mac, before, l.holders[before])
			}
			device[mac] = a
			if a == server || a.Less(l.first) || l.last.Less(a) {
				rt.Fatalf("%s has %s", mac, a)
			}
			for other, of := range has {
				if other != mac && of.Address == a && now.Before(of.Until) {
					rt.Fatalf("%s and %s have %s", mac, other, a)
				}
			}
		}
	})
}

// An address that somebody else was found to have is given to nobody for a while; who has nothing
// to do with it cannot say so.
func TestSpoiledAddresses(t *testing.T) {
	file := openFile(t, filepath.Join(t.TempDir(), "state"))
	defer file.Close()
	now := time.Unix(1e9, 0)
	one := netip.MustParseAddr("192.0.2.2")
	l := &leases{file: file, first: one, last: one, now: func() time.Time {
		return now
	}, known: func(string) bool { return false }}
	if err := openLeases(l); err != nil {
		t.Fatal(err)
	}
	for mac, want := range map[string]bool{"stranger": true, "m": false} {
		if ok, err := l.take("m", one); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if err := l.spoil(mac, one); err != nil {
			t.Fatal(err)
		}
		if got, err := l.offer("m", one); (err == nil) != want {
			t.Errorf("%s says that it is used: %s is offered, %v", mac, got, err)
		}
		now = now.Add(spoiled)
		if _, err := l.offer("m", one); err != nil {
			t.Errorf("it is not given for ever: %v", err)
		}
	}
}

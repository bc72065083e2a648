package alerts

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"dalmatiner/ducks/internal/boot"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/room"
)

var now = time.Unix(1e9, 0)

// course is a boot that began some time ago and reached stages after these times.
func course(ago time.Duration, stages map[boot.Stage]time.Duration) (c boot.Course) {
	for s, after := range stages {
		c.At[s] = now.Add(after - ago)
	}
	return c
}

// Whoever stands still is named, with where to look; who is on its way, or never says that it is
// up, is not.
func TestLook(t *testing.T) {
	second := time.Second
	whole := map[boot.Stage]time.Duration{boot.Loaded: 0, boot.Scripted: second,
		boot.LoggedIn: 2 * second, boot.Read: 2 * second, boot.Up: 40 * second}
	slow := map[boot.Stage]time.Duration{boot.Loaded: 0, boot.Scripted: 100 * second,
		boot.LoggedIn: 110 * second, boot.Read: 110 * second, boot.Up: 200 * second}
	reads := map[boot.Stage]time.Duration{boot.Loaded: 0, boot.Scripted: second,
		boot.LoggedIn: 2 * second, boot.Read: 3 * second}
	stands := map[boot.Stage]time.Duration{boot.Loaded: 0, boot.Scripted: second}
	for what, c := range map[string]struct {
		boots []boot.Course
		says  string
	}{
		"none":            {nil, ""},
		"up":              {[]boot.Course{course(time.Hour, whole)}, ""},
		"on its way":      {[]boot.Course{course(20*second, stands)}, ""},
		"does not log in": {[]boot.Course{course(2*time.Minute, stands)}, "stands at script"},
		"long ago":        {[]boot.Course{course(30*time.Hour, stands)}, ""},
		"never says up":   {[]boot.Course{course(time.Hour, reads), course(2*time.Hour, reads)}, ""},
		"says up no more": {[]boot.Course{course(time.Hour, reads), course(2*time.Hour, whole)},
			"stands at read"},
		"slow": {[]boot.Course{course(time.Hour, slow), course(2*time.Hour, whole)},
			"up after 200 s, and once after 40 s"},
		"as slow as always": {[]boot.Course{course(time.Hour, slow), course(2*time.Hour, slow)}, ""},
		"loads no boot file": {
			[]boot.Course{course(2*time.Minute, map[boot.Stage]time.Duration{boot.Addressed: 0})},
			"stands at dhcp"},
	} {
		list := Look(&Room{Now: now, Devices: []room.Device{{Name: "pc1", MAC: "m"}},
			Boots: func(string) []boot.Course {
				return c.boots
			}, Space: pool.Space{Total: 100, Free: 50}})
		switch {
		case c.says == "" && len(list) > 0, c.says != "" &&
			(len(list) != 1 || !strings.Contains(list[0].Text, c.says) || list[0].Remedy == "" ||
				list[0].Object != "device pc1"):
			t.Errorf("%s: %+v, want %q", what, list, c.says)
		}
	}
	groups := []room.Group{
		{Name: "lab", Withdrawn: &room.Withdrawn{Version: 3, Why: "pc2 did not reach up within 10m0s",
			At: now}}, {Name: "other"}}
	taken := Look(&Room{Now: now, Groups: groups, Space: pool.Space{Total: 100, Free: 50}})
	if len(taken) != 1 || taken[0].Object != "group lab" ||
		taken[0].Text != "version 3 was taken back: pc2 did not reach up within 10m0s" {
		t.Errorf("%+v", taken)
	}
	unknown := []room.Unknown{{MAC: "m1", Address: netip.MustParseAddr("192.0.2.7"), Last: now},
		{MAC: "m2", Last: now.Add(-time.Hour)}}
	list := Look(&Room{Now: now, Unknown: unknown, Space: pool.Space{Total: 100 << 20, Free: 9 << 20}})
	if len(list) != 2 || list[0].Object != "pool" || list[0].Text != "9 of 100 MiB are free" ||
		list[1].Object != "machine m1" {
		t.Errorf("%+v", list)
	}
}

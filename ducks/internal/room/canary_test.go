package room

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/pool"
)

// tried is a room in memory with 40 devices, whose group has a version 2 that canaries get.
type tried struct {
	*Room
	t   *testing.T
	now time.Time
}

func newTried(t *testing.T, c Canary) *tried {
	t.Helper()
	file, err := state.Open(filepath.Join(t.TempDir(), "state"), Migrations())
	must(t, err)
	t.Cleanup(func() { must(t, file.Close()) })
	r := &tried{t: t, now: time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)}
	r.Room = New(Options{
		State: file, Pool: &texts{images: map[string]string{}, snapshots: map[pool.Snapshot]string{}},
		Targets: noTargets{}, Base: "iqn.2026-11.test.room",
		Now: func() time.Time { return r.now }, Logger: slog.New(slog.DiscardHandler)})
	must(t, errors.Join(r.CreateVolume(t.Context(), Volume{Name: "v", Network: Default, Size: 512},
		""), r.CreateGroup(t.Context(), "lab", "v", ""), r.CreateGroup(t.Context(), "other", "v", "")))
	for i := range 40 {
		must(t, r.AddDevice(t.Context(), Device{Name: fmt.Sprint("pc", i), MAC: macOf(i), Group: "lab",
			Mode: Volatile}))
	}
	r.boots("pc0")
	_, err = r.UpdateGroup(t.Context(), "lab", Update{Device: "pc0", Try: &c})
	must(t, err)
	return r
}

func macOf(i int) string { return fmt.Sprintf("02:00:00:00:00:%02x", i) }

func (r *tried) boots(name string) Boot {
	r.t.Helper()
	b, _, err := r.Boot(r.t.Context(), name)
	must(r.t, err)
	return b
}

// gets returns the devices that get a version when they boot next.
func (r *tried) gets(version int) (names []string) {
	r.t.Helper()
	list, err := r.Plan(r.t.Context())
	must(r.t, err)
	for _, b := range list {
		if b.Version == version {
			names = append(names, b.Device)
		}
	}
	return names
}

func (r *tried) group() Group {
	r.t.Helper()
	g, err := r.Group("lab")
	must(r.t, err)
	return g
}

// Some devices get a version first, the same ones each time. When all of these are up, everybody
// can have it.
func TestCanariesGetAVersionFirst(t *testing.T) {
	r := newTried(t, Canary{Share: 25})
	some := r.gets(2)
	if len(some) < 3 || len(some) > 20 || len(some)+len(r.gets(1)) != 40 {
		t.Fatalf("%d of 40 devices are 25 %%", len(some))
	}
	for _, name := range some {
		if b := r.boots(name); b.Version != 2 || !strings.Contains(b.Why, "canary of version 2") {
			t.Errorf("%+v", b)
		}
	}
	r.boots(r.gets(1)[0])
	macs, err := r.Canaries().Trying()
	if err != nil || len(macs) != len(some) {
		t.Errorf("%d boot it: %v, %v", len(some), macs, err)
	}
	r.now = r.now.Add(9 * time.Minute)
	for i := range 40 {
		must(t, r.Canaries().Reached(macOf(i), UntilRead)) // that is not up
		must(t, r.Canaries().Reached(macOf(i), UntilUp))
	}
	must(t, r.Canaries().Reached("02:00:00:00:99:99", UntilUp)) // nobody knows it
	r.now = r.now.Add(time.Hour)
	must(t, r.Canaries().Withdraw())
	g := r.group()
	tested := slices.Sorted(slices.Values(g.Versions[1].Tested))
	slices.Sort(some)
	if g.Canary == nil || len(g.Canary.Begun) != 0 || !slices.Equal(tested, some) ||
		len(g.Versions[0].Tested) != 1 {
		t.Errorf("%+v", g)
	}
	if got := r.gets(2); len(got) != len(some) {
		t.Errorf("others get it before it is released: %v", got)
	}
	v, err := r.Canaries().Release(t.Context(), "lab")
	if g := r.group(); err != nil || v.Number != 2 || g.Canary != nil || g.Use != 0 ||
		len(r.gets(2)) != 40 {
		t.Errorf("%+v, %+v, %v", v, g, err)
	}
	if _, err := r.Canaries().Release(t.Context(), "lab"); !errors.Is(err, ErrRefused) {
		t.Errorf("released again: %v", err)
	}
}

// A canary that does not come up in time takes the version back from all, however often it boots.
func TestAVersionIsTakenBack(t *testing.T) {
	r := newTried(t, Canary{Share: 50, Within: time.Minute})
	some := r.gets(2)
	r.boots(some[0])
	r.boots(some[1])
	d, err := r.Device(some[1])
	must(t, err)
	must(t, r.Canaries().Reached(d.MAC, UntilUp))
	r.now = r.now.Add(40 * time.Second)
	r.boots(some[0])
	must(t, r.Canaries().Withdraw())
	if r.group().Canary == nil {
		t.Fatal("it is taken back before its time is over")
	}
	r.now = r.now.Add(40 * time.Second)
	must(t, r.Canaries().Withdraw())
	g := r.group()
	if want := some[0] + " did not reach up within 1m0s"; g.Canary != nil || g.Withdrawn == nil ||
		g.Withdrawn.Version != 2 || g.Withdrawn.Why != want || len(r.gets(1)) != 40 {
		t.Errorf("%+v, %+v: want %q", g, g.Withdrawn, want)
	}
	if b := r.boots(some[0]); b.Version != 1 || !b.Fresh {
		t.Errorf("it boots %+v", b)
	}
	must(t, r.Rollback(t.Context(), "lab", 2)) // all the same
	if g := r.group(); g.Withdrawn != nil || len(r.gets(2)) != 40 {
		t.Errorf("%+v", g)
	}
}

// However small the share, one device that takes new versions tries them.
func TestOneDeviceAtLeastIsACanary(t *testing.T) {
	r := newTried(t, Canary{Share: 99})
	for i := range 40 {
		must(t, r.ChangeDevice(t.Context(), fmt.Sprint("pc", i), func(d *Device) {
			switch {
			case i == 7:
			case i%2 == 0:
				d.Mode = Persistent
			default:
				d.Pin = 1
			}
		}))
	}
	for version := 3; version < 13; version++ {
		_, err := r.UpdateGroup(t.Context(), "lab", Update{Device: "pc0", Try: &Canary{Share: 1}})
		must(t, err)
		if some := r.gets(version); !slices.Contains(some, "pc7") {
			t.Errorf("version %d is tried by %v", version, some)
		}
	}
}

// Who has read is far enough where nothing more is asked for; who has left the group does not
// count.
func TestHowFarCanariesCome(t *testing.T) {
	r := newTried(t, Canary{Share: 99, Until: UntilRead})
	some := r.gets(2)
	r.boots(some[0])
	r.boots(some[1])
	d, err := r.Device(some[0])
	must(t, err)
	must(t, r.Canaries().Reached(d.MAC, UntilRead))
	must(t, r.ChangeDevice(t.Context(), some[1], func(d *Device) { d.Group = "other" }))
	r.now = r.now.Add(time.Hour)
	must(t, r.Canaries().Withdraw())
	if g := r.group(); g.Canary == nil || !slices.Contains(g.Versions[1].Tested, some[0]) {
		t.Errorf("%+v", g)
	}
	must(t, r.ChangeDevice(t.Context(), some[2], func(d *Device) { d.Pin = 2 }))
	if b := r.boots(some[2]); !strings.Contains(b.Why, "it is pinned") {
		t.Errorf("%+v", b)
	}
	if g := r.group(); len(g.Canary.Begun) != 1 { // the one that has left
		t.Errorf("one that is pinned is a canary: %+v", g.Canary)
	}
	for what, c := range map[string]Canary{"nobody": {}, "all": {Share: 100}, "less": {Share: -1},
		"a stage": {Share: 5, Until: "dhcp"}, "no time": {Share: 5, Within: -1}} {
		if _, err := r.UpdateGroup(t.Context(), "lab", Update{Device: some[0], Try: &c}); !errors.Is(err,
			ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

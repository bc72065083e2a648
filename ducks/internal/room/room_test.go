package room

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/duckstest"
	"dalmatiner/ducks/internal/initiator"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/target"
)

const portal = "127.0.0.1:3260"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// desk is a room on this machine, with its devices.
type desk struct {
	*Room
	t   *testing.T
	now time.Time
}

// newDesk makes a room on a new pool, with a tgtd of its own.
func newDesk(t *testing.T, kind string) *desk {
	t.Helper()
	dir, err := os.MkdirTemp("", "room") // the path of a socket is short
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // left to the next start of the machine
	p, err := pool.Open(kind+":"+duckstest.Mounted(t, kind), pool.Reserve{Percent: 5})
	must(t, err)
	targets, err := target.Start(t.Context(),
		target.Options{Dir: dir, Portal: netip.MustParseAddrPort(portal),
			Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() { must(t, targets.End()) })
	file, err := state.Open(filepath.Join(dir, "state"), Migrations())
	must(t, err)
	t.Cleanup(func() { must(t, file.Close()) })
	d := &desk{t: t, now: time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)}
	d.Room = New(Options{State: file, Pool: p, Targets: targets, Base: "iqn.2026-11.test.room",
		Now: func() time.Time {
			return d.now
		}, Logger: slog.New(slog.DiscardHandler)})
	return d
}

func (d *desk) add(name, mac, group string, mode Mode) {
	d.t.Helper()
	must(d.t, d.AddDevice(d.t.Context(), Device{Name: name, MAC: mac, Group: group, Mode: mode}))
}

// on boots a device, and returns its session and disk.
func (d *desk) on(name string) (*initiator.Session, *initiator.Disk) {
	d.t.Helper()
	_, of, err := d.Boot(d.t.Context(), name)
	must(d.t, err)
	s, err := initiator.Login(d.t.Context(), initiator.Options{Address: portal, Target: of.IQN,
		Initiator: of.Initiators[0], User: of.User, Secret: of.Secret})
	must(d.t, err)
	disk, err := s.Disk(d.t.Context(), 1)
	must(d.t, err)
	return s, disk
}

const textBytes = 4096

// write boots a device, lets it write a text, and shuts it down.
func (d *desk) write(name, text string) {
	d.t.Helper()
	s, disk := d.on(name)
	b := make([]byte, textBytes)
	copy(b, text)
	must(d.t, errors.Join(disk.WriteAt(d.t.Context(), b, 1<<20), disk.Flush(d.t.Context()),
		s.Logout(d.t.Context())))
}

// boots boots a device, and checks what it reads.
func (d *desk) boots(name, want string) {
	d.t.Helper()
	s, disk := d.on(name)
	b := make([]byte, textBytes)
	must(d.t, errors.Join(disk.ReadAt(d.t.Context(), b, 1<<20), s.Logout(d.t.Context())))
	if got := string(bytes.TrimRight(b, "\x00")); got != want {
		d.t.Errorf("%s reads %q, not %q", name, got, want)
	}
}

// TestARoom is the way of an image: an empty volume, an installation through a device, its update,
// and what the other devices get when they boot.
func TestARoom(t *testing.T) {
	if !duckstest.Alone(t, "mount", "mkfs.btrfs", "btrfs", "mkfs.xfs", "tgtd", "tgtadm") {
		return
	}
	// zfs-fuse loses what a process asks that is killed, as tgtd is here: that process then waits for
	// ever.
	for _, kind := range []string{"btrfs", "reflink"} {
		t.Run(kind, func(t *testing.T) { testARoom(t, kind) })
	}
}

func testARoom(t *testing.T, kind string) {
	d, ctx := newDesk(t, kind), t.Context()
	must(t, d.CreateVolume(ctx, Volume{Name: "linux", Network: Default, Size: 64 << 20}, "ann"))
	must(t, d.CreateGroup(ctx, "lab", "linux", "ann"))
	d.add("master", "02:00:00:00:00:01", "lab", Volatile)
	d.add("pc1", "02:00:00:00:00:02", "lab", Volatile)
	d.add("pc2", "02:00:00:00:00:03", "lab", Persistent)
	d.write("master", "one")
	v, err := d.UpdateGroup(ctx, "lab", Update{Device: "master", Author: "ann", Note: "installed"})
	if err != nil || v.Number != 2 || v.From != "device master" || v.Note != "installed" ||
		v.Changed < textBytes || v.Changed > 1<<20 {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := d.o.Targets.(*target.Targets).Sessions(ctx, d.IQN("master")); !errors.Is(err,
		target.ErrUnknown) {
		t.Errorf("the device can be switched on while its image becomes a version: %v", err)
	}
	d.boots("pc1", "one")
	d.boots("pc2", "one")
	d.write("pc1", "junk")
	d.boots("pc1", "one") // what it wrote is gone
	d.write("pc2", "mine")
	d.boots("pc2", "mine")

	s, disk := d.on("master")
	must(t, disk.WriteAt(ctx, bytes.Repeat([]byte("2"), 512), 0))
	if _, err := d.UpdateGroup(ctx, "lab",
		Update{Device: "master", Author: "ann", Note: ""}); !errors.Is(err, ErrBusy) {
		t.Errorf("updated from a device that is on: %v", err)
	}
	d.write("master", "two") // it was switched off: its session is still there when it boots again
	if disk.Flush(ctx) == nil {
		t.Error("the session that it had left goes on")
	}
	s.Close()
	must(t, d.Rollback(ctx, "lab", 1)) // until the next version
	v, err = d.UpdateGroup(ctx, "lab", Update{Device: "master", Author: "ann", Note: "second"})
	must(t, err)
	testPlan(d)
	d.boots("pc1", "two")
	d.boots("pc2", "mine")
	must(t, d.ChangeDevice(ctx, "pc2", func(d *Device) { d.Mode, d.Pin = Volatile, 2 }))
	d.boots("pc2", "one")
	must(t, d.Rollback(ctx, "lab", 2))
	d.boots("pc1", "one")
	must(t, d.Rollback(ctx, "lab", 0))
	d.boots("pc1", "two")
	testPromote(d, v)
	testStorm(d)
}

// testPlan: before anybody boots it is known who gets what, and loses what.
func testPlan(d *desk) {
	d.t.Helper()
	boots, err := d.Plan(d.t.Context())
	must(d.t, err)
	if len(boots) != 3 {
		d.t.Fatalf("%+v", boots)
	}
	for i, want := range []Boot{
		{Device: "master", Group: "lab", Version: 3, Fresh: true, Why: "the version of its group"},
		{Device: "pc1", Group: "lab", Version: 3, Fresh: true, Why: "the version of its group"},
		{Device: "pc2", Group: "lab", Version: 2, Why: "it keeps what it wrote, and misses version 3"},
	} {
		got := boots[i]
		got.Loses = 0
		if got != want {
			d.t.Errorf("%+v, not %+v", got, want)
		}
	}
}

// testPromote: groups that are made later begin with what a group has given to its volume.
func testPromote(d *desk, of Version) {
	d.t.Helper()
	ctx := d.t.Context()
	for range 2 { // once is enough
		v, err := d.Promote(ctx, "lab", "ann", "for all")
		if err != nil || v.Number != 2 || v.Snapshot != of.Snapshot || v.From != "group lab, version 3" {
			d.t.Errorf("%+v, %v", v, err)
		}
	}
	must(d.t, d.CreateGroup(ctx, "office", "linux", "ann"))
	must(d.t, d.ChangeDevice(ctx, "pc2", func(d *Device) { d.Group, d.Pin = "office", 0 }))
	d.boots("pc2", "two")
}

// testStorm: thirty devices boot at once. Nothing is left of images that nobody has.
func testStorm(d *desk) {
	d.t.Helper()
	const many = 30
	name := func(i int) string { return "storm-" + string(rune('a'+i/10)) + string(rune('0'+i%10)) }
	for i := range many {
		d.add(name(i), "02:00:00:00:01:"+string("0123456789abcdef"[i/16])+string(
			"0123456789abcdef"[i%16]), "lab", Volatile)
	}
	for range 2 {
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				s, disk := d.on(name(i))
				if err := errors.Join(disk.WriteAt(d.t.Context(), make([]byte, 512), 0),
					s.Logout(d.t.Context())); err != nil {
					d.t.Error(err)
				}
			})
		}
		all.Wait()
	}
	images, err := d.o.Pool.Images(d.t.Context())
	must(d.t, err)
	devices, err := d.Devices()
	must(d.t, err)
	var want []string
	for _, of := range devices {
		want = append(want, of.Image)
	}
	if slices.Sort(want); !slices.Equal(images, want) {
		d.t.Errorf("images %q, devices have %q", images, want)
	}
}

// noTargets stands for targets where no device is on.
type noTargets struct{}

func (noTargets) Put(context.Context, target.Target) error   { return nil }
func (noTargets) Remove(context.Context, string, bool) error { return target.ErrUnknown }

// noPool stands for a pool whose contents do not matter.
type noPool struct{ pool.Pool }

func (noPool) Create(context.Context, string, int64) error                        { return nil }
func (noPool) Freeze(context.Context, string, pool.Snapshot) error                { return nil }
func (noPool) Clone(context.Context, pool.Snapshot, string) error                 { return nil }
func (noPool) Delete(context.Context, string) error                               { return nil }
func (noPool) Delta(context.Context, pool.Snapshot, pool.Snapshot) (int64, error) { return 1, nil }
func (noPool) Space(context.Context) (pool.Space, error) {
	return pool.Space{Total: 1, Free: 1}, nil
}
func (noPool) Path(image string) string {
	return "/pool/" + image
}

func bareRoom(t *testing.T) *desk {
	t.Helper()
	file, err := state.Open(filepath.Join(t.TempDir(), "state"), Migrations())
	must(t, err)
	t.Cleanup(func() { must(t, file.Close()) })
	d := &desk{t: t, now: time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)}
	d.Room = New(Options{State: file, Pool: noPool{}, Targets: noTargets{},
		Base: "iqn.2026-11.test.room", Now: func() time.Time {
			return d.now
		}, Logger: slog.New(slog.DiscardHandler)})
	must(t, d.CreateVolume(t.Context(), Volume{Name: "linux", Network: Default, Size: 1 << 20}, ""))
	must(t, d.CreateGroup(t.Context(), "lab", "linux", ""))
	return d
}

func TestWhatIsRefused(t *testing.T) {
	d, ctx := bareRoom(t), t.Context()
	good := Device{Name: "pc1", MAC: "02:00:00:00:00:01", Group: "lab", Mode: Volatile}
	must(t, d.AddDevice(ctx, good))
	spoiled := func(change func(d *Device)) Device {
		o := good
		o.Name, o.MAC = "pc2", "02-00-00-00-00-02"
		change(&o)
		return o
	}
	must(t, d.AddDevice(ctx, spoiled(func(*Device) {}))) // another form of address is the same
	_, update := d.UpdateGroup(ctx, "lab", Update{Device: "pc1", Author: "", Note: ""})
	_, promote := d.Promote(ctx, "office", "", "")
	_, _, boot := d.Boot(ctx, "pc9")
	for says, err := range map[string]error{
		"volume linux: it exists": d.CreateVolume(ctx,
			Volume{Name: "linux", Network: Default, Size: 1 << 20}, ""),
		"group lab: it exists":     d.CreateGroup(ctx, "lab", "linux", ""),
		"volume office: it is not": d.CreateGroup(ctx, "x", "office", ""),
		"a name has 1 to 40":       d.CreateGroup(ctx, "a.b", "linux", ""),
		"device pc1: it exists":    d.AddDevice(ctx, good),
		"that of device pc2":       d.AddDevice(ctx, spoiled(func(d *Device) { d.Name = "pc3" })),
		"no MAC address": d.AddDevice(ctx, spoiled(func(d *Device) {
			d.Name, d.MAC = "pc3", "02:00"
		})),
		"group office: it is not": d.AddDevice(ctx, spoiled(func(d *Device) {
			d.Name, d.Group = "pc3", "office"
		})),
		"mode \"\"": d.AddDevice(ctx, spoiled(func(d *Device) {
			d.Name, d.Mode = "pc3", ""
		})),
		"a date goes with": d.AddDevice(ctx, spoiled(func(d *Device) {
			d.Name, d.Mode = "pc3", Until
		})),
		"there are 1 to 1":            d.Rollback(ctx, "lab", 7),
		"version 9":                   d.ChangeDevice(ctx, "pc1", func(d *Device) { d.Pin = 9 }),
		"device pc9: it is not known": d.ChangeDevice(ctx, "pc9", func(*Device) {}),
		"boot it first":               update,
		"group office: it is":         promote,
		"device pc9: it is":           boot,
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is said as %v", says, err)
		}
	}
	if list, err := d.Devices(); err != nil || len(list) != 2 || len(list[0].Secret) != secretBytes ||
		list[0].Secret == list[1].Secret || list[0].Number == list[1].Number {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestEachCloneHasItsSecret: with the secret of an image nobody reaches the next one. An image that
// a device keeps has its own.
func TestEachCloneHasItsSecret(t *testing.T) {
	d, ctx := bareRoom(t), t.Context()
	d.add("pc1", "02:00:00:00:00:01", "lab", Volatile)
	boots := func() string {
		_, of, err := d.Boot(ctx, "pc1")
		must(t, err)
		if dev, err := d.Device("pc1"); err != nil || dev.Secret != of.Secret ||
			len(of.Secret) != secretBytes {
			t.Errorf("%q is noted, and %q is that of the target: %v", dev.Secret, of.Secret, err)
		}
		return of.Secret
	}
	first, second := boots(), boots()
	if first == second {
		t.Errorf("two clones have the secret %q", first)
	}
	must(t, d.ChangeDevice(ctx, "pc1", func(d *Device) { d.Mode = Persistent }))
	if third := boots(); third != second {
		t.Errorf("an image that was kept had the secret %q, and has %q", second, third)
	}
	must(t, d.ChangeDevice(ctx, "pc1", func(d *Device) { d.Afresh = true }))
	if boots() == second {
		t.Error("a device that begins anew keeps its secret")
	}
}

// A device keeps what it writes until its date.
func TestUntilADate(t *testing.T) {
	d, ctx := bareRoom(t), t.Context()
	must(t, d.AddDevice(ctx, Device{Name: "pc1", MAC: "02:00:00:00:00:01", Group: "lab", Mode: Until,
		Until: d.now.Add(48 * time.Hour)}))
	var images []string
	for range 4 {
		_, of, err := d.Boot(ctx, "pc1")
		must(t, err)
		images = append(images, of.Disks[0].Path)
		d.now = d.now.Add(24 * time.Hour)
	}
	if images[0] != images[1] || images[2] == images[1] || images[3] == images[2] {
		t.Errorf("it had %q on four days", images)
	}
}

// Machines that nobody has added wait, not too many of them, and wait no longer when they are
// added.
func TestUnknownMachines(t *testing.T) {
	d, ctx := bareRoom(t), t.Context()
	at := netip.MustParseAddr("192.0.2.7")
	for i := range mostUnknown + 3 {
		d.now = d.now.Add(time.Second)
		if _, err := d.Find(ctx, fmt.Sprintf("02:00:00:00:%02X:%02X", i/256, i%256), at); !errors.Is(err,
			state.ErrUnknown) {
			t.Fatal(err)
		}
	}
	list, err := d.Unknowns()
	must(t, err)
	if len(list) != mostUnknown || list[0].MAC != "02:00:00:00:00:03" || list[0].Address != at {
		t.Errorf("%d wait, first %+v", len(list), list[0])
	}
	d.now = d.now.Add(time.Second)
	_, _ = d.Find(ctx, "02-00-00-00-00-03", at) // it is noted, as above
	list, err = d.Unknowns()
	must(t, err)
	if list[0].MAC != "02:00:00:00:00:03" || !list[0].Last.Equal(d.now) || list[0].First.Equal(d.now) {
		t.Errorf("seen again it is %+v", list[0])
	}
	must(t, d.AddDevice(ctx, Device{Name: "pc1", MAC: "02:00:00:00:00:03", Group: "lab",
		Mode: Volatile}))
	if list, err = d.Unknowns(); err != nil || len(list) != mostUnknown-1 {
		t.Errorf("%d wait, %v", len(list), err)
	}
	if got, err := d.Find(ctx, "02:00:00:00:00:03", at); err != nil || got.Name != "pc1" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := d.Find(ctx, "pc1", at); err == nil || errors.Is(err, state.ErrUnknown) {
		t.Errorf("no address: %v", err)
	}
}

// fullPool is nearly full; of what the device has written some is its own.
type fullPool struct {
	noPool
	free, own int64
}

func (p *fullPool) Space(context.Context) (pool.Space, error) {
	return pool.Space{Total: 1000, Free: p.free, Reserve: 50}, nil
}
func (p *fullPool) Usage(context.Context, string) (pool.Usage, error) {
	return pool.Usage{Own: p.own}, nil
}

// A device gets no new image in a pool that is nearly full, unless it gives back as much; one that
// keeps its image boots.
func TestNoBootsIntoAFullPool(t *testing.T) {
	r := bareRoom(t)
	p := &fullPool{free: 1000}
	r.o.Pool = p
	must(t, r.CreateVolume(t.Context(), Volume{Name: "v", Network: Default, Size: 512}, "me"))
	must(t, r.CreateGroup(t.Context(), "g", "v", "me"))
	must(t, r.AddDevice(t.Context(), Device{Name: "pc", MAC: "02:00:00:00:00:01", Group: "g",
		Mode: Volatile}))
	boots := func() error {
		_, _, err := r.Boot(t.Context(), "pc")
		return err
	}
	p.free = 49
	if err := boots(); !errors.Is(err, pool.ErrFull) {
		t.Errorf("it boots first: %v", err)
	}
	p.free = 50
	must(t, boots())
	p.free = 10
	if err := boots(); !errors.Is(err, pool.ErrFull) {
		t.Errorf("it boots again: %v", err)
	}
	p.own = 40
	must(t, boots())
	p.own = 0
	must(t, r.ChangeDevice(t.Context(), "pc", func(d *Device) { d.Mode = Persistent }))
	must(t, boots())
}

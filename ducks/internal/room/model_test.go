package room

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/pool"
)

// texts is a pool in memory in which an image has a text.
type texts struct {
	pool.Pool
	images    map[string]string
	snapshots map[pool.Snapshot]string
	limits    map[string]int64
}

func (p *texts) Limits() bool { return true }

func (p *texts) Limit(_ context.Context, image string, own int64) error {
	if _, is := p.images[image]; !is {
		return pool.ErrUnknown
	}
	p.limits[image] = own
	return nil
}

func (p *texts) Create(_ context.Context, image string, _ int64) error { return p.make(image, "") }

func (p *texts) make(image, text string) error {
	if _, is := p.images[image]; is {
		return pool.ErrExists
	}
	p.images[image] = text
	return nil
}

func (p *texts) Freeze(_ context.Context, image string, as pool.Snapshot) error {
	text, is := p.images[image]
	if _, taken := p.snapshots[as]; taken || !is {
		return fmt.Errorf("%s as %v: it is %t, the snapshot is %t", image, as, is, taken)
	}
	p.snapshots[as] = text
	return nil
}

func (p *texts) Clone(_ context.Context, of pool.Snapshot, image string) error {
	text, is := p.snapshots[of]
	if !is {
		return pool.ErrUnknown
	}
	return p.make(image, text)
}

func (p *texts) DeleteSnapshot(_ context.Context, s pool.Snapshot) error {
	if _, is := p.snapshots[s]; !is {
		return pool.ErrUnknown
	}
	delete(p.snapshots, s)
	return nil
}

func (p *texts) Space(context.Context) (pool.Space, error) {
	return pool.Space{Total: 1, Free: 1}, nil
}

func (p *texts) Delete(_ context.Context, image string) error {
	if _, is := p.images[image]; !is {
		return pool.ErrUnknown
	}
	delete(p.images, image)
	delete(p.limits, image)
	return nil
}

func (p *texts) Delta(context.Context, pool.Snapshot, pool.Snapshot) (int64, error) {
	return 0, nil
}
func (p *texts) Usage(_ context.Context, image string) (pool.Usage, error) {
	return pool.Usage{Own: int64(len(p.images[image]))}, nil
}
func (p *texts) Path(image string) string { return "/" + image }

// plain is what a room is to its users: lists of texts. It knows nothing of images.
type plain struct {
	volumes map[string][]string
	groups  map[string]*plainGroup
	devices map[string]*plainDevice
}

type plainGroup struct {
	volume   string
	versions []string
	use      int
}

type plainDevice struct {
	group, keptOf string // and the group of what it keeps
	mode          Mode
	pin           int
	space         int64
	afresh        bool
	text          string
	booted        bool
}

func (m *plain) boot(d *plainDevice) string {
	g := m.groups[d.group]
	if d.mode == Persistent && d.booted && d.keptOf == d.group && !d.afresh {
		return d.text
	}
	d.afresh = false
	n := len(g.versions)
	if g.use > 0 {
		n = g.use
	}
	if d.pin > 0 {
		n = d.pin
	}
	d.text, d.booted, d.keptOf = g.versions[n-1], true, d.group
	return d.text
}

// inMemory returns a room whose images are texts, until it is closed.
func inMemory(t interface{ Fatal(args ...any) }) (r *Room, p *texts, closed func()) {
	dir, err := os.MkdirTemp("", "room")
	if err != nil {
		t.Fatal(err)
	}
	file, err := state.Open(filepath.Join(dir, "state"), Migrations())
	if err != nil {
		t.Fatal(err)
	}
	p = &texts{images: map[string]string{}, snapshots: map[pool.Snapshot]string{},
		limits: map[string]int64{}}
	r = New(Options{State: file, Pool: p, Targets: noTargets{}, Base: "iqn.2026-11.test.room",
		Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	return r, p, func() {
		if err := errors.Join(file.Close(), os.RemoveAll(dir)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestARoomEqualsTheModel does what operators do in any order, and compares what each device boots.
func TestARoomEqualsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, p, closed := inMemory(t)
		defer closed()
		m := &operators{t, r, p, &plain{map[string][]string{}, map[string]*plainGroup{},
			map[string]*plainDevice{}}, 0}
		m.begin()
		t.Repeat(map[string]func(*rapid.T){
			"": m.check, "write": m.write, "boot": m.boot, "update": m.update, "promote": m.promote,
			"rollback": m.rollback, "group": m.group, "change": m.change,
		})
	})
}

// operators do the same to a room and to the model.
type operators struct {
	t *rapid.T
	*Room
	pool  *texts
	model *plain
	count int
}

func (o *operators) must(err error) {
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *operators) begin() {
	ctx := context.Background()
	o.must(o.CreateVolume(ctx, Volume{Name: "v", Network: Default, Size: 512}, ""))
	o.model.volumes["v"] = []string{""}
	o.newGroup()
	for i, mode := range []Mode{Volatile, Persistent, Volatile} {
		name := fmt.Sprint("pc", i)
		o.must(o.AddDevice(ctx, Device{Name: name, MAC: fmt.Sprintf("02:00:00:00:00:%02x", i),
			Group: "g1", Mode: mode}))
		o.model.devices[name] = &plainDevice{group: "g1", mode: mode}
	}
}

func (o *operators) newGroup() {
	name := fmt.Sprint("g", len(o.model.groups)+1)
	o.must(o.CreateGroup(context.Background(), name, "v", ""))
	list := o.model.volumes["v"]
	o.model.groups[name] = &plainGroup{volume: "v", versions: []string{list[len(list)-1]}}
}

func (o *operators) group(t *rapid.T) {
	if len(o.model.groups) == 4 {
		t.Skip("enough")
	}
	o.newGroup()
}

func (o *operators) device(t *rapid.T) (string, *plainDevice) {
	name := fmt.Sprint("pc", rapid.IntRange(0, 2).Draw(t, "device"))
	return name, o.model.devices[name]
}

func (o *operators) anyGroup(t *rapid.T) (string, *plainGroup) {
	name := fmt.Sprint("g", rapid.IntRange(1, len(o.model.groups)).Draw(t, "group"))
	return name, o.model.groups[name]
}

// boot boots a device, and compares what it finds.
func (o *operators) boot(t *rapid.T) {
	name, d := o.device(t)
	before, err := o.Plan(context.Background())
	o.must(err)
	boot, _, err := o.Boot(context.Background(), name)
	o.must(err)
	want := o.model.boot(d)
	is, err := o.Device(name)
	o.must(err)
	if got := o.pool.images[is.Image]; got != want {
		t.Fatalf("%s boots %q, not %q", name, got, want)
	}
	i := slices.IndexFunc(before, func(b Boot) bool { return b.Device == name })
	if planned := before[i]; planned.Version != boot.Version || planned.Fresh != boot.Fresh ||
		planned.Group != boot.Group {
		t.Fatalf("planned was %+v, it is %+v", planned, boot)
	}
}

// write lets a device write something new.
func (o *operators) write(t *rapid.T) {
	name, d := o.device(t)
	is, err := o.Device(name)
	o.must(err)
	if is.Image == "" {
		t.Skip("it has not booted")
	}
	o.count++
	d.text = fmt.Sprint("text ", o.count)
	o.pool.images[is.Image] = d.text
}

func (o *operators) update(t *rapid.T) {
	name, d := o.device(t)
	group, g := o.anyGroup(t)
	if !d.booted {
		t.Skip("it has not booted")
	}
	v, err := o.UpdateGroup(context.Background(), group, Update{Device: name})
	o.must(err)
	g.versions, g.use = append(g.versions, d.text), 0
	if v.Number != len(g.versions) {
		t.Fatalf("version %d, not %d", v.Number, len(g.versions))
	}
}

func (o *operators) promote(t *rapid.T) {
	group, g := o.anyGroup(t)
	_, err := o.Promote(context.Background(), group, "", "")
	o.must(err)
	n := len(g.versions)
	if g.use > 0 {
		n = g.use
	}
	o.model.volumes["v"] = append(o.model.volumes["v"], g.versions[n-1])
}

func (o *operators) rollback(t *rapid.T) {
	group, g := o.anyGroup(t)
	g.use = rapid.IntRange(0, len(g.versions)).Draw(t, "version")
	o.must(o.Rollback(context.Background(), group, g.use))
}

func (o *operators) change(t *rapid.T) {
	name, d := o.device(t)
	group, g := o.anyGroup(t)
	d.group, d.mode, d.pin = group, rapid.SampledFrom([]Mode{Volatile, Persistent}).Draw(t, "mode"),
		rapid.IntRange(0, len(g.versions)).Draw(t, "pin")
	d.afresh = rapid.Bool().Draw(t, "afresh")
	d.space = rapid.SampledFrom([]int64{0, LeastSpace, 1 << 40}).Draw(t, "space")
	o.must(o.ChangeDevice(context.Background(), name, func(is *Device) {
		is.Group, is.Mode, is.Pin, is.Space, is.Afresh = group, d.mode, d.pin, d.space, d.afresh
	}))
}

// check: an image for each device that has booted, with its limit, and no other.
func (o *operators) check(t *rapid.T) {
	booted := 0
	for name, d := range o.model.devices {
		if !d.booted {
			continue
		}
		booted++
		is, err := o.Device(name)
		o.must(err)
		if got := o.pool.limits[is.Image]; got != d.space {
			t.Fatalf("%s may take %d bytes, not %d", name, got, d.space)
		}
	}
	if len(o.pool.images) != booted {
		t.Fatalf("%d images of %d devices", len(o.pool.images), booted)
	}
}

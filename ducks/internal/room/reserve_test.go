package room

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"dalmatiner/ducks/internal/duckstest"
	"dalmatiner/ducks/internal/pool"
)

// fill takes space of the pool until so much is free.
func (d *desk) fill(free int64) {
	d.t.Helper()
	s, err := d.o.Pool.Space(d.t.Context())
	must(d.t, err)
	f, err := os.CreateTemp(filepath.Dir(d.o.Pool.Path("any")), "")
	must(d.t, err)
	must(d.t, errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, s.Free-free), f.Close(),
		d.o.Pool.Settle(d.t.Context())))
	d.t.Cleanup(func() { must(d.t, os.Remove(f.Name())) })
}

// TestTheReserveIsForRunningDevices: whatever else writes into the pool, or keeps what is in it, is
// refused below it.
func TestTheReserveIsForRunningDevices(t *testing.T) {
	if !duckstest.Alone(t, "mount", "mkfs.xfs", "tgtd", "tgtadm") {
		return
	}
	d, ctx := newDesk(t, "reflink"), t.Context()
	must(t, d.CreateVolume(ctx, Volume{Name: "linux", Network: Default, Size: 64 << 20}, "ann"))
	must(t, d.CreateGroup(ctx, "lab", "linux", "ann"))
	for i, name := range []string{"master", "on", "off"} {
		d.add(name, string(rune('1'+i))+"2:00:00:00:00:01", "lab", Volatile)
	}
	d.write("master", "one")
	_, err := d.UpdateGroup(ctx, "lab", Update{Device: "master"})
	must(t, err)
	d.write("master", "two")
	_, disk := d.on("on")

	d.fill(10 << 20)
	block := bytes.Repeat([]byte("x"), 1<<20)
	imported := func() error {
		_, err := d.Transfers().Import(ctx, Volume{Name: "new", Network: Default, Size: 1 << 20},
			bytes.NewReader(block), func() string {
				return ""
			}, "", "")
		return err
	}
	for what, do := range map[string]func() error{
		"a volume": func() error {
			return d.CreateVolume(ctx, Volume{Name: "more", Network: Default, Size: 1 << 20}, "")
		},
		"a further disk": func() error {
			return d.Disks().Create(ctx, Disk{Name: "more", Network: Default, Size: 1 << 20})
		},
		"an import": imported,
		"an update": func() error {
			_, err := d.UpdateGroup(ctx, "lab", Update{Device: "master"})
			return err
		},
		"a promotion": func() error { _, err := d.Promote(ctx, "lab", "", ""); return err },
		"a boot":      func() error { _, _, err := d.Boot(ctx, "off"); return err },
	} {
		if err := do(); !errors.Is(err, pool.ErrFull) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for at := range int64(5) {
		must(t, disk.WriteAt(ctx, block, at<<20))
	}
	must(t, disk.Flush(ctx))
}

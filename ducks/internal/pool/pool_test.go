package pool

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dalmatiner/ducks/internal/duckstest"
)

const mib = 1 << 20

// TestPools is what every kind of pool keeps to.
func TestPools(t *testing.T) {
	if !duckstest.Alone(t, "mount", "mkfs.btrfs", "btrfs", "mkfs.xfs", "zfs") {
		return
	}
	for _, kind := range []string{"btrfs", "reflink", "zfs"} {
		t.Run(kind, func(t *testing.T) {
			for name, test := range map[string]func(*testing.T, string){
				"layers": testLayers, "names": testNames, "usage": testUsage, "streams": testStreams,
				"damage": testDamagedStreams,
				"crash":  testWhatWasInTheMaking, "limit": testLimit, "space": testSpace,
			} {
				t.Run(name, func(t *testing.T) { test(t, kind) })
			}
		})
	}
}

// A volume, a group of it, two devices of the group: each has what it began with and what it wrote.
func testLayers(t *testing.T, kind string) {
	ctx, p := t.Context(), open(t, kind, duckstest.Mounted(t, kind))
	must(t, p.Create(ctx, "volume", 64*mib))
	write(t, p, "volume", 0, mib, 1)
	empty := content(t, p, "volume")
	must(t, p.Freeze(ctx, "volume", Snapshot{"volume", "1"}))
	must(t, p.Clone(ctx, Snapshot{"volume", "1"}, "group"))
	write(t, p, "group", 10*mib, mib, 2)
	golden := content(t, p, "group")
	must(t, p.Freeze(ctx, "group", Snapshot{"group", "1"}))
	for _, device := range []string{"pc1", "pc2"} {
		must(t, p.Clone(ctx, Snapshot{"group", "1"}, device))
		if content(t, p, device) != golden {
			t.Errorf("%s does not begin as the group", device)
		}
	}
	write(t, p, "pc1", 10*mib+77, 5000, 3)
	changed := content(t, p, "pc1")
	if changed == golden || content(t, p, "pc2") != golden || content(t, p, "group") != golden ||
		content(t, p, "volume") != empty {
		t.Error("what one device writes is seen elsewhere")
	}
	must(t, p.Freeze(ctx, "pc1", Snapshot{"group", "2"})) // the group is updated from the device
	must(t, p.Rollback(ctx, "group", Snapshot{"group", "2"}))
	must(t, p.Rollback(ctx, "pc1", Snapshot{"group", "1"}))
	must(t, p.Delete(ctx, "pc2"))
	if content(t, p, "group") != changed || content(t, p, "pc1") != golden {
		t.Error("an image is not what it was rolled back to")
	}
	must(t, p.DeleteSnapshot(ctx, Snapshot{"group", "1"}))
	if content(t, p, "pc1") != golden {
		t.Error("a clone is gone with its snapshot")
	}
	images, err := p.Images(ctx)
	must(t, err)
	snapshots, err := p.Snapshots(ctx)
	must(t, err)
	if !slices.Equal(images, []string{"group", "pc1", "volume"}) ||
		!slices.Equal(snapshots, []Snapshot{{"group", "2"}, {"volume", "1"}}) {
		t.Errorf("images %v, snapshots %v", images, snapshots)
	}
}

func testNames(t *testing.T, kind string) {
	ctx, p := t.Context(), open(t, kind, duckstest.Mounted(t, kind))
	must(t, p.Create(ctx, "a", mib))
	must(t, p.Freeze(ctx, "a", Snapshot{"a", "1"}))
	for what, err := range map[string]error{
		"create":   p.Create(ctx, "a", mib),
		"snapshot": p.Freeze(ctx, "a", Snapshot{"a", "1"}),
		"clone":    p.Clone(ctx, Snapshot{"a", "1"}, "a"),
	} {
		if !errors.Is(err, ErrExists) {
			t.Errorf("%s again: %v", what, err)
		}
	}
	_, usage := p.Usage(ctx, "b")
	_, delta := p.Delta(ctx, Snapshot{}, Snapshot{"a", "2"})
	for what, err := range map[string]error{
		"freeze": p.Freeze(ctx, "b", Snapshot{"b", "1"}), "clone": p.Clone(ctx, Snapshot{"a", "2"}, "b"),
		"usage": usage, "delta": delta,
		"rollback": p.Rollback(ctx, "a", Snapshot{"a", "2"}), "delete": p.Delete(ctx, "b"),
		"snapshot": p.DeleteSnapshot(ctx, Snapshot{"a", "2"}),
	} {
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("%s of what is not there: %v", what, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "a/b", "a@b", "-a", "A", "ä",
		string(bytes.Repeat([]byte("x"), 65))} {
		if err := p.Create(ctx, bad, mib); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, size := range []int64{0, -512, 1000} {
		if err := p.Create(ctx, "b", size); err == nil {
			t.Errorf("a disk of %d bytes", size)
		}
	}
}

// A clone takes nothing until it is written to.
func testUsage(t *testing.T, kind string) {
	ctx, p := t.Context(), open(t, kind, duckstest.Mounted(t, kind))
	must(t, p.Create(ctx, "a", 64*mib))
	write(t, p, "a", mib, 8*mib, 1)
	must(t, p.Freeze(ctx, "a", Snapshot{"a", "1"}))
	must(t, p.Clone(ctx, Snapshot{"a", "1"}, "b"))
	u, err := p.Usage(ctx, "b")
	must(t, err)
	if u.Size != 64*mib || !near(kind, u.Mapped, 8*mib) || !near(kind, u.Own, 0) {
		t.Errorf("a clone takes %+v", u)
	}
	write(t, p, "b", mib, mib, 2)
	must(t, p.Freeze(ctx, "b", Snapshot{"b", "1"}))
	must(t, p.Delete(ctx, "b"))
	// xfs frees extents of what was deleted later
	duckstest.Until(t, "only the snapshot has what was written", func() bool {
		u, err = p.SnapshotUsage(ctx, Snapshot{"b", "1"})
		return err != nil || near(kind, u.Own, mib) && near(kind, u.Mapped, 8*mib)
	})
	must(t, err)
}

// near reports whether something takes as many bytes as it should. ZFS counts what it needs to find
// them as well.
func near(kind string, is, want int64) bool {
	if kind == "zfs" {
		return is >= want && is <= want+want/8+mib/4
	}
	return is == want
}

// What one pool sends another one has, whole and as differences.
func testStreams(t *testing.T, kind string) {
	ctx, from, to := t.Context(), open(t, kind, duckstest.Mounted(t, kind)),
		open(t, kind, duckstest.Mounted(t, kind))
	must(t, from.Create(ctx, "a", 64*mib))
	write(t, from, "a", 0, 4*mib, 1)
	must(t, from.Freeze(ctx, "a", Snapshot{"a", "1"}))
	write(t, from, "a", mib, mib, 2)
	write(t, from, "a", 40*mib, 4096, 3)
	f, err := os.OpenFile(from.Path("a"), os.O_WRONLY, 0)
	must(t, err)
	must(t, zero(f, 3*mib, 65536))
	must(t, f.Close())
	must(t, from.Freeze(ctx, "a", Snapshot{"a", "2"}))
	whole, difference := sent(t, from, Snapshot{}, Snapshot{"a", "1"}),
		sent(t, from, Snapshot{"a", "1"}, Snapshot{"a", "2"})
	if err := to.Receive(ctx, Snapshot{"a", "2"}, bytes.NewReader(difference)); err == nil {
		t.Error("a difference was taken without what it is a difference to")
	}
	must(t, to.Receive(ctx, Snapshot{"a", "1"}, bytes.NewReader(whole)))
	must(t, to.Receive(ctx, Snapshot{"a", "2"}, bytes.NewReader(difference)))
	must(t, to.Clone(ctx, Snapshot{"a", "2"}, "copy"))
	if content(t, to, "copy") != content(t, from, "a") {
		t.Error("another content arrived")
	}
	if again := sent(t, to, Snapshot{"a", "1"}, Snapshot{"a", "2"}); len(again) < mib ||
		len(again) > 3*mib/2 {
		t.Errorf("what was received is sent on with %d bytes", len(again))
	}
	for _, c := range []struct {
		from, to Snapshot
		least    int64
	}{{Snapshot{}, Snapshot{"a", "1"}, 4 * mib},
		{Snapshot{"a", "1"}, Snapshot{"a", "2"}, mib + 4096}} {
		n, err := from.Delta(ctx, c.from, c.to)
		if err != nil || n < c.least || n > c.least+c.least/4 {
			t.Errorf("%v to %v is estimated at %d bytes, not at some %d: %v", c.from, c.to, n, c.least, err)
		}
	}
	if err := to.Receive(ctx, Snapshot{"a", "1"}, bytes.NewReader(whole)); !errors.Is(err, ErrExists) {
		t.Errorf("received again: %v", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if err := from.Send(ctx, Snapshot{}, Snapshot{"a", "1"}, new(bytes.Buffer)); !errors.Is(err,
		context.Canceled) {
		t.Errorf("sent when it was not wanted any more: %v", err)
	}
}

// A stream that is cut off, or of which a byte is another one, makes no snapshot.
func testDamagedStreams(t *testing.T, kind string) {
	dir := duckstest.Mounted(t, kind)
	ctx, p := t.Context(), open(t, kind, dir)
	must(t, p.Create(ctx, "a", mib))
	write(t, p, "a", 0, 8192, 1)
	must(t, p.Freeze(ctx, "a", Snapshot{"a", "1"}))
	stream := sent(t, p, Snapshot{}, Snapshot{"a", "1"})
	var broken [][]byte
	for i := 0; i < len(stream); i += 1 + len(stream)/16 {
		flipped := bytes.Clone(stream)
		flipped[i] ^= 1
		broken = append(broken, stream[:i], flipped)
	}
	for i, b := range append(broken, stream[:len(stream)-1]) {
		if err := p.Receive(ctx, Snapshot{"b", "1"}, bytes.NewReader(b)); err == nil {
			t.Fatalf("stream %d was taken", i)
		}
	}
	checkNothingIsLeft(t, kind, dir, 2)
	must(t, p.Receive(ctx, Snapshot{"b", "1"}, bytes.NewReader(stream)))
}

// What a crash left in the making is gone when the pool is opened again.
func testWhatWasInTheMaking(t *testing.T, kind string) {
	dir := duckstest.Mounted(t, kind)
	ctx, p := t.Context(), open(t, kind, dir)
	must(t, p.Create(ctx, "a", mib))
	must(t, p.Freeze(ctx, "a", Snapshot{"a", "1"}))
	tmp := filepath.Join(dir, makingDir, "left")
	if kind != "zfs" {
		must(t, os.Mkdir(tmp, 0o700))
	}
	switch kind {
	case "btrfs":
		duckstest.Run(t, "btrfs", "subvolume", "snapshot", "-r", filepath.Join(dir, imagesDir, "a"),
			filepath.Join(tmp, "made"))
	case "reflink":
		must(t, os.WriteFile(filepath.Join(tmp, "disk"), nil, 0o600))
	case "zfs": // snapshots that were not cloned, not promoted, and not named
		duckstest.Run(t, "zfs", "snapshot", dir+"/d1@d8")
		duckstest.Run(t, "zfs", "snapshot", dir+"/d1@d9")
		duckstest.Run(t, "zfs", "clone", "-o", "ducks:name=making", dir+"/d1@d9", dir+"/d9")
		duckstest.Run(t, "zfs", "snapshot", dir+"/d1@d10")
		duckstest.Run(t, "zfs", "clone", "-o", "ducks:name=making", dir+"/d1@d10", dir+"/d10")
		duckstest.Run(t, "zfs", "promote", dir+"/d10")
		// Of two that are the same image, the newer one is: a rollback was cut off. Datasets of others
		// stay.
		duckstest.Run(t, "zfs", "clone", dir+"/d2@d2", dir+"/d11")
		duckstest.Run(t, "zfs", "set", "ducks:name=image a", dir+"/d11")
		duckstest.Until(t, "it is unmounted", func() bool {
			return exec.Command("zfs", "unmount", dir+"/d2").Run() == nil
		})
		for _, name := range []string{"/d12", "/else"} {
			duckstest.Run(t, "zfs", "create", dir+name)
			duckstest.Run(t, "zfs", "snapshot", dir+name+"@d1")
			defer duckstest.Run(t, "zfs", "list", dir+name+"@d1")
		}
	}
	p = open(t, kind, dir)
	if kind == "zfs" {
		if _, err := p.SnapshotUsage(ctx, Snapshot{"a", "1"}); err != nil {
			t.Errorf("what was not mounted: %v", err)
		}
		checkNothingIsLeft(t, kind, dir, 6)
		if filepath.Base(filepath.Dir(p.Path("a"))) != "d11" {
			t.Errorf("the image is %s", p.Path("a"))
		}
		must(t, p.Create(ctx, "b", mib)) // numbers go on
		must(t, p.Delete(ctx, "b"))
	} else {
		checkNothingIsLeft(t, kind, dir, 2)
	}
	if list, err := p.Images(ctx); err != nil || len(list) != 1 {
		t.Errorf("%q, %v", list, err)
	}
}

// checkNothingIsLeft looks whether a pool has so many images and snapshots, and nothing in the
// making.
func checkNothingIsLeft(t *testing.T, kind, dir string, count int) {
	t.Helper()
	if kind != "zfs" {
		if list, err := entries(filepath.Join(dir, makingDir)); err != nil || len(list) > 0 {
			t.Errorf("%q is left, %v", list, err)
		}
		return
	}
	out, err := execute(t.Context(), nil, "zfs", "list", "-H", "-r", "-t", "filesystem,snapshot", "-o",
		"name", dir)
	// The pool's own dataset, and the ZFS snapshot of the snapshot.
	if list := strings.Fields(string(out)); err != nil || len(list) != count+2 {
		t.Errorf("%q, %v", list, err)
	}
}

// Where there are limits, an image takes no more of its own than its limit.
func testLimit(t *testing.T, kind string) {
	ctx, p := t.Context(), open(t, kind, duckstest.Mounted(t, kind))
	must(t, p.Create(ctx, "a", 64*mib))
	err := p.Limit(ctx, "a", 4*mib)
	if p.Limits() == errors.Is(err, ErrUnsupported) {
		t.Errorf("it says that it has limits: %t, and does %v", p.Limits(), err)
	}
	if kind == "reflink" {
		if !errors.Is(err, ErrUnsupported) {
			t.Error(err)
		}
		return
	}
	must(t, err)
	f, err := os.OpenFile(p.Path("a"), os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	fill := func() error {
		_, err := f.WriteAt(noise(8*mib, 1), 0)
		return errors.Join(err, f.Sync())
	}
	if fill() == nil {
		t.Error("it takes more than its limit")
	}
	must(t, p.Limit(ctx, "a", 0))
	must(t, fill())
}

func testSpace(t *testing.T, kind string) {
	ctx, p := t.Context(), open(t, kind, duckstest.Mounted(t, kind))
	s, err := p.Space(ctx)
	must(t, err)
	if s.Total < 400*mib || s.Free <= 0 || s.Free >= s.Total {
		t.Errorf("%+v", s)
	}
	if n, err := p.Trim(ctx); kind == "zfs" && errors.Is(err, ErrUnsupported) {
		return // zfs-fuse cannot
	} else if err != nil || n <= 0 && kind != "zfs" {
		t.Errorf("%d bytes were trimmed, %v", n, err)
	}
}

func TestOpen(t *testing.T) {
	for _, spec := range []string{"", "btrfs", "btrfs:", "ext4:/x", "zfs:", "zfs:there/is/none",
		"btrfs:/does/not/exist", "btrfs:/proc", "reflink:/proc"} {
		if _, err := Open(spec, Reserve{}); err == nil {
			t.Errorf("%q is a pool", spec)
		}
	}
}

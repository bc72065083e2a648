package pool

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dalmatiner/ducks/internal/duckstest"
)

// Pools are made of empty devices, and of no others. One of ZFS would be mounted at the root of
// this machine.
func TestMake(t *testing.T) {
	if !duckstest.Alone(t, "mount", "losetup", "mkfs.btrfs", "btrfs", "mkfs.xfs") {
		return
	}
	for _, c := range []struct {
		kind    string
		devices int
		fstab   string
	}{{"btrfs", 2, "btrfs compress-force=zstd:1 0 0"}, {"reflink", 1, "xfs defaults 0 0"}} {
		t.Run(c.kind, func(t *testing.T) {
			devices, spec := blank(t, c.devices), c.kind+":"+filepath.Join(t.TempDir(), "a/pool")
			var told strings.Builder
			fstab, err := Make(t.Context(), spec, devices, &told)
			if err != nil || !strings.HasSuffix(fstab, c.fstab) || !strings.HasPrefix(told.String(), "# ") {
				t.Fatalf("%q, %v; it told\n%s", fstab, err, &told)
			}
			dir, err := Dir(spec)
			must(t, err)
			defer duckstest.Run(t, "umount", dir)
			p, err := Open(spec, Reserve{})
			must(t, err)
			must(t, p.Create(t.Context(), "a", mib))
			for what, again := range map[string]string{"the same place": spec, "the same disks": c.kind +
				":" + filepath.Join(t.TempDir(), "b")} {
				if _, err := Make(t.Context(), again, devices, &told); err == nil {
					t.Errorf("%s: a pool was made", what)
				}
			}
			if images, err := p.Images(t.Context()); err != nil || len(images) != 1 {
				t.Errorf("afterwards it has %q, %v", images, err)
			}
		})
	}
	for _, bad := range []struct {
		spec    string
		devices []string
	}{{"btrfs:/x", nil}, {"ext4:/x", []string{"/dev/null"}}, {"btrfs:x", []string{"/dev/null"}},
		{"reflink:/x", []string{"/dev/null", "/dev/zero"}}, {"btrfs:", []string{"/dev/null"}}} {
		if _, err := Make(t.Context(), bad.spec, bad.devices, os.Stdout); err == nil {
			t.Errorf("%+v is made", bad)
		}
	}
}

// blank returns devices that have nothing.
func blank(t *testing.T, count int) (list []string) {
	t.Helper()
	for range count {
		f, err := os.CreateTemp(t.TempDir(), "disk")
		must(t, err)
		must(t, f.Truncate(512<<20))
		must(t, f.Close())
		out, err := exec.Command("losetup", "-f", "--show", f.Name()).Output()
		must(t, err)
		device := strings.TrimSpace(string(out))
		t.Cleanup(func() { duckstest.Run(t, "losetup", "-d", device) })
		list = append(list, device)
	}
	return list
}

package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is wrong is named, with a remedy.
func TestFindings(t *testing.T) {
	dir := t.TempDir()
	cards := filepath.Join(dir, "net")
	for path, text := range map[string]string{"br0/bridge/x": "", "br0/addr_assign_type": "0\n",
		"br1/bridge/x": "", "br1/addr_assign_type": "3\n", "eth0/addr_assign_type": "0\n"} {
		path = filepath.Join(cards, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		found  Finding
		is     Verdict
		remedy string
	}{
		{bridge(cards, "br0"), Warn, "ip link set br0 address"},
		{bridge(cards, "br1"), Good, ""},
		{bridge(cards, "eth0"), Good, ""},
		{space(""), Warn, "--pool"},
		{space("btrfs:" + filepath.Join(dir, "none")), Bad, "make the directory"},
		{space("zfs:there/is/none"), Bad, "zfs create"},
		{space("btrfs:/proc"), Bad, "mkfs.btrfs"},
		{loaders(dir), Bad, "apt-get install ipxe"},
		{network(t.Context(), "none0"), Bad, ""},
		{portal(filepath.Join(dir, "none")), Warn, ""},
		{classes(func() error { return nil }), Good, ""},
		{classes(func() error { return errors.ErrUnsupported }), Warn, "modprobe"},
	} {
		if c.found.Verdict != c.is || !strings.Contains(c.found.Remedy, c.remedy) || c.found.Text == "" {
			t.Errorf("%+v, want %s and %q", c.found, c.is, c.remedy)
		}
	}
	t.Setenv("PATH", dir)
	if got := tools("btrfs:/x"); got.Verdict != Bad ||
		got.Remedy != "apt-get install tgt btrfs-progs" {
		t.Errorf("%+v", got)
	}
	if got := tools("reflink:/x"); got.Remedy != "apt-get install tgt" {
		t.Errorf("%+v", got)
	}
	for _, f := range Look(t.Context(), Options{}) {
		if f.What == "" || f.Text == "" || f.Verdict == Bad && f.Remedy == "" {
			t.Errorf("%+v", f)
		}
	}
}

package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestListeners(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue
   0: 00000000:0CBC 00000000:0000 0A 00000000:00000000
   1: 0100007F:0CBC 00000000:0000 01 00000000:00000000
   2: 01004D0A:0CBC 00000000:0000 0A 00000000:00000000
   3: 00000000:0050 00000000:0000 0A 00000000:00000000
`
	if got, err := listenersAt(strings.NewReader(table), 3260); err != nil || !slices.Equal(got, []string{"0.0.0.0:3260", "10.77.0.1:3260"}) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := listenersAt(strings.NewReader("0: what:0CBC 0 0A"), 3260); err == nil {
		t.Error("a table that is none is read")
	}
}

// What is wrong is named, with a remedy.
func TestFindings(t *testing.T) {
	dir := t.TempDir()
	classes := filepath.Join(dir, "net")
	for path, text := range map[string]string{"br0/bridge/x": "", "br0/addr_assign_type": "0\n", "br1/bridge/x": "", "br1/addr_assign_type": "3\n", "eth0/addr_assign_type": "0\n"} {
		path = filepath.Join(classes, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		found  Finding
		is     Verdict
		remedy string
	}{
		{bridge(classes, "br0"), Warn, "ip link set br0 address"},
		{bridge(classes, "br1"), Good, ""},
		{bridge(classes, "eth0"), Good, ""},
		{space(""), Warn, "--pool"},
		{space("btrfs:" + filepath.Join(dir, "none")), Bad, "make the directory"},
		{space("zfs:tank"), Bad, "make the directory"},
		{space("btrfs:/proc"), Bad, "mkfs.btrfs"},
		{loaders(dir), Bad, "apt-get install ipxe"},
		{network(t.Context(), "none0"), Bad, ""},
		{portal(filepath.Join(dir, "none")), Warn, ""},
	} {
		if c.found.Verdict != c.is || !strings.Contains(c.found.Remedy, c.remedy) || c.found.Text == "" {
			t.Errorf("%+v, want %s and %q", c.found, c.is, c.remedy)
		}
	}
	t.Setenv("PATH", dir)
	if got := tools("btrfs:/x"); got.Verdict != Bad || got.Remedy != "apt-get install tgt btrfs-progs" {
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

// Package doctor looks whether a machine can run ducks, and says what to do where it cannot.
package doctor

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dalmatiner/ducks/internal/dhcp"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/sockets"
	"dalmatiner/ducks/internal/tftp"
	"dalmatiner/ducks/internal/traffic"
)

// Verdict is how bad something is.
type Verdict string

// The verdicts. With Bad ducks does not run.
const (
	Good Verdict = "ok"
	Warn Verdict = "warning"
	Bad  Verdict = "bad"
)

// Finding is what was found of one thing.
type Finding struct {
	What    string  `json:"what"`
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`             // what was seen
	Remedy  string  `json:"remedy,omitempty"` // what to do
}

// Options say for what the machine is looked at.
type Options struct {
	Pool      string // as pool.Open takes it; may be empty
	Interface string // of the room; may be empty
	BootFiles string
}

// Look looks at everything. It changes nothing; at the interface it asks whether another server
// gives addresses.
func Look(ctx context.Context, o Options) []Finding {
	list := []Finding{root(), tools(o.Pool), space(o.Pool), portal(sockets.Proc), classes(traffic.Try),
		clock()}
	if o.Interface != "" {
		list = append(list, loaders(o.BootFiles), bridge("/sys/class/net", o.Interface),
			network(ctx, o.Interface))
	}
	return list
}

func root() Finding {
	if unix.Geteuid() == 0 {
		return Finding{"root", Good, "this is root", ""}
	}
	return Finding{"root", Bad, "this is not root: tgtd, the pool and DHCP need it",
		"run ducks as root"}
}

// packages are what of Debian has the programs that ducks runs, by kind of pool; those of "" are
// always needed.
var packages = []struct{ pool, program, name string }{
	{"", "tgtd", "tgt"}, {"", "tgtadm", "tgt"}, {"btrfs", "btrfs", "btrfs-progs"},
	{"zfs", "zfs", "zfsutils-linux"},
}

func tools(pool string) Finding {
	kind, _, _ := strings.Cut(pool, ":")
	var missing, install []string
	for _, p := range packages {
		if p.pool != "" && p.pool != kind {
			continue
		}
		if _, err := exec.LookPath(p.program); err != nil {
			missing, install = append(missing, p.program), append(install, p.name)
		}
	}
	if len(missing) == 0 {
		return Finding{"programs", Good, "all are there", ""}
	}
	return Finding{"programs", Bad, strings.Join(missing, ", ") + " missing", "apt-get install " +
		strings.Join(unique(install), " ")}
}

func unique(list []string) (out []string) {
	for i, s := range list {
		if i == 0 || s != list[i-1] {
			out = append(out, s)
		}
	}
	return out
}

// kinds are the file systems of pools. Source: statfs(2).
var kinds = map[string]int64{"btrfs": unix.BTRFS_SUPER_MAGIC, "reflink": unix.XFS_SUPER_MAGIC}

// fullAt is the part of a pool that should stay free.
const fullAt = 0.1

func space(spec string) Finding {
	const what = "pool"
	kind, _, _ := strings.Cut(spec, ":")
	if spec == "" {
		return Finding{what, Warn, "none was named", "say --pool btrfs:DIR, zfs:DATASET or reflink:DIR"}
	}
	dir, err := pool.Dir(spec)
	if err != nil {
		return Finding{what, Bad, err.Error(),
			"zpool create tank DISKS, zfs create tank/ducks, and say --pool zfs:tank/ducks"}
	}
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return Finding{what, Bad, fmt.Sprintf("%s: %v", dir, err),
			"make the directory, on a file system of its own"}
	}
	if magic, is := kinds[kind]; kind != "zfs" && (!is || s.Type != magic) {
		return Finding{what, Bad, fmt.Sprintf("%s is not on a file system for %s pools", dir, kind),
			"mkfs.btrfs, or mkfs.xfs -m reflink=1, and mount it there"}
	}
	free, total := int64(s.Bavail)*s.Bsize, int64(s.Blocks)*s.Bsize
	text := fmt.Sprintf("%s: %d of %d MiB are free", dir, free>>20, total>>20)
	switch {
	case float64(free) < fullAt*float64(total):
		return Finding{what, Warn, text,
			"add disks, or remove images: devices are not booted when it is full"}
	case kind == "btrfs" && !compressed(dir):
		return Finding{what, Warn, text + ", and not compressed",
			"mount it with compress-force=zstd: an image of Debian takes a third"}
	}
	return Finding{what, Good, text, ""}
}

// compressed reports whether the mount that a directory is on is compressed. A table that cannot be
// read does not say so.
func compressed(dir string) bool {
	path, err := filepath.EvalSymlinks(dir)
	table, err2 := os.Open("/proc/self/mounts")
	if err2 != nil {
		return false
	}
	defer table.Close()
	best, is := -1, false
	for lines := bufio.NewScanner(table); err == nil && lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || len(f[1]) <= best ||
			!(path == f[1] || strings.HasPrefix(path, strings.TrimSuffix(f[1], "/")+"/")) {
			continue
		}
		best, is = len(f[1]), strings.Contains(f[3], "compress")
	}
	return is
}

// portal looks for another program at the port of iSCSI, in the tables of a directory.
func portal(tables string) Finding {
	const what, port = "iSCSI", 3260
	list, err := sockets.At(tables, sockets.Listening, port)
	if err != nil {
		return Finding{what, Warn, err.Error(), ""}
	}
	if len(list) == 0 {
		return Finding{what, Good, fmt.Sprintf("nobody listens at port %d", port), ""}
	}
	var at []string
	for _, s := range list {
		at = append(at, s.Local.String())
	}
	return Finding{what, Warn, "somebody listens at " + strings.Join(at, ", "),
		"that is right while ducks serve runs; if not, it is the tgt of Debian, which takes the port: " +
			"systemctl disable --now tgt"}
}

// classes looks whether the kernel can share a line among devices.
func classes(try func() error) Finding {
	const what = "classes"
	if err := try(); err != nil {
		return Finding{what, Warn, fmt.Sprintf("the line cannot be shared among devices: %v", err),
			"ducks runs without --shape; with it the kernel needs sch_htb, sch_ingress, cls_u32, " +
				"act_mirred and ifb: modprobe those, or boot a kernel of Debian"}
	}
	return Finding{what, Good, "the kernel can share the line among devices", ""}
}

func clock() Finding {
	const what = "clock"
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	text := time.Now().UTC().Format(time.RFC3339)
	if err != nil || state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0 {
		return Finding{what, Warn, text + ", and nothing keeps it right",
			"apt-get install chrony: versions and boots are known by their times"}
	}
	return Finding{what, Good, text, ""}
}

func loaders(dir string) Finding {
	const what = "boot loaders"
	if err := (tftp.Files{Dir: dir}).Check(dhcp.Debian.BIOS, dhcp.Debian.UEFI); err != nil {
		return Finding{what, Bad, fmt.Sprintf("%s: %v", dir, err),
			"apt-get install ipxe, or name a directory with --boot-files"}
	}
	return Finding{what, Good, dir + " has those for BIOS and UEFI", ""}
}

// bridge looks whether a bridge has an address of its own. Source:
// Documentation/ABI/testing/sysfs-class-net.
func bridge(classes, name string) Finding {
	const what = "bridge"
	if _, err := os.Stat(filepath.Join(classes, name, "bridge")); err != nil {
		return Finding{what, Good, name + " is none", ""}
	}
	const set = "3"
	kind, err := os.ReadFile(filepath.Join(classes, name, "addr_assign_type"))
	if err != nil {
		return Finding{what, Warn, err.Error(), ""}
	}
	if strings.TrimSpace(string(kind)) != set {
		return Finding{what, Warn, name +
			" has the lowest MAC address of its ports, and another one when these change: devices lose " +
			"their disks then for half a minute",
			"give it one: ip link set " + name + " address 02:…"}
	}
	return Finding{what, Good, name + " has a MAC address of its own", ""}
}

func network(ctx context.Context, name string) Finding {
	const what = "network"
	at, err := dhcp.AddressOf(name)
	if err != nil {
		return Finding{what, Bad, err.Error(), ""}
	}
	other, err := dhcp.Other(ctx, name)
	switch {
	case err != nil:
		return Finding{what, Bad, err.Error(), "another server may give addresses: that is not known"}
	case other.IsValid():
		return Finding{what, Warn, fmt.Sprintf("%s has %s; %s gives addresses there", name, at, other),
			"start ducks serve with --dhcp-proxy, or end that server"}
	}
	switch here, err := dhcp.Here(name); {
	case err != nil:
		return Finding{what, Warn, err.Error(),
			"a program of this machine may give addresses: that is not known"}
	case here != dhcp.None:
		return Finding{what, Warn,
			fmt.Sprintf("%s has %s; a program of this machine answers at UDP port 67", name, at),
			"that is right while ducks serve runs; if not, end it, as dnsmasq or isc-dhcp-server: it does " +
				"not hear the question of ducks"}
	}
	return Finding{what, Good, fmt.Sprintf("%s has %s, and nobody gives addresses there", name, at),
		""}
}

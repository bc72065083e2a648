package command

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"dalmatiner/ducks/internal/duckstest"
)

// testLimit: a machine that is on has its part of the line both ways, and a limit at once.
func testLimit(sh *shell, m *machine) {
	sh.t.Helper()
	sh.says("device show pc1", "limit -")
	disk, off := m.boots()
	classes := func() (all string) {
		for _, of := range []string{bridge, "dk-" + bridge} {
			out, err := exec.Command("tc", "class", "show", "dev", of).Output()
			if err != nil {
				sh.t.Fatal(err)
			}
			all += string(out)
		}
		return all
	}
	if got := classes(); strings.Count(got, "rate 485Mbit ceil 970Mbit") != 2 {
		sh.t.Errorf("it has no part when it reaches its disk:\n%s", got)
	}
	sh.says("device change pc1 --limit 100kbit", "at least 1000000")
	sh.says("device change pc1 --limit 2.5gbit")
	sh.says("device change pc1 --limit fast", "want a number with kbit, mbit or gbit")
	sh.says("device change pc1 --limit 80mbit")
	sh.says("device show pc1", "limit 80mbit")
	duckstest.Until(sh.t, "it has its limit", func() bool {
		return strings.Count(classes(), "ceil 80Mbit") == 2
	})
	took := func(do func([]byte) error) time.Duration {
		began := time.Now()
		for range 16 {
			if err := do(make([]byte, 256<<10)); err != nil {
				sh.t.Fatal(err)
			}
		}
		return time.Since(began)
	}
	// 4 MiB are 33.6 Mbit: 0.42 s at 80 Mbit, without the limit a few hundredths.
	reads := took(func(b []byte) error { return disk.ReadAt(sh.t.Context(), b, 0) })
	writes := took(func(b []byte) error { return disk.WriteAt(sh.t.Context(), b, 0) })
	if least := 350 * time.Millisecond; reads < least || writes < least {
		sh.t.Errorf("4 MiB are read in %s and written in %s, faster than its limit", reads, writes)
	}
	sh.says("device change pc1 --limit 0")
	off()
	duckstest.Until(sh.t, "it is off", func() bool {
		return !strings.Contains(classes(), "class htb dc:10 ")
	})
}

// testScopes: who is limited to some groups works with these and their devices, and sees nothing
// else.
func testScopes(sh *shell, dir string) {
	sh.t.Helper()
	sh.says("group create annex --volume linux")
	sh.says("device add 02:00:00:00:00:07 --name far --group annex")
	file := filepath.Join(dir, "limited")
	if err := os.WriteFile(file, []byte(sh.run("token create limited --role operator --group annex")),
		0o600); err != nil {
		sh.t.Fatal(err)
	}
	limited := &shell{sh.t, []string{sh.flags[0], sh.flags[1], "--token-file", file}}
	sh.says("token list", "limited operator group/annex", "first admin all")
	limited.says("device list", "far 02:00:00:00:00:07 annex")
	limited.says("group list", "annex default linux")
	limited.says("plan", "far annex")
	for _, line := range []string{"device list", "group list", "plan"} {
		if got := limited.run(line); strings.Contains(got, "lab") {
			sh.t.Errorf("%s shows\n%s", line, got)
		}
	}
	limited.says("device change far --mode persistent")
	limited.says("device add 02:00:00:00:00:08 --name near --group annex")
	limited.says("device delete near")
	const above, ofLab = "is of client/default, network/default",
		"is of client/default, group/lab, network/default"
	for line, concerns := range map[string]string{
		"device show pc1": ofLab, "device pin pc1 --to 1": ofLab, "device delete pc1": ofLab,
		"device boots pc1": ofLab, "group versions lab": ofLab,
		"group rollback lab --to 1": ofLab, "device change far --group lab": ofLab,
		"device add 02:00:00:00:00:08 --name near --group lab": ofLab,
		"group update annex --from pc1":                        ofLab, "pool status": "concerns all",
		"group create more --volume linux": above, "group promote annex": above,
		"group delete annex": above,
		"device leases":      "concerns all", "server list": "concerns all",
		"volume create more --size 1M": above, "disk create more --size 1M": above,
		"menu add more a --text a --chain http://192.0.2.1/": above, "image export linux --file " +
			filepath.Join(dir, "no"): "volume linux: it is not known: there are none",
	} {
		want := "it " + concerns + ", and limited is limited to group/annex"
		if strings.HasPrefix(concerns, "volume") {
			want = concerns
		}
		limited.says(line, want)
	}
	for _, line := range []string{"volume list", "menu list", "disk list", "network list",
		"client list"} {
		if got := limited.run(line); strings.Count(got, "\n") != 1 {
			sh.t.Errorf("%s shows\n%s", line, got)
		}
	}
	limited.says("user list", "it needs role admin")
	sh.says("token create odd --role viewer --group ../lab", "group/../lab: it is not known")
	sh.says("token create odd --role viewer --group none --network default",
		"group/none: it is not known")
	sh.says("device delete far")
	sh.says("group delete annex",
		"group/annex: it is in use: token limited is limited to it: delete that first")
	sh.says("token delete limited")
	sh.says("group delete annex")
}

// testNetworks: clients own networks, which own what there is, up to their limits; who is limited
// to one rules it, and no other.
func testNetworks(sh *shell, dir string) {
	sh.t.Helper()
	sh.says("network list", "default default 1 ",
		"NETWORK CLIENT VOLUMES GROUPS DEVICES DISKS MENUS SPACE")
	sh.says("server list", "master 10.77.0.1:3260 btrfs:")
	sh.says("client create acme --networks 2 --devices 3")
	sh.says("network create north --client acme --volumes 1 --space 1G")
	sh.says("network create south --client acme")
	sh.says("network create west --client acme", "client acme: it is limited to 2 networks, and has 2")
	sh.says("network create west --client nobody", "client nobody: it is not known")
	file := filepath.Join(dir, "north")
	if err := os.WriteFile(file, []byte(sh.run("token create north --role admin --network north")),
		0o600); err != nil {
		sh.t.Fatal(err)
	}
	north := &shell{sh.t, []string{sh.flags[0], sh.flags[1], "--token-file", file}}
	north.says("volume create ice --size 512M")
	north.says("volume create snow --size 1M", "network north: it is limited to 1 volumes, and has 1")
	north.says("disk create ice --size 600M",
		"network north: it is limited to 1073741824 bytes, of which 536870912 are given away")
	north.says("group create bears --volume ice")
	north.says("group create foxes --volume linux",
		"it is of client/default, network/default, and north is limited to network/north")
	north.says("device add 02:00:00:00:01:01 --name bear --group bears --space 16M")
	north.says("device show bear", "chap_secret")
	north.says("device change bear --group lab",
		"it is of client/default, group/lab, network/default, and north is limited to network/north")
	sh.says("device change bear --group lab",
		"it is of network north, and group lab of default: delete it there, and add it here")
	north.says("device change bear --space 0") // 512M more are just enough
	north.says("device add 02:00:00:00:01:02 --name wolf --group bears",
		"network north: it is limited to 1073741824 bytes")
	north.says("network limit north --space 0",
		"it is of client/acme, and north is limited to network/north")
	sh.says("network limit north --space 0")
	north.says("device add 02:00:00:00:01:02 --name wolf --group bears")
	north.says("device add 02:00:00:00:01:03 --name seal --group bears")
	north.says("device add 02:00:00:00:01:04 --name owl --group bears",
		"client acme: it is limited to 3 devices, and has 3")
	north.says("network list", "north acme 1 of 1 1 3 0 0 2.0G")
	sh.says("client list", "acme 2 of 2 1 1 3 of 3 0 0 2.0G")
	north.says("token create friend --role viewer",
		"north is limited to network/north, and so is who it lets in")
	north.says("token create friend --role viewer --network south",
		"north is not limited to network/south")
	if got := north.run("token create friend --role viewer --group bears"); !strings.HasPrefix(got,
		"ddt_") {
		sh.t.Errorf("a token is %q", got)
	}
	north.says("token list", "friend viewer group/bears", "north admin network/north")
	north.says("token delete first", "token first reaches what north does not")
	if got := north.run("trail"); !strings.Contains(got, "volume") ||
		!strings.Contains(got, "north is limited to network/north") || strings.Contains(got, "acme  ") {
		sh.t.Errorf("its trail is\n%s", got)
	}
	sh.says("network delete north", "network/north: it is in use: token north is limited to it")
	north.says("token delete friend")
	sh.says("token delete north")
	sh.says("network delete north", "it has volumes, disks or menus")
	for _, line := range []string{"device delete bear", "device delete wolf", "device delete seal",
		"group delete bears", "volume delete ice", "network delete north", "network delete south",
		"client delete acme"} {
		sh.says(line)
	}
}

// testTimeouts: a group says how long its devices wait, in what a unit of their image reads.
func testTimeouts(sh *shell) {
	sh.t.Helper()
	sh.says("group timeouts lab", "recovery as the image says command as the image says")
	sh.says("group timeouts lab --recovery 24h")
	sh.says("group timeouts lab --command 90s")
	sh.says("group timeouts lab --command 1s", "want 5 to 2592000")
	sh.says("group timeouts lab", "recovery 24h0m0s command 1m30s")
	sh.says("group timeouts lab --command 0s")
	sh.says("group timeouts lab", "command as the image says")
	sh.says("group timeouts lab --recovery 0s")
	alone := &shell{sh.t, nil} // it asks no server
	alone.says("device unit http://10.77.0.1:8092", "-X POST http://10.77.0.1:8092/boot/v1/up")
	alone.says("device unit 10.77.0.1", "is not where devices reach ducks")
}

// testSpace: what a device writes takes no more of the pool than its limit, and no other device is
// the worse for it.
func testSpace(sh *shell, m *machine) {
	sh.t.Helper()
	sh.says("device change pc1 --space 1M", "at least 16777216")
	sh.says("device change pc1 --space much", "is no size")
	sh.says("device change pc1 --space 16M")
	sh.says("device show pc1", "space 16.0M")
	disk, off := m.boots()
	fill := func() (err error) {
		block := make([]byte, 256<<10)
		for at := int64(0); at < 32<<20 && err == nil; at += int64(len(block)) {
			if _, err = rand.Read(block); err == nil {
				err = errors.Join(disk.WriteAt(sh.t.Context(), block, at), disk.Flush(sh.t.Context()))
			}
		}
		return err
	}
	if fill() == nil {
		sh.t.Error("it writes more than its limit")
	}
	off()
	sh.says("device change pc1 --space 0")
	disk, off = m.boots()
	if err := fill(); err != nil {
		sh.t.Errorf("without a limit: %v", err)
	}
	off()
}

// testMenu: a group has a menu, which its devices are offered.
func testMenu(sh *shell, m *machine) {
	sh.t.Helper()
	sh.says("menu add usual install --text \"Install it\" --kernel http://192.0.2.1/linux --initrd " +
		"http://192.0.2.1/initrd --args quiet --default --wait 5")
	sh.says("menu add usual more --text More --chain http://192.0.2.1/menu.ipxe --wait 5")
	sh.says("menu add usual worse --text \"a && b\" --chain http://192.0.2.1/", "no $, | or &")
	sh.says("menu add usual worse --text none", "either something to chain to or a kernel")
	sh.says("menu list", "usual install Install it http://192.0.2.1/linux default after 5 s",
		"usual more More http://192.0.2.1/menu.ipxe -")
	sh.says("menu give usual --to none", "group none: it is not known")
	sh.says("menu give none --to lab", "menu none: it is not known")
	sh.says("menu give --to lab", "give a menu, or --none")
	sh.says("menu give usual --to lab")
	sh.says("menu remove usual none", "menu usual has no entry none")
	sh.says("menu remove usual more")
	sh.says("menu remove usual install", "group lab has it")
	r, err := m.Boot(sh.t.Context(), false)
	if err != nil {
		sh.t.Fatal(err)
	}
	duckstest.Until(sh.t, "its disk is in use", func() bool {
		return sh.shows("device list", "in use read")
	})
	if !strings.Contains(r.Script,
		"item install Install it\nchoose --timeout 5000 --default install selected") {
		sh.t.Errorf("it is offered\n%s", r.Script)
	}
	r.Session.Close()
	duckstest.Until(sh.t, "its disk is in use no more", func() bool {
		return sh.shows("device list", "- read")
	})
	sh.says("menu give --none --to lab")
	sh.says("menu remove usual install")
	sh.says("menu list", "MENU ENTRY TEXT BOOTS WAITS")
}

// testCanary: a version that a machine does not boot in time is taken back; one that it boots is
// released.
func testCanary(sh *shell, m *machine) {
	sh.t.Helper()
	sh.says("group create tries --volume linux")
	sh.says("device change pc1 --group tries")
	update := func(flags string) string {
		_, off := m.boots()
		off()
		line, got := "group update tries --from pc1 --canary 99 "+flags, ""
		duckstest.Until(sh.t, "the session is gone", func() bool {
			got = sh.run(line)
			return !strings.Contains(got, "is on")
		})
		number, is := strings.CutPrefix(strings.TrimSuffix(got, ", from device pc1\n"), "version ")
		if !is {
			sh.t.Fatalf("%s says %s", line, got)
		}
		return number
	}
	sh.says("group update tries --from pc1 --canary 100", "want 1 to 99")
	sh.says("group update tries --from pc1 --canary 5 --canary-until dhcp", "must be one of")
	sh.says("group release tries", "no version is tried by canaries")
	first := update("--canary-within 2s")
	sh.says("group list", "version "+first+" on 99 % of the devices")
	sh.says("plan", "it is a canary of version "+first)
	_, off := m.boots()
	duckstest.Until(sh.t, "it is taken back", func() bool {
		return strings.Contains(sh.run("alerts"),
			"version "+first+" was taken back: pc1 did not reach up within 2s")
	})
	off()
	second := update("--canary-until read")
	if got := sh.run("alerts"); strings.Contains(got, "taken back") {
		sh.t.Errorf("behind another update: %s", got)
	}
	_, off = m.boots()
	duckstest.Until(sh.t, "it has read", func() bool {
		lines := strings.Split(strings.TrimSpace(sh.run("group versions tries")), "\n")
		return strings.Contains(strings.Join(strings.Fields(lines[len(lines)-1]), " "),
			"device pc1 0 pc1 first")
	})
	off()
	sh.says("group release tries", "version "+second)
	sh.says("group list", "tries default linux 3 the newest")
	sh.says("device change pc1 --group lab")
	sh.says("group delete tries")
}

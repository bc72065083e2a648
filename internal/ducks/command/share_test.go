package command

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"dalmatiner/internal/ducks/duckstest"
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
	duckstest.Until(sh.t, "it has its part", func() bool { return strings.Count(classes(), "rate 485Mbit ceil 970Mbit") == 2 })
	sh.says("device change pc1 --limit 100kbit", "at least 1000000")
	sh.says("device change pc1 --limit 2.5gbit")
	sh.says("device change pc1 --limit fast", "want a number with kbit, mbit or gbit")
	sh.says("device change pc1 --limit 80mbit")
	sh.says("device show pc1", "limit 80mbit")
	duckstest.Until(sh.t, "it has its limit", func() bool { return strings.Count(classes(), "ceil 80Mbit") == 2 })
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
	duckstest.Until(sh.t, "it is off", func() bool { return !strings.Contains(classes(), "class htb dc:10 ") })
}

// testScopes: who is limited to some groups works with these and their devices, and sees nothing else.
func testScopes(sh *shell, dir string) {
	sh.t.Helper()
	sh.says("group create annex --volume linux")
	sh.says("device add 02:00:00:00:00:07 --name far --group annex")
	file := filepath.Join(dir, "limited")
	if err := os.WriteFile(file, []byte(sh.run("token create limited --role operator --group annex")), 0o600); err != nil {
		sh.t.Fatal(err)
	}
	limited := &shell{sh.t, []string{sh.flags[0], sh.flags[1], "--token-file", file}}
	sh.says("token list", "limited operator annex", "first admin all")
	limited.says("device list", "far 02:00:00:00:00:07 annex")
	limited.says("group list", "annex linux")
	limited.says("plan", "far annex")
	for _, line := range []string{"device list", "group list", "plan"} {
		if got := limited.run(line); strings.Contains(got, "lab") {
			sh.t.Errorf("%s shows\n%s", line, got)
		}
	}
	limited.says("device change far --mode persistent")
	limited.says("device add 02:00:00:00:00:08 --name near --group annex")
	limited.says("device delete near")
	for line, concerns := range map[string]string{
		"device show pc1": "lab", "device change pc1 --pin 1": "lab", "device delete pc1": "lab", "device boots pc1": "lab", "group versions lab": "lab",
		"group rollback lab --to 1": "lab", "device change far --group lab": "lab", "device add 02:00:00:00:00:08 --name near --group lab": "lab",
		"group update annex --from pc1": "lab", "volume list": "all", "pool status": "all", "group create more --volume linux": "all", "group promote annex": "all",
		"device leases": "all", "alerts": "all", "menu list": "all", "disk list": "all",
	} {
		limited.says(line, "it concerns "+concerns+", and limited is limited to annex")
	}
	limited.says("user list", "it needs role admin")
	sh.says("token create odd --role viewer --group ../lab", "a name has 1 to 64")
	sh.says("token delete limited")
	sh.says("device delete far")
	sh.says("group delete annex")
}

// testSpace: what a device writes takes no more of the pool than its limit, and no other device is the worse for it.
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
	sh.says("menu add usual install --text \"Install it\" --kernel http://192.0.2.1/linux --initrd http://192.0.2.1/initrd --args quiet --default --wait 5")
	sh.says("menu add usual more --text More --chain http://192.0.2.1/menu.ipxe --wait 5")
	sh.says("menu add usual worse --text \"a && b\" --chain http://192.0.2.1/", "no $, | or &")
	sh.says("menu add usual worse --text none", "either something to chain to or a kernel")
	sh.says("menu list", "usual install Install it http://192.0.2.1/linux default after 5 s", "usual more More http://192.0.2.1/menu.ipxe -")
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
	duckstest.Until(sh.t, "its disk is in use", func() bool { return sh.shows("device list", "in use read") })
	if !strings.Contains(r.Script, "item install Install it\nchoose --timeout 5000 --default install selected") {
		sh.t.Errorf("it is offered\n%s", r.Script)
	}
	r.Session.Close()
	duckstest.Until(sh.t, "its disk is in use no more", func() bool { return sh.shows("device list", "- read") })
	sh.says("menu give --none --to lab")
	sh.says("menu remove usual install")
	sh.says("menu list", "MENU ENTRY TEXT BOOTS WAITS")
}

// testCanary: a version that a machine does not boot in time is taken back; one that it boots is released.
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
		return strings.Contains(sh.run("alerts"), "version "+first+" was taken back: pc1 did not reach up within 2s")
	})
	off()
	second := update("--canary-until read")
	if got := sh.run("alerts"); strings.Contains(got, "taken back") {
		sh.t.Errorf("behind another update: %s", got)
	}
	_, off = m.boots()
	duckstest.Until(sh.t, "it has read", func() bool {
		lines := strings.Split(strings.TrimSpace(sh.run("group versions tries")), "\n")
		return strings.Contains(strings.Join(strings.Fields(lines[len(lines)-1]), " "), "device pc1 0 pc1 first")
	})
	off()
	sh.says("group release tries", "version "+second)
	sh.says("group list", "tries linux 3 the newest")
	sh.says("device change pc1 --group lab")
	sh.says("group delete tries")
}

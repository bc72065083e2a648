package boot

import (
	"fmt"
	"net/netip"
	"strings"

	"dalmatiner/ducks/internal/room"
	"dalmatiner/ducks/internal/target"
)

// script boots from the disk, or lets somebody choose. Values are names of this program's own
// making, or were checked when they were taken: nothing in them has to be quoted. Source:
// ipxe.org/cmd.
func script(portal netip.AddrPort, t target.Target, menu *room.Menu, again string) string {
	var b strings.Builder
	disk := fmt.Sprintf("--drive 0x80 iscsi:%s::%d:1:%s", host(portal.Addr()), portal.Port(), t.IQN)
	fmt.Fprintf(&b, "#!ipxe\nset initiator-iqn %s\nset username %s\nset password %s\nset keep-san 1\n",
		t.Initiators[0], t.User, t.Secret)
	what := "The disk"
	if menu != nil {
		choose(&b, menu)
		what = "What was chosen"
	}
	fmt.Fprintf(&b, "sanboot %s || goto failed\n", disk)
	if menu != nil {
		for i := range menu.Entries {
			entry(&b, &menu.Entries[i], disk)
		}
	}
	fmt.Fprintf(&b, ":failed\necho %s cannot be booted. Trying again in 10 seconds.\nsleep "+
		"10\nchain --replace --autofree %s\n", what, again)
	return b.String()
}

// choose shows a menu, and goes to what is chosen. The disk is what follows.
func choose(b *strings.Builder, m *room.Menu) {
	selected := m.Default
	if selected == "" {
		selected = room.DiskKey
	}
	fmt.Fprintf(b, "menu What to boot\nitem %s The disk of this machine\n", room.DiskKey)
	for _, e := range m.Entries {
		fmt.Fprintf(b, "item %s %s\n", e.Key, e.Text)
	}
	wait := ""
	if m.Wait > 0 {
		wait = fmt.Sprintf("--timeout %d ", 1000*m.Wait)
	}
	// Who leaves the menu gets the disk.
	fmt.Fprintf(b, "choose %s--default %s selected || set selected %s\ngoto "+
		"entry-${selected}\n:entry-%s\n", wait, selected, room.DiskKey, room.DiskKey)
}

// entry is what comes behind the choice of one. The disk is there beside it, for an installer.
func entry(b *strings.Builder, e *room.Entry, disk string) {
	fmt.Fprintf(b, ":entry-%s\nsanhook %s || goto failed\n", e.Key, disk)
	if e.Chain != "" {
		fmt.Fprintf(b, "chain %s || goto failed\n", e.Chain)
		return
	}
	const initrd = "initrd.img"
	args := e.Args
	if e.Initrd != "" {
		args = strings.TrimSpace("initrd=" + initrd + " " + args)
	}
	fmt.Fprintf(b, "kernel %s\n", strings.TrimSpace(e.Kernel+" "+args+" || goto failed"))
	if e.Initrd != "" {
		fmt.Fprintf(b, "initrd --name %s %s || goto failed\n", initrd, e.Initrd)
	}
	b.WriteString("boot || goto failed\n")
}

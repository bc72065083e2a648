package boot

import (
	"net/netip"
	"testing"

	"dalmatiner/ducks/internal/room"
	"dalmatiner/ducks/internal/target"
)

// A menu has the disk first, and each entry has the disk beside what it boots.
func TestAMenuIsOffered(t *testing.T) {
	const want = `#!ipxe
set initiator-iqn i
set username pc1
set password SECRETSECRET
set keep-san 1
menu What to boot
item disk The disk of this machine
item install Install Debian 12
item more More of it
choose --timeout 15000 --default install selected || set selected disk
goto entry-${selected}
:entry-disk
sanboot --drive 0x80 iscsi:[fd00::1]::3260:1:t || goto failed
:entry-install
sanhook --drive 0x80 iscsi:[fd00::1]::3260:1:t || goto failed
kernel http://192.0.2.1/linux initrd=initrd.img auto=true || goto failed
initrd --name initrd.img http://192.0.2.1/initrd.gz || goto failed
boot || goto failed
:entry-more
sanhook --drive 0x80 iscsi:[fd00::1]::3260:1:t || goto failed
chain https://boot.example.org/menu.ipxe || goto failed
:failed
echo What was chosen cannot be booted. Trying again in 10 seconds.
sleep 10
chain --replace --autofree AGAIN
`
	of := target.Target{IQN: "t", Initiators: []string{"i"}, User: "pc1", Secret: "SECRETSECRET"}
	menu := &room.Menu{Wait: 15, Default: "install", Entries: []room.Entry{
		{Key: "install", Text: "Install Debian 12", Kernel: "http://192.0.2.1/linux",
			Initrd: "http://192.0.2.1/initrd.gz", Args: "auto=true"},
		{Key: "more", Text: "More of it", Chain: "https://boot.example.org/menu.ipxe"},
	}}
	if got := script(netip.MustParseAddrPort("[fd00::1]:3260"), of, menu, "AGAIN"); got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
}

package dhcp

import (
	"fmt"
	"strings"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
)

// Parts of option 43, by which firmware shows a text. Source: the PXE specification 2.1, table 2-1.
const (
	tagDiscovery = 6
	tagMenu      = 9
	tagPrompt    = 10
	tagEnd       = 255
)

const (
	// noServers keeps firmware from looking for boot servers: none by broadcast, none by multicast,
	// and of those that a list names, of which there is none.
	noServers = 1 | 2 | 4

	// showFor is how many seconds a text is shown, before the machine goes on to what it boots next.
	// 255 would be for ever, in front of a menu.
	showFor = 15

	// lineLength is what EDK2 shows of a text (PXEBC_DISPLAY_MAX_LINE).
	lineLength = 70
)

// nextDisk is the only entry of the menu, which a machine takes in the end.
const nextDisk = "Boot from the next device"

// lacking has a machine show that there is no loader for it. Its firmware shows the text where no
// file is named: then it goes on, as if this server was not there. name is that of the loader;
// empty for kinds that have none.
func lacking(kinds []iana.Arch, name string) []dhcpv4.Modifier {
	text := lackingText(kinds, name)
	part := func(dst []byte, tag byte, content ...byte) []byte {
		return append(append(dst, tag, byte(len(content))), content...)
	}
	option := part(nil, tagDiscovery, noServers)
	entry := append([]byte{0, 0, byte(len(nextDisk))}, nextDisk...) // of type 0: no boot server
	option = part(option, tagMenu, entry...)
	option = part(option, tagPrompt, append([]byte{showFor}, text...)...)
	return []dhcpv4.Modifier{
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier(pxeClass)),
		dhcpv4.WithGeneric(dhcpv4.OptionVendorSpecificInformation, append(option, tagEnd)),
	}
}

// lackingText returns one line for the screen of a machine that has no loader.
func lackingText(kinds []iana.Arch, name string) string {
	kind := kinds[0]
	text := fmt.Sprintf("ducks: no loader for %s. Put %s into --boot-files", kind, name)
	if len(text) > lineLength { // the name of the file comes first
		text = fmt.Sprintf("ducks: put %s into --boot-files", name)
	}
	if name == "" {
		text = fmt.Sprintf("ducks: no loader for machines of kind %d (%s)", kind, kind)
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), lineLength)]
}

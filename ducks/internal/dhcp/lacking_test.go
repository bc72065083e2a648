package dhcp

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
)

// A machine whose loader is not there is told what to show, in every answer, and no file.
func TestMachinesShowThatTheyHaveNoLoader(t *testing.T) {
	served, _ := newTestServer(t, false)
	proxy, _ := newTestServer(t, true)
	for _, s := range []*server{served, proxy} {
		s.o.Has = func(string) bool { return false }
	}
	const menu = "\x06\x01\x07" + "\x09\x1c\x00\x00\x19Boot from the next device"
	for _, c := range []struct {
		who  string
		is   dhcpv4.Modifier
		want string // the last part of option 43
	}{
		{"an ARM64", pxe(iana.EFI_ARM64),
			"\x0a\x45\x0fducks: no loader for EFI ARM64. Put ipxe-arm64.efi into --boot-files"},
		{"UEFI of 32 bits", pxe(iana.EFI_IA32),
			"\x0a\x43\x0fducks: no loader for EFI IA32. Put ipxe-i386.efi into --boot-files"},
		{"UEFI by its class", classed("PXEClient:Arch:00007:UNDI:003016"),
			"\x0a\x40\x0fducks: no loader for EFI x86-64. Put ipxe.efi into --boot-files"},
		{"a BIOS", pxe(iana.INTEL_X86PC),
			"\x0a\x46\x0fducks: no loader for Intel x86PC. Put undionly.kpxe into --boot-files"},
		{"a RISC-V", pxe(iana.EFI_RISCV64),
			"\x0a\x3d\x0fducks: no loader for machines of kind 27 (EFI RISC-V 64-bit)"},
		{"a kind without a name", classed("PXEClient:Arch:65535"),
			"\x0a\x36\x0fducks: no loader for machines of kind 65535 (unknown)"},
	} {
		discover := message(t, dhcpv4.MessageTypeDiscover, c.is)
		offer, err := served.answer(discover)
		if err != nil {
			t.Fatal(err)
		}
		request := message(t, dhcpv4.MessageTypeRequest, c.is,
			dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.message.YourIPAddr)))
		from := netip.MustParseAddrPort("192.0.2.7:4011")
		for what, of := range map[string]func() (answer, error){
			"an offer":            func() (answer, error) { return offer, nil },
			"an ack":              func() (answer, error) { return served.answer(request) },
			"an offer of a proxy": func() (answer, error) { return proxy.answer(discover) },
			"an ack of a proxy":   func() (answer, error) { return proxy.bootServer(request, from) },
		} {
			a, err := of()
			if err != nil {
				t.Errorf("%s to %s: %v", what, c.who, err)
				continue
			}
			m := a.message
			got := string(m.Options.Get(dhcpv4.OptionVendorSpecificInformation))
			if want := menu + c.want + "\xff"; got != want {
				t.Errorf("%s to %s has\n%q, want\n%q", what, c.who, got, want)
			}
			if m.BootFileName+m.BootFileNameOption() != "" || m.ClassIdentifier() != pxeClass {
				t.Errorf("%s to %s: %s", what, c.who, m.Summary())
			}
		}
	}
	for _, s := range []*server{served, proxy} {
		a, err := s.answer(message(t, dhcpv4.MessageTypeDiscover, pxe(iana.EFI_X86_64_HTTP)))
		if err == nil && a.message.Options.Has(dhcpv4.OptionVendorSpecificInformation) {
			t.Errorf("firmware that loads over HTTP is told %s", a.message.Summary())
		}
	}
}

// Whatever a loader is called, the text is one line of letters that firmware shows whole, and its
// parts end where they say.
func TestWhatIsShownIsALine(t *testing.T) {
	long := strings.Repeat("ö", 300)
	for _, name := range []string{"", "a.efi", "schön\n.efi", strings.Repeat("x", 30), long} {
		for _, kind := range []iana.Arch{0, 6, 11, 30, 36, 65535} {
			m, err := dhcpv4.New(lacking([]iana.Arch{kind, 7}, name)...)
			if err != nil {
				t.Fatal(err)
			}
			option := m.Options.Get(dhcpv4.OptionVendorSpecificInformation)
			if len(option) > 255 {
				t.Fatalf("%d bytes", len(option))
			}
			var tags []byte
			text := ""
			for option[0] != tagEnd {
				tag, content := option[0], option[2:2+int(option[1])]
				if option = option[2+len(content):]; tag == tagPrompt {
					text = string(content[1:])
				}
				tags = append(tags, tag)
			}
			if len(option) != 1 || !slices.Equal(tags, []byte{tagDiscovery, tagMenu, tagPrompt}) {
				t.Errorf("parts %v, and %d bytes behind them", tags, len(option)-1)
			}
			wrong := strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
			wrong = wrong || name == "a.efi" && !strings.Contains(text, name)
			if wrong || text == "" || len(text) > lineLength {
				t.Errorf("kind %d, loader %q: %q is shown", kind, name, text)
			}
		}
	}
}

package dhcp

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
)

var card0 = net.HardwareAddr{2, 0, 0, 0, 0, 7}

// stages are what a server has seen.
type stages []bool

func newTestServer(t testing.TB, proxy bool) (*server, *stages) {
	t.Helper()
	file := openFile(t, filepath.Join(t.TempDir(), "state"))
	t.Cleanup(func() { _ = file.Close() })
	var seen stages
	s, err := newServer(Options{Interface: "br0", Proxy: proxy, HTTP: 8092, Script: "/boot/v1/script",
		Loader:  "/boot/v1/file/",
		Loaders: Debian, Has: func(name string) bool {
			return name != Debian.UEFI32
		}, State: file, Known: func(string) bool { return false },
		Seen: func(_ string, ipxe bool) {
			seen = append(seen, ipxe)
		}, Lacks: func(string, string) {}, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Router: netip.MustParseAddr("192.0.2.254")}, netip.MustParsePrefix("192.0.2.1/24"))
	if err != nil {
		t.Fatal(err)
	}
	return s, &seen
}

func message(t testing.TB, kind dhcpv4.MessageType, more ...dhcpv4.Modifier) []byte {
	t.Helper()
	m, err := dhcpv4.New(
		append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(card0), dhcpv4.WithMessageType(kind)}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return m.ToBytes()
}

func pxe(kinds ...iana.Arch) dhcpv4.Modifier {
	class := pxeClass + ":Arch:00000"
	if slices.Contains(kinds, iana.EFI_X86_64_HTTP) {
		class = httpClass + ":Arch:00016"
	}
	return func(m *dhcpv4.DHCPv4) {
		classed(class)(m)
		m.UpdateOption(dhcpv4.OptClientArch(kinds...))
	}
}

// classed is a machine that says what it is by its class only.
func classed(class string) dhcpv4.Modifier {
	return dhcpv4.WithOption(dhcpv4.OptClassIdentifier(class))
}

func ipxe(m *dhcpv4.DHCPv4) { m.UpdateOption(dhcpv4.OptGeneric(optionIPXE, []byte{255})) }

// machine is a machine that boots, and what it is told.
type machine struct {
	who   string
	is    dhcpv4.Modifier
	loads string
	class string
}

const script = "http://192.0.2.1:8092/boot/v1/script?mac=02:00:00:00:00:07"

// machines are all kinds of them.
func machines() []machine {
	return []machine{
		{"a BIOS", pxe(iana.INTEL_X86PC), "undionly.kpxe", ""},
		{"a BIOS that says nothing", classed(pxeClass), "undionly.kpxe", ""},
		{"a BIOS by its class", classed("PXEClient:Arch:00000:UNDI:002001"), "undionly.kpxe", ""},
		{"a BIOS of a class that is damaged", classed("PXEClient:Arch:x7"), "undionly.kpxe", ""},
		{"a BIOS of a class that is too long", classed("PXEClient:Arch:99999999999"),
			"undionly.kpxe", ""},
		{"UEFI by its class", classed("PXEClient:Arch:00007:UNDI:003016"), "ipxe.efi", ""},
		{"UEFI by its class and nothing behind it", classed("PXEClient:Arch:00009"), "ipxe.efi", ""},
		{"UEFI by its class, and a kind of one byte",
			also(classed("PXEClient:Arch:00007"),
				dhcpv4.WithGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{7})),
			"ipxe.efi", ""},
		{"UEFI that has the class of a BIOS",
			also(classed("PXEClient:Arch:00000"), dhcpv4.WithOption(dhcpv4.OptClientArch(iana.EFI_X86_64))),
			"ipxe.efi", ""},
		{"UEFI over HTTP by its class", classed("HTTPClient:Arch:00016:UNDI:003001"),
			"http://192.0.2.1:8092/boot/v1/file/ipxe.efi", httpClass},
		{"UEFI over HTTP that says nothing", classed(httpClass),
			"http://192.0.2.1:8092/boot/v1/file/ipxe.efi", httpClass},
		{"UEFI over HTTP with a kind of TFTP",
			also(classed(httpClass), dhcpv4.WithOption(dhcpv4.OptClientArch(iana.EFI_X86_64))),
			"http://192.0.2.1:8092/boot/v1/file/ipxe.efi", httpClass},
		{"UEFI", pxe(iana.EFI_X86_64), "ipxe.efi", ""},
		{"UEFI of the other number", pxe(iana.EFI_BC), "ipxe.efi", ""},
		{"UEFI over HTTP", pxe(iana.EFI_X86_64_HTTP),
			"http://192.0.2.1:8092/boot/v1/file/ipxe.efi", httpClass},
		{"iPXE", ipxe, script, ""},
		{"iPXE by its class", func(m *dhcpv4.DHCPv4) { m.UpdateOption(dhcpv4.OptUserClass("iPXE")) },
			script, ""},
		{"an ARM64", pxe(iana.EFI_ARM64), "ipxe-arm64.efi", ""},
		{"an ARM64 by its class", classed("PXEClient:Arch:00011:UNDI:003000"), "ipxe-arm64.efi", ""},
		{"an ARM64 over HTTP",
			also(classed(httpClass), dhcpv4.WithOption(dhcpv4.OptClientArch(iana.EFI_ARM64_HTTP))),
			"http://192.0.2.1:8092/boot/v1/file/ipxe-arm64.efi", httpClass},
		{"UEFI of 32 bits, whose loader is not there", pxe(iana.EFI_IA32), "", pxeClass},
		{"UEFI of 32 bits over HTTP",
			also(classed(httpClass), dhcpv4.WithOption(dhcpv4.OptClientArch(iana.EFI_X86_HTTP))), "", ""},
		{"an ARM of 32 bits", pxe(iana.EFI_ARM32), "", pxeClass},
		{"a RISC-V", pxe(iana.EFI_RISCV64), "", pxeClass},
		{"a RISC-V by its class", classed("PXEClient:Arch:00027"), "", pxeClass},
		{"a system", func(*dhcpv4.DHCPv4) {}, "", ""},
	}
}

// Each kind of machine is told what it can load; iPXE is told its script, and a system nothing.
func TestWhatMachinesLoad(t *testing.T) {
	s, seen := newTestServer(t, false)
	for _, c := range machines() {
		offer, err := s.answer(message(t, dhcpv4.MessageTypeDiscover, c.is))
		if err != nil {
			t.Fatalf("%s: %v", c.who, err)
		}
		before := len(*seen)
		got, err := s.answer(message(t, dhcpv4.MessageTypeRequest, c.is,
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(s.ip())),
			dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.message.YourIPAddr))))
		if err != nil {
			t.Fatalf("%s: %v", c.who, err)
		}
		m := got.message
		if m.MessageType() != dhcpv4.MessageTypeAck || m.BootFileNameOption() != c.loads ||
			m.BootFileName != c.loads || m.ClassIdentifier() != c.class {
			t.Errorf("%s is told %s", c.who, m.Summary())
		}
		if !m.YourIPAddr.Equal(net.IPv4(192, 0, 2, 128)) || m.SubnetMask().String() != "ffffff00" ||
			len(m.Router()) != 1 || got.to.String() != "255.255.255.255:68" {
			t.Errorf("%s gets %s at %s", c.who, m.Summary(), got.to)
		}
		if got := m.Options.Get(optionIPXE); (c.loads == script) != slices.Equal(got, noProxy) {
			t.Errorf("%s is told %v of iPXE", c.who, got)
		}
		if c.loads != "" && (len(*seen) != before+1 || (*seen)[before] != (c.loads == script)) {
			t.Errorf("%s: seen %v", c.who, *seen)
		}
	}
}

// also is what two say.
func also(a, b dhcpv4.Modifier) dhcpv4.Modifier {
	return func(m *dhcpv4.DHCPv4) {
		a(m)
		b(m)
	}
}

// Firmware that takes the name of its file for a text with a zero at its end finds that zero, in
// every answer, and what firmware says of its machine comes back to it.
func TestAnswersAsFirmwareReadsThem(t *testing.T) {
	id := append([]byte{0}, "0123456789abcdef"...)
	served, _ := newTestServer(t, false)
	proxy, _ := newTestServer(t, true)
	wants := dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.IPv4(192, 0, 2, 128)))
	for what, of := range map[string]func(is dhcpv4.Modifier) (answer, error){
		"an offer": func(is dhcpv4.Modifier) (answer, error) {
			return served.answer(message(t, dhcpv4.MessageTypeDiscover, is))
		},
		"an ack": func(is dhcpv4.Modifier) (answer, error) {
			return served.answer(message(t, dhcpv4.MessageTypeRequest, is, wants))
		},
		"an ack without more": func(is dhcpv4.Modifier) (answer, error) {
			return served.answer(message(t, dhcpv4.MessageTypeInform, is))
		},
		"an offer of a proxy": func(is dhcpv4.Modifier) (answer, error) {
			return proxy.answer(message(t, dhcpv4.MessageTypeDiscover, is))
		},
		"an ack of a proxy": func(is dhcpv4.Modifier) (answer, error) {
			return proxy.bootServer(message(t, dhcpv4.MessageTypeRequest, is),
				netip.MustParseAddrPort("192.0.2.7:4011"))
		},
	} {
		for file, is := range map[string]dhcpv4.Modifier{
			"undionly.kpxe": pxe(iana.INTEL_X86PC),
			"ipxe.efi":      pxe(iana.EFI_X86_64),
			"http://192.0.2.1:8092/boot/v1/file/ipxe.efi": pxe(iana.EFI_X86_64_HTTP),
			script: ipxe,
		} {
			a, err := of(also(is, dhcpv4.WithGeneric(dhcpv4.OptionClientMachineIdentifier, id)))
			if err != nil {
				t.Fatalf("%s, %s: %v", what, file, err)
			}
			o := a.message.Options
			if got := string(o.Get(dhcpv4.OptionBootfileName)); got != file+"\x00" {
				t.Errorf("%s names %q", what, got)
			}
			if got := string(o.Get(dhcpv4.OptionTFTPServerName)); got != "192.0.2.1\x00" {
				t.Errorf("%s names the server %q", what, got)
			}
			if got := o.Get(dhcpv4.OptionClientMachineIdentifier); !slices.Equal(got, id) {
				t.Errorf("%s has the identifier %q", what, got)
			}
		}
		for _, id := range [][]byte{{}, make([]byte, mostIdentifier+1), make([]byte, 900)} {
			a, err := of(also(ipxe, dhcpv4.WithGeneric(dhcpv4.OptionClientMachineIdentifier, id)))
			if err != nil || a.message.Options.Has(dhcpv4.OptionClientMachineIdentifier) {
				t.Errorf("%s to an identifier of %d bytes: %v, %v", what, len(id), a.message, err)
			}
		}
	}
}

// Who gets nothing to load is named in the log, with the reason.
func TestMachinesWithoutALoader(t *testing.T) {
	for _, proxy := range []bool{false, true} {
		s, seen := newTestServer(t, proxy)
		var said strings.Builder
		s.o.Logger = slog.New(slog.NewTextHandler(&said, nil))
		told := ""
		s.o.Lacks = func(mac, loader string) { told = mac + " " + loader }
		for kind, want := range map[iana.Arch]string{iana.EFI_IA32: "ipxe-i386.efi",
			iana.EFI_ARM32: "EFI ARM32", iana.EFI_RISCV64: "EFI RISC-V 64-bit"} {
			said.Reset()
			told = ""
			if a, err := s.answer(message(t, dhcpv4.MessageTypeDiscover, pxe(kind))); err == nil &&
				a.message.BootFileName != "" {
				t.Errorf("%s loads %s", kind, a.message.BootFileName)
			}
			if got := said.String(); !strings.Contains(got, want) ||
				!strings.Contains(got, card0.String()) || !strings.Contains(got, kind.String()) {
				t.Errorf("%s: the log says %q", kind, got)
			}
			if !proxy { // an offer may go to nobody
				if _, err := s.answer(message(t, dhcpv4.MessageTypeInform, pxe(kind))); told == "" ||
					err != nil {
					t.Errorf("%s: %q lacks a loader, %v", kind, told, err)
				}
			}
			loader := fmt.Sprint("a loader for kind ", uint16(kind))
			if kind == iana.EFI_IA32 {
				loader = want
			}
			if told != card0.String()+" "+loader {
				t.Errorf("%s: %q lacks a loader", kind, told)
			}
		}
		if len(*seen) > 0 {
			t.Errorf("seen %v", *seen)
		}
	}
}

// What is not for this server has no answer, and who asks for what it cannot have is told so.
func TestRequestsThatAreRefused(t *testing.T) {
	s, _ := newTestServer(t, false)
	for what, packet := range map[string][]byte{
		"of another server": message(t, dhcpv4.MessageTypeRequest,
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(192, 0, 2, 9)))),
		"by a relay": message(t, dhcpv4.MessageTypeDiscover,
			dhcpv4.WithRelay(net.IPv4(198, 51, 100, 1))),
		"an answer": message(t, dhcpv4.MessageTypeOffer, func(m *dhcpv4.DHCPv4) {
			m.OpCode = dhcpv4.OpcodeBootReply
		}),
		"of no kind":        message(t, dhcpv4.MessageTypeNak),
		"a card of 8 bytes": message(t, dhcpv4.MessageTypeDiscover, dhcpv4.WithHwAddr(make([]byte, 8))),
		"nothing":           nil,
		"a part":            message(t, dhcpv4.MessageTypeDiscover)[:200],
	} {
		if a, err := s.answer(packet); err == nil {
			t.Errorf("%s is answered with %s", what, a.message.Summary())
		}
	}
	for _, wants := range []net.IP{net.IPv4(192, 0, 2, 1), net.IPv4(10, 0, 0, 1),
		net.IPv4(192, 0, 2, 255)} {
		a, err := s.answer(message(t, dhcpv4.MessageTypeRequest,
			dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(wants))))
		if err != nil || a.message.MessageType() != dhcpv4.MessageTypeNak {
			t.Errorf("%s is wanted: %+v, %v", wants, a, err)
		}
	}
}

// A proxy gives no addresses, and answers nobody but who wants to load something.
func TestAProxy(t *testing.T) {
	s, _ := newTestServer(t, true)
	got, err := s.answer(message(t, dhcpv4.MessageTypeDiscover, pxe(iana.EFI_X86_64)))
	if err != nil {
		t.Fatal(err)
	}
	if m := got.message; m.MessageType() != dhcpv4.MessageTypeOffer || !m.YourIPAddr.IsUnspecified() ||
		m.ClassIdentifier() != pxeClass || m.BootFileName != "ipxe.efi" {
		t.Errorf("%s", m.Summary())
	}
	for what, packet := range map[string][]byte{
		"a system":  message(t, dhcpv4.MessageTypeDiscover),
		"a request": message(t, dhcpv4.MessageTypeRequest, pxe(iana.EFI_X86_64)),
	} {
		if a, err := s.answer(packet); !errors.Is(err, errIgnored) {
			t.Errorf("%s is answered with %+v, %v", what, a, err)
		}
	}
	from := netip.MustParseAddrPort("192.0.2.77:4011")
	got, err = s.bootServer(message(t, dhcpv4.MessageTypeRequest, ipxe), from)
	if err != nil || got.to != from || got.message.MessageType() != dhcpv4.MessageTypeAck ||
		!strings.Contains(got.message.BootFileName, "script?mac=") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRanges(t *testing.T) {
	for text, want := range map[string]string{"192.0.2.1/24": "192.0.2.128 192.0.2.254",
		"10.0.0.1/30": "10.0.0.2 10.0.0.2", "10.1.2.3/8": "10.255.0.0 10.255.255.254"} {
		first, last := upperHalf(netip.MustParsePrefix(text))
		if got := first.String() + " " + last.String(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, bad := range [][2]string{{"192.0.2.9", "192.0.2.8"}, {"10.0.0.1", "192.0.2.9"},
		{"192.0.2.9", ""}} {
		first, _ := netip.ParseAddr(bad[0])
		last, _ := netip.ParseAddr(bad[1])
		if _, err := newServer(Options{First: first, Last: last},
			netip.MustParsePrefix("192.0.2.1/24")); err == nil {
			t.Errorf("%v is a range", bad)
		}
	}
}

// FuzzAnswer: anything may come over the network.
func FuzzAnswer(f *testing.F) {
	f.Add(message(f, dhcpv4.MessageTypeDiscover, pxe(iana.INTEL_X86PC)), true)
	f.Add(message(f, dhcpv4.MessageTypeRequest, ipxe,
		dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.IPv4(192, 0, 2, 130)))), false)
	f.Add(message(f, dhcpv4.MessageTypeInform), false)
	served, _ := newTestServer(f, false)
	proxy, _ := newTestServer(f, true)
	f.Fuzz(func(t *testing.T, packet []byte, asProxy bool) {
		s := served
		if asProxy {
			s = proxy
		}
		answers := []func() (answer, error){
			func() (answer, error) { return s.answer(packet) },
			func() (answer, error) { return s.bootServer(packet, netip.MustParseAddrPort("192.0.2.7:1")) },
		}
		for _, of := range answers {
			a, err := of()
			if err != nil {
				continue
			}
			given := addr(a.message.YourIPAddr)
			if given.IsValid() && (asProxy || !s.leases.gives(given)) {
				t.Errorf("it gives %s", given)
			}
			if len(a.message.ToBytes()) > mostMessage {
				t.Errorf("an answer of %d bytes", len(a.message.ToBytes()))
			}
		}
	})
}

// Package dhcp gives machines on one interface their addresses, and tells them what to load: the
// boot loader by TFTP or HTTP, and iPXE its script. As a proxy it leaves addresses to another
// server. It is the one package that imports insomniacslk/dhcp. Sources: RFC 2131 and 2132, the PXE
// specification 2.1, RFC 4578, iPXE's page on chainloading.
package dhcp

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"dalmatiner/access/state"
)

// Options say who is served.
type Options struct {
	Interface string
	Proxy     bool // another server gives addresses

	// First and Last are the addresses that are given; where they are zero, the upper half of the
	// interface's network.
	First, Last netip.Addr
	Router, DNS netip.Addr // that machines are told; may be zero

	// the port at which devices find their script and boot loaders, at the address of the interface
	HTTP   uint16
	Script string // the path of a script, to which a MAC address is added
	Loader string // the path of the boot loaders, to which a name is added
	// Loaders are the names of the files that machines without iPXE load, and Has reports whether
	// there is one of them.
	Loaders Loaders
	Has     func(name string) bool

	State *state.File // with Migration
	Known func(mac string) bool
	// Seen is told that a machine has asked what to load, with a firmware of its own or with iPXE.
	Seen func(mac string, ipxe bool)
	// Lacks is told that a machine has asked what to load, and that this is not there.
	Lacks  func(mac, loader string)
	Now    func() time.Time
	Logger *slog.Logger
}

// Loaders are names of files of iPXE: for BIOS, for UEFI of x86 with 64 and 32 bits, and for UEFI
// of ARM64.
type Loaders struct{ BIOS, UEFI, UEFI32, ARM64 string }

// Debian are the names in Debian's package ipxe, and those that others give to files which it has
// not.
var Debian = Loaders{
	BIOS:   "undionly.kpxe",
	UEFI:   "ipxe.efi",
	UEFI32: "ipxe-i386.efi",
	ARM64:  "ipxe-arm64.efi",
}

// server answers messages. It is not for concurrent use.
type server struct {
	o      Options
	self   netip.Prefix // of the interface
	leases leases       // not as a proxy
	warned time.Time    // that no address is free
}

// newServer returns one for an interface that has an address.
func newServer(o Options, self netip.Prefix) (*server, error) {
	s := &server{o: o, self: self}
	if o.Proxy {
		return s, nil
	}
	first, last := o.First, o.Last
	if !first.IsValid() && !last.IsValid() {
		first, last = upperHalf(self)
	}
	network, broadcast := self.Masked().Addr(), Broadcast(self)
	switch {
	case !self.Contains(first) || !self.Contains(last) || last.Less(first):
		return nil, fmt.Errorf(
			"addresses %s to %s: they are to be in %s, the network of %s, and in order", first, last,
			self.Masked(), o.Interface)
	case distance(first, last) >= mostAddresses:
		return nil, fmt.Errorf("addresses %s to %s: these are more than %d: name a smaller range", first,
			last, mostAddresses)
	}
	s.leases = leases{file: o.State, first: first, last: last, now: o.Now, known: o.Known,
		except: map[netip.Addr]bool{self.Addr(): true, network: true, broadcast: true, o.Router: true,
			o.DNS: true}}
	return s, openLeases(&s.leases)
}

// upperHalf returns the upper half of a network, without its last address.
func upperHalf(p netip.Prefix) (first, last netip.Addr) {
	low, high := number(p.Masked().Addr()), number(Broadcast(p))
	return address(max(low+(high-low)/2+1, high-min(high-low, mostAddresses-1))), address(high - 1)
}

func number(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func address(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// Broadcast returns the last address of an IPv4 network, by which all its machines are reached.
func Broadcast(p netip.Prefix) netip.Addr {
	return address(number(p.Masked().Addr()) | ^uint32(0)>>p.Bits())
}

func distance(first, last netip.Addr) uint32 { return number(last) - number(first) }

// answer is a message and where it goes.
type answer struct {
	message *dhcpv4.DHCPv4
	to      netip.AddrPort
}

// The ports of DHCP, and of a boot server of PXE.
const (
	serverPort = 67
	clientPort = 68
	pxePort    = 4011
)

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// errIgnored is the error of messages that are not for this server.
var errIgnored = errors.New("it is not for this server")

// answer returns what is said to a message that came to the port of DHCP.
func (s *server) answer(packet []byte) (answer, error) {
	m, err := s.parse(packet)
	if err != nil {
		return answer{}, err
	}
	if s.o.Proxy {
		if m.MessageType() != dhcpv4.MessageTypeDiscover || !s.loads(m) {
			return answer{}, errIgnored
		}
		return s.proxied(m, dhcpv4.MessageTypeOffer, netip.AddrPortFrom(broadcast, clientPort))
	}
	mac := m.ClientHWAddr.String()
	switch m.MessageType() {
	case dhcpv4.MessageTypeDiscover:
		a, err := s.leases.offer(mac, addr(m.RequestedIPAddress()))
		if err != nil {
			return answer{}, err
		}
		return s.reply(m, dhcpv4.MessageTypeOffer, a)
	case dhcpv4.MessageTypeRequest:
		return s.request(m, mac)
	case dhcpv4.MessageTypeRelease:
		return answer{}, errors.Join(errIgnored, s.leases.release(mac, addr(m.ClientIPAddr)))
	case dhcpv4.MessageTypeDecline:
		s.o.Logger.Warn("a machine says that its address is used by another one", "mac", mac, "address",
			m.RequestedIPAddress())
		return answer{}, errors.Join(errIgnored, s.leases.spoil(mac, addr(m.RequestedIPAddress())))
	case dhcpv4.MessageTypeInform:
		return s.reply(m, dhcpv4.MessageTypeAck, netip.Addr{})
	}
	return answer{}, errIgnored
}

// parse reads a message, and refuses what no machine of this network sends.
func (s *server) parse(packet []byte) (*dhcpv4.DHCPv4, error) {
	m, err := dhcpv4.FromBytes(packet)
	switch {
	case err != nil:
		return nil, err
	case m.OpCode != dhcpv4.OpcodeBootRequest || m.HWType != iana.HWTypeEthernet ||
		len(m.ClientHWAddr) != 6:
		return nil, errors.New("it is no request of an Ethernet card")
	case !m.GatewayIPAddr.IsUnspecified():
		return nil, errors.New(
			"a relay has sent it: this server serves the network of its interface only")
	}
	return m, nil
}

// request gives an address, or says that the machine cannot have it.
func (s *server) request(m *dhcpv4.DHCPv4, mac string) (answer, error) {
	if chosen := m.ServerIdentifier(); chosen != nil && addr(chosen) != s.self.Addr() {
		return answer{}, errIgnored // it has chosen another server
	}
	wants := addr(m.RequestedIPAddress())
	if !wants.IsValid() {
		wants = addr(m.ClientIPAddr)
	}
	ok := false
	if wants.IsValid() {
		var err error
		if ok, err = s.leases.take(mac, wants); err != nil {
			return answer{}, err
		}
	}
	if !ok {
		return s.refuse(m)
	}
	return s.reply(m, dhcpv4.MessageTypeAck, wants)
}

func (s *server) refuse(m *dhcpv4.DHCPv4) (answer, error) {
	r, err := dhcpv4.NewReplyFromRequest(m, dhcpv4.WithMessageType(dhcpv4.MessageTypeNak),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(s.ip())))
	return answer{r, netip.AddrPortFrom(broadcast, clientPort)}, err
}

// reply tells a machine its address, the network, and what to load.
func (s *server) reply(m *dhcpv4.DHCPv4, kind dhcpv4.MessageType, a netip.Addr) (answer, error) {
	options := []dhcpv4.Modifier{
		dhcpv4.WithMessageType(kind),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(s.ip())),
		dhcpv4.WithNetmask(net.CIDRMask(s.self.Bits(), 32)),
	}
	to := netip.AddrPortFrom(broadcast, clientPort)
	if a.IsValid() {
		options = append(options, dhcpv4.WithYourIP(net.IP(a.AsSlice())),
			dhcpv4.WithLeaseTime(uint32(leaseFor.Seconds())))
	}
	if has := addr(m.ClientIPAddr); has.IsValid() {
		to = netip.AddrPortFrom(has, clientPort)
	}
	if r := s.o.Router; r.IsValid() {
		options = append(options, dhcpv4.WithOption(dhcpv4.OptRouter(net.IP(r.AsSlice()))))
	}
	if d := s.o.DNS; d.IsValid() {
		options = append(options, dhcpv4.WithOption(dhcpv4.OptDNS(net.IP(d.AsSlice()))))
	}
	r, err := dhcpv4.NewReplyFromRequest(m,
		append(append(options, identifier(m)...), s.loading(m)...)...)
	return answer{r, to}, err
}

// proxied tells a machine what to load, and nothing else.
func (s *server) proxied(m *dhcpv4.DHCPv4, kind dhcpv4.MessageType,
	to netip.AddrPort) (answer, error) {
	class := m.ClassIdentifier()
	if !strings.HasPrefix(class, httpClass) {
		class = pxeClass
	} else {
		class = httpClass
	}
	loading := s.loading(m)
	if len(loading) == 0 {
		return answer{}, errIgnored
	}
	// PXE_DISCOVERY_CONTROL: load what is named here, and ask no boot server
	loadNow := []byte{6, 1, 8, 255}
	options := append([]dhcpv4.Modifier{
		dhcpv4.WithMessageType(kind),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(s.ip())),
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier(class)),
		dhcpv4.WithGeneric(dhcpv4.OptionVendorSpecificInformation, loadNow),
	}, loading...)
	r, err := dhcpv4.NewReplyFromRequest(m, append(options, identifier(m)...)...)
	return answer{r, to}, err
}

// mostIdentifier is the length of the longest identifier of a machine that is returned. RFC 4578
// wants 17 bytes.
const mostIdentifier = 64

// identifier returns the identifier of a machine to it: some firmware takes no answer without.
// Source: RFC 4578, §2.3.
func identifier(m *dhcpv4.DHCPv4) []dhcpv4.Modifier {
	id := m.Options.Get(dhcpv4.OptionClientMachineIdentifier)
	if len(id) == 0 || len(id) > mostIdentifier {
		return nil
	}
	return []dhcpv4.Modifier{dhcpv4.WithGeneric(dhcpv4.OptionClientMachineIdentifier, id)}
}

// bootServer returns what is said to a message that came to the port of boot servers: a machine
// asks there that got its address from another server.
func (s *server) bootServer(packet []byte, from netip.AddrPort) (answer, error) {
	m, err := s.parse(packet)
	if err != nil {
		return answer{}, err
	}
	if m.MessageType() != dhcpv4.MessageTypeRequest && m.MessageType() != dhcpv4.MessageTypeInform ||
		!s.loads(m) {
		return answer{}, errIgnored
	}
	return s.proxied(m, dhcpv4.MessageTypeAck, from)
}

// The classes of machines that want something to load. Source: the PXE specification 2.1; UEFI 2.5,
// §23.7.
const (
	pxeClass  = "PXEClient"
	httpClass = "HTTPClient"
)

// optionIPXE is what iPXE adds. Source: iPXE's dhcp.h, DHCP_EB_ENCAP.
const optionIPXE = dhcpv4.GenericOptionCode(175)

// noProxy lets iPXE not wait ten seconds for a proxy. Source: iPXE's page on dhcpd, option
// no-pxedhcp (175.176).
var noProxy = []byte{176, 1, 1}

func isIPXE(m *dhcpv4.DHCPv4) bool {
	return m.Options.Has(optionIPXE) || slices.Contains(m.UserClass(), "iPXE")
}

// loads reports whether a machine wants something to load.
func (s *server) loads(m *dhcpv4.DHCPv4) bool {
	class := m.ClassIdentifier()
	return isIPXE(m) || strings.HasPrefix(class, pxeClass) || strings.HasPrefix(class, httpClass)
}

// loading returns what a machine is to load: a script if it is iPXE, else an iPXE for its kind;
// where there is none, what it can show of that. Nothing for systems.
func (s *server) loading(m *dhcpv4.DHCPv4) []dhcpv4.Modifier {
	if !s.loads(m) {
		return nil
	}
	mac, self := m.ClientHWAddr.String(), netip.AddrPortFrom(s.self.Addr(), s.o.HTTP)
	if isIPXE(m) {
		if s.asks(m) {
			s.o.Seen(mac, true)
		}
		list := s.named(fmt.Sprintf("http://%s%s?mac=%s", self, s.o.Script, mac))
		if !s.o.Proxy {
			list = append(list, dhcpv4.WithGeneric(optionIPXE, noProxy))
		}
		return list
	}
	name, http := s.loader(kinds(m))
	http = http || strings.HasPrefix(m.ClassIdentifier(), httpClass)
	switch {
	case name == "":
		s.o.Logger.Warn("a machine of a kind that is not known wants to boot", "mac", mac, "kind",
			fmt.Sprint(kinds(m)))
		return s.shows(m, name)
	case !s.o.Has(name):
		s.o.Logger.Warn("a machine wants to boot, and the loader of its kind is not there: put one "+
			"into the directory of --boot-files", "mac", mac, "kind", fmt.Sprint(kinds(m)), "loader", name)
		return s.shows(m, name)
	}
	if s.asks(m) {
		s.o.Seen(mac, false)
	}
	if http {
		return append(s.named(fmt.Sprintf("http://%s%s%s", self, s.o.Loader, name)),
			dhcpv4.WithOption(dhcpv4.OptClassIdentifier(httpClass)))
	}
	return s.named(name)
}

// shows returns what a machine without a loader is to show: nothing over HTTP, where no firmware
// can.
func (s *server) shows(m *dhcpv4.DHCPv4, name string) []dhcpv4.Modifier {
	if s.asks(m) {
		s.o.Lacks(m.ClientHWAddr.String(), cmp.Or(name, fmt.Sprintf("a loader for kind %d", kinds(m)[0])))
	}
	if strings.HasPrefix(m.ClassIdentifier(), httpClass) {
		return nil
	}
	return lacking(kinds(m), name)
}

// asks reports whether a machine has made up its mind: an offer alone may go to nobody. A proxy
// hears no more than that.
func (s *server) asks(m *dhcpv4.DHCPv4) bool {
	return s.o.Proxy || m.MessageType() != dhcpv4.MessageTypeDiscover
}

// named names a file, and this server as the one that has it. Each text ends with a zero, as
// dnsmasq's: much firmware reads up to one, and would take the byte of the next option for a part
// of the name.
func (s *server) named(file string) []dhcpv4.Modifier {
	const end = "\x00"
	list := []dhcpv4.Modifier{dhcpv4.WithServerIP(s.ip()),
		dhcpv4.WithOption(dhcpv4.OptTFTPServerName(s.self.Addr().String() + end)),
		dhcpv4.WithOption(dhcpv4.OptBootFileName(file + end))}
	const field = 127 // of the field of BOOTP
	if len(file) <= field {
		list = append(list, func(m *dhcpv4.DHCPv4) { m.BootFileName = file })
	}
	return list
}

// kinds returns what a machine is. One that does not say it by the option for that says it by its
// class, as in PXEClient:Arch:00007:UNDI:003016. Who says nothing is a PC, and UEFI where it loads
// over HTTP. Source: RFC 4578; the PXE specification 2.1, table 2-1.
func kinds(m *dhcpv4.DHCPv4) []iana.Arch {
	if list := m.ClientArch(); len(list) > 0 {
		return list
	}
	class := m.ClassIdentifier()
	_, text, _ := strings.Cut(class, ":Arch:")
	text, _, _ = strings.Cut(text, ":")
	if n, err := strconv.ParseUint(text, 10, 16); err == nil {
		return []iana.Arch{iana.Arch(n)}
	}
	if strings.HasPrefix(class, httpClass) {
		return []iana.Arch{iana.EFI_X86_64_HTTP}
	}
	return []iana.Arch{iana.INTEL_X86PC}
}

// loader returns the name of the loader for a kind of machine, and whether it comes by HTTP.
// Source: RFC 4578, and IANA's list of Processor Architecture Types.
func (s *server) loader(kinds []iana.Arch) (name string, http bool) {
	for _, k := range kinds {
		switch k {
		case iana.INTEL_X86PC:
			return s.o.Loaders.BIOS, false
		case iana.EFI_X86_64, iana.EFI_BC:
			return s.o.Loaders.UEFI, false
		case iana.EFI_X86_64_HTTP, iana.EFI_BC_HTTP:
			return s.o.Loaders.UEFI, true
		case iana.EFI_IA32:
			return s.o.Loaders.UEFI32, false
		case iana.EFI_X86_HTTP:
			return s.o.Loaders.UEFI32, true
		case iana.EFI_ARM64:
			return s.o.Loaders.ARM64, false
		case iana.EFI_ARM64_HTTP:
			return s.o.Loaders.ARM64, true
		}
	}
	return "", false
}

func (s *server) ip() net.IP { return net.IP(s.self.Addr().AsSlice()) }

// addr returns an address of four bytes that is not 0.0.0.0, else none.
func addr(ip net.IP) netip.Addr {
	a, ok := netip.AddrFromSlice(ip.To4())
	if !ok || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

package dhcp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/insomniacslk/dhcp/iana"
)

// Kind is what a machine says of itself.
type Kind struct {
	UEFI bool // else BIOS
	IPXE bool // it runs iPXE already
}

// Told is what a machine was told.
type Told struct {
	Address netip.Prefix
	Server  netip.Addr // that gives the address
	Loads   string     // the name of a file, or a URI; "" if nothing was named
	From    netip.Addr // the server of the file
}

// The times of a client.
const (
	askEvery = 700 * time.Millisecond
	askTimes = 3
)

type client struct {
	c *nclient4.Client
}

// newClient returns a client at an interface, which needs no address. It uses a raw socket, of the
// network namespace of the thread that calls.
func newClient(name string, mac net.HardwareAddr) (*client, error) {
	c, err := nclient4.New(name, nclient4.WithHWAddr(mac), nclient4.WithTimeout(askEvery),
		nclient4.WithRetry(askTimes))
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", name, err)
	}
	return &client{c}, nil
}

// Close closes its socket.
func (c *client) Close() { _ = c.c.Close() } // nothing is lost with it

// discover returns the first offer of an address, nil if there is none.
func (c *client) discover(ctx context.Context, options ...dhcpv4.Modifier) (*dhcpv4.DHCPv4, error) {
	m, err := dhcpv4.NewDiscovery(c.c.InterfaceAddr(), options...)
	if err != nil {
		return nil, err
	}
	offers := func(m *dhcpv4.DHCPv4) bool {
		return m.MessageType() == dhcpv4.MessageTypeOffer && addr(m.YourIPAddr).IsValid()
	}
	offer, err := c.c.SendAndRead(ctx, nclient4.DefaultServers, m, offers)
	if errors.Is(err, nclient4.ErrNoResponse) {
		return nil, nil
	}
	return offer, err
}

// Ask gets an address at an interface as a machine that boots does, and what it is to load. It uses
// the network namespace of the thread that calls.
func Ask(ctx context.Context, name string, mac net.HardwareAddr, kind Kind) (Told, error) {
	c, err := newClient(name, mac)
	if err != nil {
		return Told{}, err
	}
	defer c.Close()
	arch := iana.INTEL_X86PC
	if kind.UEFI {
		arch = iana.EFI_X86_64
	}
	says := []dhcpv4.Modifier{dhcpv4.WithOption(dhcpv4.OptClientArch(arch)),
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier(pxeClass)),
		dhcpv4.WithRequestedOptions(dhcpv4.OptionSubnetMask, dhcpv4.OptionBootfileName,
			dhcpv4.OptionTFTPServerName)}
	if kind.IPXE {
		says = append(says, dhcpv4.WithOption(dhcpv4.OptUserClass("iPXE")),
			dhcpv4.WithGeneric(optionIPXE, []byte{255}))
	}
	offer, err := c.discover(ctx, says...)
	if err != nil {
		return Told{}, err
	}
	if offer == nil {
		return Told{}, fmt.Errorf("interface %s: nobody offers an address", name)
	}
	lease, err := c.c.RequestFromOffer(ctx, offer, says...)
	if err != nil {
		return Told{}, fmt.Errorf("interface %s: %w", name, err)
	}
	m := lease.ACK
	bits, _ := m.SubnetMask().Size()
	t := Told{
		Address: netip.PrefixFrom(addr(m.YourIPAddr), bits),
		Server:  addr(m.ServerIdentifier()),
		Loads:   m.BootFileNameOption(),
		From:    addr(m.ServerIPAddr),
	}
	if t.Loads == "" {
		t.Loads = m.BootFileName
	}
	return t, nil
}

// randomMAC returns an address that no card has.
func randomMAC() net.HardwareAddr {
	mac := make(net.HardwareAddr, 6)
	_, _ = rand.Read(mac)  // it never fails
	mac[0] = mac[0]&^1 | 2 // of one machine, and of nobody's making
	return mac
}

package emulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"dalmatiner/ducks/internal/dhcp"
	"dalmatiner/ducks/internal/initiator"
	"dalmatiner/ducks/internal/tftp"
)

// Times are how long the parts of a boot took.
type Times struct {
	Address time.Duration // of the firmware, and of iPXE
	Load    time.Duration // iPXE
	Script  time.Duration
	Login   time.Duration
	Read    time.Duration // the first 4 KiB
}

// Whole returns the sum.
func (t *Times) Whole() time.Duration { return t.Address + t.Load + t.Script + t.Login + t.Read }

// Running is a machine that has its disk.
type Running struct {
	Disk    *initiator.Disk
	Session *initiator.Session
	Address netip.Prefix
	Script  string
	Times   Times

	m    *Machine
	done string // where the system says that it is up
}

// mostScript is the longest script that is read.
const mostScript = 64 << 10

// ErrWaits is the error of a machine that is told to wait, in words for people.
var ErrWaits = errors.New("it gets no disk")

// Boot boots from the address of the card to the first block of the disk.
func (m *Machine) Boot(ctx context.Context, uefi bool) (*Running, error) {
	r := &Running{m: m}
	began := time.Now()
	split := func(into *time.Duration) {
		now := time.Now()
		*into += now.Sub(began)
		began = now
	}
	told, err := m.ask(ctx, dhcp.Kind{UEFI: uefi})
	split(&r.Times.Address)
	if err == nil {
		err = m.load(ctx, told)
		split(&r.Times.Load)
	}
	if err == nil {
		told, err = m.ask(ctx, dhcp.Kind{UEFI: uefi, IPXE: true})
		split(&r.Times.Address)
	}
	if err != nil {
		return nil, err
	}
	r.Address = told.Address
	if r.Script, err = m.get(ctx, told.Loads, mostScript); err != nil {
		return nil, err
	}
	split(&r.Times.Script)
	r.done = strings.Split(told.Loads, "/boot/")[0] + "/boot/v1/up"
	if err := r.login(ctx); err != nil {
		return nil, err
	}
	split(&r.Times.Login)
	if err := r.Disk.ReadAt(ctx, make([]byte, 4096), 0); err != nil {
		r.Session.Close()
		return nil, err
	}
	split(&r.Times.Read)
	return r, nil
}

// ask asks for an address, and takes it.
func (m *Machine) ask(ctx context.Context, kind dhcp.Kind) (told dhcp.Told, err error) {
	err = m.Do(func() (err error) {
		told, err = dhcp.Ask(ctx, card, m.MAC, kind)
		return err
	})
	if err == nil {
		err = m.address(told.Address)
	}
	return told, err
}

// load loads what the firmware was told.
func (m *Machine) load(ctx context.Context, told dhcp.Told) error {
	if told.Loads == "" {
		return fmt.Errorf("%s: nothing to load was named", told.Server)
	}
	if strings.HasPrefix(told.Loads, "http:") {
		_, err := m.get(ctx, told.Loads, tftp.MaxFile)
		return err
	}
	return m.Do(func() error {
		_, err := tftp.Load(netip.AddrPortFrom(told.From, tftp.Port), told.Loads)
		return err
	})
}

func (m *Machine) client() *http.Client {
	return &http.Client{Timeout: 30 * time.Second,
		Transport: &http.Transport{DialContext: m.Dial, DisableKeepAlives: true}}
}

// get loads something over HTTP.
func (m *Machine) get(ctx context.Context, uri string, most int64) (string, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, nil)
	if err != nil {
		return "", err
	}
	r, err := m.client().Do(q)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(io.LimitReader(r.Body, most))
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", uri, r.Status)
	}
	return string(b), err
}

// What of a script is understood.
var (
	setLine  = regexp.MustCompile(`(?m)^set (initiator-iqn|username|password) (\S+)$`)
	bootLine = regexp.MustCompile(`(?m)^sanboot .*iscsi:(\S+)::(\d+):(\d+):(\S+)`)
	echoLine = regexp.MustCompile(`(?m)^echo (.*)$`)
)

// login does what the script says.
func (r *Running) login(ctx context.Context) error {
	disk := bootLine.FindStringSubmatch(r.Script)
	if disk == nil {
		said := ""
		if line := echoLine.FindStringSubmatch(r.Script); line != nil {
			said = line[1]
		}
		return fmt.Errorf("%w: %q", ErrWaits, said)
	}
	set := make(map[string]string)
	for _, line := range setLine.FindAllStringSubmatch(r.Script, -1) {
		set[line[1]] = line[2]
	}
	s, err := initiator.Login(ctx,
		initiator.Options{Address: net.JoinHostPort(strings.Trim(disk[1], "[]"), disk[2]),
			Target:    disk[4],
			Initiator: set["initiator-iqn"], User: set["username"], Secret: set["password"],
			Dial: func(ctx context.Context, address string) (net.Conn, error) {
				return r.m.Dial(ctx, "tcp", address)
			}})
	if err != nil {
		return err
	}
	r.Session = s
	if r.Disk, err = s.Disk(ctx, 1); err != nil {
		s.Close()
	}
	return err
}

// SayUp says that the system is up.
func (r *Running) SayUp(ctx context.Context) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.done, nil)
	if err != nil {
		return err
	}
	answer, err := r.m.client().Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		return fmt.Errorf("%s: %s", r.done, answer.Status)
	}
	return nil
}

// Off logs out, as a machine that is shut down.
func (r *Running) Off(ctx context.Context) error {
	defer r.Session.Close()
	return r.Session.Logout(ctx)
}

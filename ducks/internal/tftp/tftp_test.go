package tftp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serve serves a directory with a loader at a port of its own, and returns both.
func serve(t *testing.T) (dir string, at netip.AddrPort, seen chan netip.Addr) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "files")
	loader := bytes.Repeat([]byte("loader"), 20_000)
	for name, data := range map[string][]byte{"undionly.kpxe": loader, "Mixed.EFI": loader,
		"empty": nil, "../secret": []byte("secret")} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "sub"), 0o700),
			os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	at = free.LocalAddr().(*net.UDPAddr).AddrPort()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	seen = make(chan netip.Addr, 100)
	s, err := Start(at, Options{Files: Files{dir}, Seen: func(who netip.Addr) {
		seen <- who
	}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return dir, at, seen
}

// Machines load what is in the directory, and nothing that is not.
func TestLoaders(t *testing.T) {
	dir, at, seen := serve(t)
	want, err := os.ReadFile(filepath.Join(dir, "undionly.kpxe"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"undionly.kpxe", "/undionly.kpxe", "//undionly.kpxe",
		"./undionly.kpxe", "/./undionly.kpxe", ".//./undionly.kpxe",
		`\undionly.kpxe`, `\\undionly.kpxe`, `.\undionly.kpxe`, `\/undionly.kpxe`, "UNDIONLY.KPXE",
		"/Undionly.kpxe", "mixed.efi", "Mixed.EFI", `\MIXED.efi`,
		"undionly.kpxe\xff", "/undionly.kpxe\xff\xff", "undionly.kpxe\x80rest", "undionly.kpxeé",
		"UNDIONLY.KPXE\xff", "undionly.kpxe\x00rest", "undionly.kpxe\n", "undionly.kpxe\x7f"} {
		if got, err := Load(at, name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		select {
		case who := <-seen:
			if who.String() != "127.0.0.1" {
				t.Errorf("%s has loaded it", who)
			}
		default:
			t.Errorf("a machine has %s before that is seen", name)
		}
	}
	for _, name := range []string{"", "none", "../secret", "/../secret", "sub", "sub/../undionly.kpxe",
		".", "/", dir + "/undionly.kpxe", `..\secret`, `\..\secret`,
		"./../secret", "SUB", "sub/undionly.kpxe", "..", "../SECRET", "\xff", "\xffundionly.kpxe",
		"../secret\xff", "undionly", "undionly.kpxe2", "*", "undionly.kpx?", " undionly.kpxe"} {
		if got, err := Load(at, name); err == nil {
			t.Errorf("%q is given: %d bytes", name, len(got))
		}
	}
	if got, err := Load(at, "empty"); err != nil || len(got) > 0 {
		t.Errorf("an empty file: %d bytes, %v", len(got), err)
	}
}

// Packets that are none, and requests that nobody goes on with, keep nobody from loading.
func TestHostilePackets(t *testing.T) {
	_, at, _ := serve(t)
	conn, err := net.Dial("udp4", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, packet := range []string{"", "\x00", "\x00\x01", "\x00\x01undionly.kpxe",
		"\x00\x01undionly.kpxe\x00octet", "\x00\x02up\x00octet\x00",
		"\x00\x01undionly.kpxe\x00octet\x00blksize\x000\x00",
		"\x00\x01undionly.kpxe\x00octet\x00blksize\x00999999999\x00tsize\x00-1\x00",
		"\x00\x01undionly.kpxe\x00mail\x00",
		"\x00\x03\x00\x01data", "\x00\x04\xff\xff", "\x00\x05\x00\x00no\x00", "\xff\xff\xff\xff",
		"\x00\x01" + string(bytes.Repeat([]byte{'a'}, 1400)) + "\x00octet\x00"} {
		for range 20 {
			if _, err := conn.Write([]byte(packet)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, err := Load(at, "undionly.kpxe"); err != nil || len(got) != 120_000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// ask sends a request, and returns what is said to it.
func ask(t *testing.T, at netip.AddrPort, request string) string {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answer := make([]byte, 70_000)
	_, err = conn.WriteToUDPAddrPort([]byte(request), at)
	if err == nil {
		err = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	}
	if err != nil {
		t.Fatal(err)
	}
	n, from, err := conn.ReadFromUDPAddrPort(answer)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.WriteToUDPAddrPort([]byte("\x00\x05\x00\x00enough\x00"), from) // so that nobody waits
	return string(answer[:n])
}

// TestOptions: names of options and of modes are the same in all cases, and what is no option is
// passed over.
func TestOptions(t *testing.T) {
	_, at, _ := serve(t)
	first := "\x00\x03\x00\x01" + strings.Repeat("loader", 100)[:512]
	for request, want := range map[string]string{
		"octet\x00": first,
		"OCTET\x00": first,
		"octet\x00blksize\x001456\x00tsize\x000\x00":   "\x00\x06blksize\x001456\x00tsize\x00120000\x00",
		"OCTET\x00BLKSIZE\x001456\x00TSIZE\x000\x00":   "\x00\x06blksize\x001456\x00tsize\x00120000\x00",
		"Octet\x00TSize\x000\x00BlkSize\x00512\x00":    "\x00\x06blksize\x00512\x00tsize\x00120000\x00",
		"octet\x00Timeout\x003\x00":                    "\x00\x06timeout\x003\x00",
		"octet\x00windowsize\x004\x00tsize\x000\x00":   "\x00\x06tsize\x00120000\x00",
		"octet\x00multicast\x00\x00":                   first,
		"octet\x00blksize\x007\x00":                    first,
		"octet\x00blksize\x0099999999999999999999\x00": first,
		"octet\x00blksize\x00-1\x00":                   first,
		"octet\x00timeout\x000\x00":                    first,
		"octet\x00blksize":                             first,
		"octet\x00blksize\x001456":                     "\x00\x06blksize\x001456\x00",
		"octet":                                        first,
		"octet\x00tsize\x000\x00blksize":               "\x00\x06tsize\x00120000\x00",
		"netascii\x00": "\x00\x05\x00\x00\"netascii\": files are " +
			"given in mode octet\x00",
		"octet\x00blksize\x0065464\x00timeout\x00255\x00": "\x00\x06blksize\x0065464\x00" +
			"timeout\x00255\x00",
		"octet\x00blksize\x001000\x00utimeout\x00500000\x00": "\x00\x06blksize\x001000\x00",
	} {
		if got := ask(t, at, "\x00\x01undionly.kpxe\x00"+request); got != want {
			t.Errorf("%q is answered by %.80q", request, got)
		}
	}
	if got, want := ask(t, at, "\x00\x01none\x00octet\x00"),
		"\x00\x05\x00\x01"+ErrNone.Error()+"\x00"; got != want {
		t.Errorf("a file that is not there: %q", got)
	}
	if got := ask(t, at, "\x00\x02up\x00octet\x00"); got != "\x00\x05\x00\x00nobody writes here\x00" {
		t.Errorf("who writes is told %q", got)
	}
}

// TestLostPackets: what is lost is sent again, and an answer that comes twice moves nothing.
func TestLostPackets(t *testing.T) {
	dir, at, _ := serve(t)
	want, err := os.ReadFile(filepath.Join(dir, "undionly.kpxe"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.WriteToUDPAddrPort(
		[]byte("\x00\x01undionly.kpxe\x00octet\x00BLKSIZE\x0060000\x00"), at); err != nil {
		t.Fatal(err)
	}
	var got []byte
	packet := make([]byte, 70_000)
	for count, has := 0, uint16(0); ; count++ {
		n, from, err := conn.ReadFromUDPAddrPort(packet)
		if err != nil {
			t.Fatal(err)
		}
		number := binary.BigEndian.Uint16(packet[2:])
		if count == 1 {
			continue // it is lost: the first block
		}
		if packet[1] == options {
			number = 0
		} else if number == has+1 {
			has = number
			got = append(got, packet[4:n]...)
		}
		for range 2 {
			if _, err := conn.WriteToUDPAddrPort([]byte{0, ack, byte(number >> 8), byte(number)},
				from); err != nil {
				t.Fatal(err)
			}
		}
		if packet[1] == data && n < 4+60000 {
			break
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d came", len(got), len(want))
	}
}

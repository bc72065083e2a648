package tftp

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

// serve serves a directory with a loader at a port of its own, and returns both.
func serve(t *testing.T) (dir string, at netip.AddrPort, seen chan netip.Addr) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "files")
	loader := bytes.Repeat([]byte("loader"), 20_000)
	for name, data := range map[string][]byte{"undionly.kpxe": loader, "Mixed.EFI": loader, "empty": nil, "../secret": []byte("secret")} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "sub"), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
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
	s, err := Start(at, Options{Files: Files{dir}, Seen: func(who netip.Addr) { seen <- who }, Logger: slog.New(slog.DiscardHandler)})
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
	for _, name := range []string{"undionly.kpxe", "/undionly.kpxe", "//undionly.kpxe", "./undionly.kpxe", "/./undionly.kpxe", ".//./undionly.kpxe",
		`\undionly.kpxe`, `\\undionly.kpxe`, `.\undionly.kpxe`, `\/undionly.kpxe`, "UNDIONLY.KPXE", "/Undionly.kpxe", "mixed.efi", "Mixed.EFI", `\MIXED.efi`,
		"undionly.kpxe\xff", "/undionly.kpxe\xff\xff", "undionly.kpxe\x80rest", "undionly.kpxeé", "UNDIONLY.KPXE\xff", "undionly.kpxe\x00rest", "undionly.kpxe\n", "undionly.kpxe\x7f"} {
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
	for _, name := range []string{"", "none", "../secret", "/../secret", "sub", "sub/../undionly.kpxe", ".", "/", dir + "/undionly.kpxe", `..\secret`, `\..\secret`,
		"./../secret", "SUB", "sub/undionly.kpxe", "..", "../SECRET", "\xff", "\xffundionly.kpxe", "../secret\xff", "undionly", "undionly.kpxe2", "*", "undionly.kpx?", " undionly.kpxe"} {
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
	for _, packet := range []string{"", "\x00", "\x00\x01", "\x00\x01undionly.kpxe", "\x00\x01undionly.kpxe\x00octet", "\x00\x02up\x00octet\x00",
		"\x00\x01undionly.kpxe\x00octet\x00blksize\x000\x00", "\x00\x01undionly.kpxe\x00octet\x00blksize\x00999999999\x00tsize\x00-1\x00", "\x00\x01undionly.kpxe\x00mail\x00",
		"\x00\x03\x00\x01data", "\x00\x04\xff\xff", "\x00\x05\x00\x00no\x00", "\xff\xff\xff\xff", "\x00\x01" + string(bytes.Repeat([]byte{'a'}, 1400)) + "\x00octet\x00"} {
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

package command

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"dalmatiner/ducks/internal/duckstest"
	"dalmatiner/ducks/internal/emulate"
	"dalmatiner/ducks/internal/initiator"
)

const (
	server   = "10.77.0.1"
	bridge   = "br0"
	firstMAC = "02:00:00:00:00:02"
)

// shell runs commands as the shell does.
type shell struct {
	t     *testing.T
	flags []string
}

// run runs a command, and returns what it prints, an error as its last line.
func (s *shell) run(line string) string {
	s.t.Helper()
	var out bytes.Buffer
	parser, err := kong.New(&Grammar{}, kong.Name("ducks"), kong.Exit(func(int) {}),
		kong.Writers(&out, &out))
	if err != nil {
		s.t.Fatal(err)
	}
	parsed, err := parser.Parse(append(words(line), s.flags...))
	if err == nil {
		parsed.BindTo(s.t.Context(), (*context.Context)(nil))
		parsed.BindTo(&out, (*io.Writer)(nil))
		err = parsed.Run()
	}
	if err != nil {
		out.WriteString("error: " + err.Error() + "\n")
	}
	return out.String()
}

// words splits a line at spaces, but for those within quotes.
func words(line string) (list []string) {
	for _, w := range regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(line, -1) {
		list = append(list, strings.Trim(w, `"`))
	}
	return list
}

// says runs a command, and checks that it prints each of some texts.
func (s *shell) says(line string, texts ...string) string {
	s.t.Helper()
	got := s.run(line)
	flat := strings.Join(strings.Fields(got), " ")
	for _, text := range texts {
		if !strings.Contains(flat, text) {
			s.t.Errorf("%s says\n%s, not %q", line, got, text)
		}
	}
	if len(texts) == 0 && got != "" {
		s.t.Errorf("%s says %q", line, got)
	}
	return got
}

// shows reports whether a command says a text.
func (s *shell) shows(line, text string) bool {
	s.t.Helper()
	return strings.Contains(strings.Join(strings.Fields(s.run(line)), " "), text)
}

// machine is one at the other end of a cable.
type machine struct {
	t   *testing.T
	mac net.HardwareAddr
	*emulate.Machine
}

// newMachine plugs a machine in.
func newMachine(t *testing.T) *machine {
	t.Helper()
	mac, err := net.ParseMAC(firstMAC)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, mac: mac}
	m.plug()
	t.Cleanup(func() { _ = m.Unplug() })
	return m
}

func (m *machine) plug() {
	m.t.Helper()
	var err error
	if m.Machine, err = emulate.Plug(bridge, m.mac); err != nil {
		m.t.Fatal(err)
	}
}

// boots boots it, and returns its disk. The machine is switched off with off.
func (m *machine) boots() (disk *initiator.Disk, off func()) {
	m.t.Helper()
	r, err := m.Boot(m.t.Context(), false)
	if err != nil {
		m.t.Fatal(err)
	}
	return r.Disk, r.Session.Close
}

// newBridge makes the network of a room.
func newBridge(t *testing.T) {
	t.Helper()
	duckstest.Run(t, "mount", "-t", "tmpfs", "tmpfs", "/run")
	duckstest.Run(t, "ip", "link", "add", bridge, "address", "02:00:00:00:00:01", "type", "bridge")
	duckstest.Run(t, "ip", "addr", "add", server+"/24", "dev", bridge)
	duckstest.Run(t, "ip", "link", "set", bridge, "up")
}

// loaders returns a directory with what stands for boot loaders.
func loaders(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"undionly.kpxe", "ipxe.efi"} {
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte(name), 10_000),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
)

// TestDirectoryIsLocked: a second node on the same directory ends, names it,
// and does no harm.
func TestDirectoryIsLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startNode(t, dir)
	metric, slot := key(t, "a"), past(time.Hour)
	send(t, n, "locked", metric, slot, point.FromInt(1))
	second := launch(t, dir)
	if code := second.wait(); code != 1 {
		t.Errorf("the exit code is %d", code)
	}
	if text := second.log.String(); !strings.Contains(text, dir) ||
		!strings.Contains(text, fmt.Sprintf("in use by process %d ", n.cmd.Process.Pid)) {
		t.Errorf("it says\n%s", text)
	}
	// With the ports of the first one it does not come as far as the directory.
	if r := run(t, "ddb", "serve", "--data-dir", dir, "--tcp-addr", n.tcp, "--http-addr",
		n.http); r.code != 1 ||
		!strings.Contains(r.errOut, fmt.Sprintf("process %d has data directory %s in use",
			n.cmd.Process.Pid, dir)) {
		t.Errorf("with the same ports it says, code %d:\n%s", r.code, r.errOut)
	}
	send(t, n, "locked", metric, slot+1, point.FromInt(2))
	n.kill()
	n = startNode(t, dir) // the lock went with the process
	if words := get(t, n.dial(), "locked", metric, slot, 2); words[0] != point.FromInt(1) ||
		words[1] != point.FromInt(2) {
		t.Errorf("read %x", words)
	}
}

// TestNewerFormatIsRefused: a directory of a later program is named and not
// touched.
func TestNewerFormatIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startNode(t, dir).stop()
	write(t, filepath.Join(dir, "VERSION"), "dalmatiner 999\n")
	n := launch(t, dir)
	if code := n.wait(); code != 1 {
		t.Errorf("the exit code is %d", code)
	}
	for _, part := range []string{dir, "999", "use the ddb that wrote it"} {
		if !strings.Contains(n.log.String(), part) {
			t.Errorf("it does not say %s:\n%s", part, n.log)
		}
	}
	if err := os.Remove(filepath.Join(dir, "VERSION")); err != nil { // as it says
		t.Fatal(err)
	}
	startNode(t, dir).stop()
}

// TestTakenPort: an address in use is named, with the flag that changes it, and the node that
// answers there.
func TestTakenPort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startNode(t, dir)
	for flag, addr := range map[string]string{"--tcp-addr": n.tcp, "--http-addr": n.http} {
		second := launch(t, t.TempDir(), "--http-addr", n.http, flag, addr)
		if code := second.wait(); code != 1 {
			t.Errorf("%s: the exit code is %d", flag, code)
		}
		there := "there is node dalmatinerdb@127.0.0.1 at " + n.http + ", data directory " + dir +
			", ddb "
		if text := second.log.String(); !strings.Contains(text, addr) || !strings.Contains(text, flag) ||
			!strings.Contains(text, there) {
			t.Errorf("%s: it says\n%s", flag, text)
		}
	}
}

package target

import (
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"dalmatiner/ducks/internal/duckstest"
)

// TestConformance runs the tests of libiscsi against a disk. tgt fails 31 of its 230: commands that
// it does not know, and ends of disks in commands of 16 bytes. The machine is let in by its
// address: two of the tests log in under other names.
func TestConformance(t *testing.T) {
	const least = 199
	if testing.Short() || !duckstest.Alone(t, "tgtd", "tgtadm", "iscsi-test-cu") {
		return
	}
	dir, err := os.MkdirTemp("", "tgt") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := Start(t.Context(), Options{Dir: dir, Portal: netip.MustParseAddrPort(portal),
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.End(); err != nil {
			t.Error(err)
		}
	}()
	of := device(t, "pc1", 64)
	of.Initiators = []string{"127.0.0.1"}
	if err := s.Put(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	// It exits with an error where any of its tests fails.
	out, err := exec.CommandContext(t.Context(), "iscsi-test-cu", "-d", "-t", "ALL",
		"iscsi://"+of.User+"%"+of.Secret+"@"+portal+"/"+of.IQN+"/1").CombinedOutput()
	sum := regexp.MustCompile(`(?m)^ *tests +(\d+) +(\d+) +(\d+) +(\d+)`).FindSubmatch(out)
	if sum == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	passed, err := strconv.Atoi(string(sum[3]))
	t.Logf("%s tests, %s passed or skipped, %s failed", sum[1], sum[3], sum[4])
	if err != nil || passed < least {
		t.Errorf("fewer than %d: %v\n%s", least, err, out)
	}
}

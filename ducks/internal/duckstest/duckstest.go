// Package duckstest is for tests of ducks: they change mounts, networks and processes, and do so in
// namespaces of their own.
package duckstest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// inNamespace is set where a test runs in namespaces of its own.
const inNamespace = "DUCKS_IN_NAMESPACE"

// noSkip is set where tests of ducks run alone, and none may be skipped.
const noSkip = "DUCKS_NO_SKIP"

// Alone runs the calling test again as root, in a mount and a network namespace of its own, in
// which the loopback interface is up. It reports whether this is that run. Without root, or without
// one of the tools that a test needs, the test is skipped, loudly; where DUCKS_NO_SKIP is set it
// fails.
func Alone(t *testing.T, tools ...string) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		return true
	}
	if os.Getuid() != 0 {
		skip(t, "namespaces need root")
	}
	for _, tool := range append(tools, "unshare", "ip") {
		if _, err := exec.LookPath(tool); err != nil {
			skip(t, tool+" is missing: make check says what to install")
		}
	}
	cmd := exec.Command("unshare", "--net", "--mount", "sh", "-c",
		`ip link set lo up && exec "$0" "$@"`,
		os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "5m")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

// lifetime is for how long an interface has an address, which becomes less by itself.
var lifetime = regexp.MustCompile(`(valid|preferred)_lft \S+`)

// Unchanged fails a test behind which the interfaces, queues, mounts and iSCSI targets of this
// machine are not those of before. It is called before Alone, and looks outside of the namespaces
// only. It looks where only tests of ducks run, as in make check: others mount file systems and
// make namespaces of networks.
func Unchanged(t *testing.T) {
	t.Helper()
	if os.Getenv(inNamespace) != "" || os.Getenv(noSkip) == "" {
		return
	}
	look := func() (all string) {
		for _, args := range [][]string{{"ip", "-o", "link"}, {"ip", "-o", "addr"},
			{"tc", "qdisc", "show"}, {"cat", "/proc/self/mounts"}} {
			out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
			if err != nil {
				skip(t, fmt.Sprintf("%q: %v: what it was cannot be compared", args, err))
			}
			all += lifetime.ReplaceAllString(string(out), "")
		}
		// The targets of the tgtd that a distribution starts; where none runs it says so.
		out, err := exec.Command("tgtadm", "--lld", "iscsi", "--mode", "target", "--op",
			"show").CombinedOutput()
		return all + fmt.Sprintf("%s%v\n", out, err)
	}
	before := look()
	t.Cleanup(func() {
		if after := look(); after != before {
			t.Errorf("this machine has not any more\n%s\nand has\n%s", beside(before, after),
				beside(after, before))
		}
	})
}

// beside returns the lines of a text that another one has not.
func beside(text, other string) string {
	has := make(map[string]bool)
	for line := range strings.Lines(other) {
		has[line] = true
	}
	var list []string
	for line := range strings.Lines(text) {
		if !has[line] {
			list = append(list, line)
		}
	}
	return strings.Join(list, "")
}

func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv(noSkip) != "" {
		t.Fatal(why)
	}
	t.Skip("SKIPPED: " + why)
}

// fileSystems are how those of the kinds of pools are made and mounted.
var fileSystems = map[string]struct {
	mkfs    []string
	options string
}{
	"btrfs":   {[]string{"mkfs.btrfs", "-q"}, "loop,compress-force=zstd:1"},
	"reflink": {[]string{"mkfs.xfs", "-q", "-m", "reflink=1"}, "loop"},
}

// Mounted returns a directory on a new file system of 512 MiB for a kind of pool, btrfs or reflink,
// or for zfs a dataset.
func Mounted(t *testing.T, kind string) string {
	t.Helper()
	if kind == "zfs" {
		return dataset(t)
	}
	of := fileSystems[kind]
	dir := t.TempDir()
	file, at := filepath.Join(dir, "file"), filepath.Join(dir, "at")
	if err := errors.Join(os.Mkdir(at, 0o700), os.WriteFile(file, nil, 0o600),
		os.Truncate(file, 512<<20)); err != nil {
		t.Fatal(err)
	}
	Run(t, append(of.mkfs, file)...)
	Run(t, "mount", "-o", of.options, file, at)
	t.Cleanup(func() { Run(t, "umount", at) })
	return at
}

// dataset makes a pool of ZFS, by a zfs-fuse of its own where the kernel has none. It needs to be
// alone.
func dataset(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if exec.Command("zpool", "list").Run() != nil {
		Run(t, "mount", "-t", "tmpfs", "tmpfs", "/run") // where it has its socket
		for _, sub := range []string{"/run/zfs", "/run/lock"} {
			if err := os.Mkdir(sub, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		daemon := exec.Command("zfs-fuse", "--no-daemon", "--pidfile", filepath.Join(dir, "pid"))
		if err := daemon.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = daemon.Process.Kill() // it may have ended
			_ = daemon.Wait()
			Run(t, "umount", "/run")
		})
		Until(t, "zfs-fuse answers", func() bool { return exec.Command("zpool", "list").Run() == nil })
	}
	name, file, at := fmt.Sprintf("ducks%d-%d", os.Getpid(), time.Now().UnixNano()),
		filepath.Join(dir, "file"), filepath.Join(dir, "at")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 512<<20)); err != nil {
		t.Fatal(err)
	}
	Run(t, "zpool", "create", "-o", "cachefile=none", "-m", at, name, file)
	t.Cleanup(func() {
		Until(t, "the pool is gone", func() bool {
			return exec.Command("zpool", "destroy", "-f", name).Run() == nil
		})
	})
	Run(t, "zfs", "create", name+"/room")
	return name + "/room"
}

// Run runs a command that does not fail.
func Run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
}

// Until waits for a condition.
func Until(t *testing.T, what string, is func() bool) {
	t.Helper()
	const within = 30 * time.Second
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); !is(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}

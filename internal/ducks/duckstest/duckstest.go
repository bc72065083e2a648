// Package duckstest is for tests of ducks: they change mounts, networks and processes, and do so in namespaces of
// their own.
package duckstest

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// inNamespace is set where a test runs in namespaces of its own.
const inNamespace = "DUCKS_IN_NAMESPACE"

// Alone runs the calling test again as root, in a mount and a network namespace of its own, in which the loopback
// interface is up. It reports whether this is that run. Without root, or without one of the tools that a test needs,
// the test is skipped, loudly; where DUCKS_NO_SKIP is set it fails.
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
			skip(t, tool+" is missing: make test-ducks says what to install")
		}
	}
	cmd := exec.Command("unshare", "--net", "--mount", "sh", "-c", `ip link set lo up && exec "$0" "$@"`,
		os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "5m")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("DUCKS_NO_SKIP") != "" {
		t.Fatal(why)
	}
	t.Skip("SKIPPED: " + why)
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

package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"
)

// inNetwork says to a copy of this test that it runs in a network of its own.
const inNetwork = "DDB_TEST_NETWORK"

// TestNetworkFaults: nodes in network namespaces lose their link, one direction of it, or most of its speed,
// while senders write to all. Afterwards no acknowledged point is missing, and the nodes agree.
//
// It needs root, and runs in a network namespace of its own, so the machine's network is not touched.
func TestNetworkFaults(t *testing.T) {
	if os.Getenv(inNetwork) == "" {
		t.Parallel()
		ownNetwork(t)
		return
	}
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	rng := seeded(t)
	c := clusterOfNamespaces(t, 3, "--set", "wal.sync=always")
	w := startWriters(c)
	for range rounds {
		c.torment(rng, rng.IntN(3))
	}
	all := w.end()
	t.Logf("%d batches, %d acknowledged", all.tries, all.acks)
	if all.acks < 20 {
		t.Errorf("of %d batches %d were acknowledged: the test shows little", all.tries, all.acks)
	}
	c.awaitMembers(3)
	w.checkEverywhere(t, c, all)
}

// ownNetwork runs the calling test again, in a network namespace of its own.
func ownNetwork(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: network namespaces need root")
	}
	for _, tool := range []string{"ip", "tc", "unshare"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %v: install iproute2 and util-linux", err)
		}
	}
	args := []string{"--net", os.Args[0], "-test.run", "^" + t.Name() + "$", "-test.v", "-test.timeout", "5m"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.Command("unshare", args...)
	cmd.Env = append(os.Environ(), inNetwork+"=1", "DDB_BIN="+binaries)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// ip runs ip, or another command of iproute2.
func (c *ringNodes) ip(args ...string) {
	c.t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		c.t.Fatalf("%q: %v\n%s", args, err, out)
	}
}

// namespace is the name of the namespace of a node. Names are the machine's.
func namespace(i int) string { return fmt.Sprintf("ddbtest-%d-%d", os.Getpid(), i+1) }

// clusterOfNamespaces starts nodes in namespaces of their own, that a bridge connects.
func clusterOfNamespaces(t *testing.T, nodes int, args ...string) *ringNodes {
	t.Helper()
	c := &ringNodes{t: t, net: "10.77.1", args: args, dir: t.TempDir()}
	c.ip("ip", "link", "set", "lo", "up")
	c.ip("ip", "link", "add", "br0", "type", "bridge")
	c.ip("ip", "addr", "add", c.net+".254/24", "dev", "br0")
	c.ip("ip", "link", "set", "br0", "up")
	for i := range nodes {
		ns := namespace(i)
		c.ip("ip", "netns", "add", ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() }) // its link goes with it
		c.ip("ip", "link", "add", veth(i), "type", "veth", "peer", "name", "eth0", "netns", ns)
		c.ip("ip", "link", "set", veth(i), "master", "br0", "up")
		c.ip("ip", "-n", ns, "addr", "add", c.host(i)+"/24", "dev", "eth0")
		c.ip("ip", "-n", ns, "link", "set", "lo", "up")
		c.ip("ip", "-n", ns, "link", "set", "eth0", "up")
	}
	c.namespaces = true
	for i := range nodes {
		c.nodes = append(c.nodes, nil)
		c.start(i)
	}
	c.awaitMembers(nodes)
	return c
}

// veth is the end of a node's link at the bridge.
func veth(i int) string { return fmt.Sprintf("veth%d", i+1) }

// torment lets something happen to a node for a while, and heals it.
func (c *ringNodes) torment(rng *rand.Rand, i int) {
	ns, other := namespace(i), (i+1+rng.IntN(2))%3
	hold := func(least, more time.Duration) { <-time.After(least + time.Duration(rng.Int64N(int64(more)))) }
	kind := []string{"link down", "flapping", "one way", "slow", "kill", "stop"}[rng.IntN(6)]
	c.t.Logf("%s: node %d, the other is %d", kind, i+1, other+1)
	switch kind {
	case "link down":
		c.ip("ip", "link", "set", veth(i), "down")
		hold(3*time.Second, 3*time.Second)
		c.ip("ip", "link", "set", veth(i), "up")
	case "flapping":
		for range 6 {
			c.ip("ip", "link", "set", veth(i), "down")
			hold(100*time.Millisecond, 500*time.Millisecond)
			c.ip("ip", "link", "set", veth(i), "up")
			hold(100*time.Millisecond, 500*time.Millisecond)
		}
	case "one way":
		c.ip("ip", "-n", ns, "route", "add", "blackhole", c.host(other)+"/32")
		hold(3*time.Second, 3*time.Second)
		c.ip("ip", "-n", ns, "route", "del", "blackhole", c.host(other)+"/32")
	case "slow":
		c.ip("tc", "-n", ns, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "200kbit", "burst", "4kb", "latency", "500ms")
		hold(3*time.Second, 3*time.Second)
		c.ip("tc", "-n", ns, "qdisc", "del", "dev", "eth0", "root")
	case "kill":
		c.kill(i)
		hold(time.Second, 3*time.Second)
		c.start(i)
	case "stop":
		goOn := c.pause(i)
		hold(time.Second, 3*time.Second)
		goOn()
	}
	hold(500*time.Millisecond, time.Second)
}

package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// inNetwork says to a copy of this test that it runs in a network of its own.
const inNetwork = "DDB_TEST_NETWORK"

// TestNetworkFaults: nodes in network namespaces lose their link, one direction of it, most of its
// speed or many of its frames, or get frames late and out of order, while senders write to all.
// Afterwards no acknowledged point is missing, and the nodes agree.
//
// It needs root, and runs in a network namespace of its own, so the machine's network is not
// touched.
func TestNetworkFaults(t *testing.T) {
	if os.Getenv(inNetwork) == "" {
		t.Parallel()
		ownNetwork(t)
		return
	}
	rng := seeded(t)
	kinds := slices.Clone(torments)
	rng.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	if testing.Short() {
		kinds = kinds[:2]
	}
	c := clusterOfNamespaces(t, rng, 3, "--set", "wal.sync=always")
	w := startWriters(c)
	for _, kind := range kinds {
		c.torment(rng, rng.IntN(3), kind)
	}
	all := w.end()
	t.Logf("%d batches, %d acknowledged", all.tries, all.acks)
	if all.acks < 20 {
		t.Errorf("of %d batches %d were acknowledged: the test shows little", all.tries, all.acks)
	}
	c.awaitMembers(3)
	w.checkEverywhere(t, c, all)
	for i, to := range c.cables {
		carried, lost := to.counts()
		t.Logf("node %d: %d frames carried, %d lost", i+1, carried, lost)
	}
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
	args := []string{"--net", os.Args[0], "-test.run", "^" + t.Name() + "$", "-test.v",
		"-test.timeout", "5m"}
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

// clusterOfNamespaces starts nodes in namespaces of their own, that cables and a bridge connect.
func clusterOfNamespaces(t *testing.T, rng *rand.Rand, nodes int, args ...string) *ringNodes {
	t.Helper()
	c := &ringNodes{t: t, net: "10.77.1", args: args, dir: t.TempDir()}
	c.ip("ip", "link", "set", "lo", "up")
	c.ip("ip", "link", "add", "br0", "type", "bridge")
	c.ip("ip", "addr", "add", c.net+".254/24", "dev", "br0")
	c.ip("ip", "link", "set", "br0", "up")
	for i := range nodes {
		ns := namespace(i)
		c.ip("ip", "netns", "add", ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		c.cables = append(c.cables, newCable(t, rng, plug(i), "eth0"))
		c.ip("ip", "link", "set", "eth0", "netns", ns)
		c.ip("ip", "link", "set", plug(i), "master", "br0", "up")
		c.ip("ip", "-n", ns, "addr", "add", c.host(i)+"/24", "dev", "eth0")
		c.ip("ip", "-n", ns, "link", "set", "lo", "up")
		c.ip("ip", "-n", ns, "link", "set", "eth0", "up")
	}
	for i := range nodes {
		c.nodes = append(c.nodes, nil)
		c.start(i)
	}
	c.awaitMembers(nodes)
	return c
}

// plug is the end of a node's cable at the bridge.
func plug(i int) string { return fmt.Sprintf("plug%d", i+1) }

// torments are what can happen to a node.
var torments = []string{"link down", "flapping", "one way", "slow", "lossy", "out of order", "kill",
	"stop"}

// torment lets something happen to a node for a while, and heals it.
func (c *ringNodes) torment(rng *rand.Rand, i int, kind string) {
	ns, other := namespace(i), (i+1+rng.IntN(2))%3
	hold := func(least, more time.Duration) {
		<-time.After(least + time.Duration(rng.Int64N(int64(more))))
	}
	c.t.Logf("%s: node %d, the other is %d", kind, i+1, other+1)
	switch kind {
	case "link down":
		c.ip("ip", "link", "set", plug(i), "down")
		hold(3*time.Second, 3*time.Second)
		c.ip("ip", "link", "set", plug(i), "up")
	case "flapping":
		for range 6 {
			c.ip("ip", "link", "set", plug(i), "down")
			hold(100*time.Millisecond, 500*time.Millisecond)
			c.ip("ip", "link", "set", plug(i), "up")
			hold(100*time.Millisecond, 500*time.Millisecond)
		}
	case "one way":
		c.ip("ip", "-n", ns, "route", "add", "blackhole", c.host(other)+"/32")
		hold(3*time.Second, 3*time.Second)
		c.ip("ip", "-n", ns, "route", "del", "blackhole", c.host(other)+"/32")
	case "slow":
		c.ip("tc", "-n", ns, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "200kbit", "burst",
			"4kb", "latency", "500ms")
		hold(3*time.Second, 3*time.Second)
		c.ip("tc", "-n", ns, "qdisc", "del", "dev", "eth0", "root")
	case "lossy":
		c.cables[i].set(weather{loss: 0.1 + 0.3*rng.Float64()})
		hold(3*time.Second, 3*time.Second)
		c.cables[i].set(weather{})
	case "out of order":
		c.cables[i].set(weather{loss: 0.02, delay: 20 * time.Millisecond, jitter: 100 * time.Millisecond})
		hold(3*time.Second, 3*time.Second)
		c.cables[i].set(weather{})
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

package test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dalmatiner/internal/api/admin"
)

// clusterCookie is the distributed_cookie of all clusters of these tests.
const clusterCookie = "a cookie of the tests, no secret"

// clusters counts those of this process: each has addresses of its own.
var clusters atomic.Uint32

// ringNodes are the nodes of a cluster, each a process with an address and a directory of
// its own.
type ringNodes struct {
	t     *testing.T
	net   string   // the first three numbers of the addresses
	args  []string // of every node
	dir   string
	nodes []*node // nil for one that does not run

	cables []*cable // to nodes that are each in a network namespace, and reached from others
}

// startCluster starts nodes that know the first one, and waits until all of them are members.
func startCluster(t *testing.T, nodes int, args ...string) *ringNodes {
	t.Helper()
	pid, number := os.Getpid(), clusters.Add(1)
	c := &ringNodes{t: t, net: fmt.Sprintf("127.%d.%d", 16+pid%200, (pid/200*7+int(number))%250+1),
		args: args, dir: t.TempDir()}
	for i := range nodes {
		c.nodes = append(c.nodes, nil)
		c.start(i)
	}
	c.awaitMembers(nodes)
	return c
}

// name is that of a node.
func (c *ringNodes) name(i int) string { return fmt.Sprintf("ddb%d@%s", i+1, c.host(i)) }

func (c *ringNodes) host(i int) string { return fmt.Sprintf("%s.%d", c.net, i+1) }

// start starts a node, on the directory that it had before if it had one.
func (c *ringNodes) start(i int) {
	c.t.Helper()
	for len(c.nodes) <= i {
		c.nodes = append(c.nodes, nil)
	}
	args := []string{
		"--set", "nodename=" + c.name(i),
		"--set", "cluster.listen=" + c.host(i) + ":8599", "--set", "cluster.gossip=" + c.host(i) +
			":8600",
		"--set", "distributed_cookie=" + clusterCookie, "--set", "cluster.heartbeat=200ms", "--set",
		"cluster.timeout=2s",
	}
	if others := c.gossiping(); len(others) > 0 {
		args = append(args, "--set", "cluster.join="+strings.Join(others, ","))
	}
	args = append(args, "--tcp-addr", c.tcp(i), "--http-addr", c.host(i)+":8080")
	var by []string
	if c.cables != nil {
		by = []string{"ip", "netns", "exec", namespace(i)}
		args = append(args, "--set", "cluster.tls_dir="+c.certificates(i))
	}
	n := launchBy(c.t, by, filepath.Join(c.dir, fmt.Sprint(i+1)), append(args, c.args...)...)
	n.awaitReady()
	c.nodes[i] = n
}

// gossiping are the addresses where the nodes that run gossip.
func (c *ringNodes) gossiping() (list []string) {
	for i, n := range c.nodes {
		if n != nil {
			list = append(list, c.host(i)+":8600")
		}
	}
	return list
}

// kill ends a node as a crash of its process does.
func (c *ringNodes) kill(i int) {
	c.t.Helper()
	c.nodes[i].kill()
	c.nodes[i] = nil
}

// pause stops a node in the middle of whatever it does, until the returned function is called.
func (c *ringNodes) pause(i int) (goOn func()) {
	c.t.Helper()
	p := c.nodes[i].cmd.Process
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		c.t.Fatal(err)
	}
	return func() {
		if err := p.Signal(syscall.SIGCONT); err != nil {
			c.t.Fatal(err)
		}
	}
}

// interrupt kills or stops one of the first nodes after the other, each for a random time, and
// waits until all are members again.
func (c *ringNodes) interrupt(rng *rand.Rand, first, rounds int, longest time.Duration) {
	c.t.Helper()
	for range rounds {
		i, length := rng.IntN(first), time.Duration(rng.Int64N(int64(longest)))
		if rng.IntN(3) == 0 {
			goOn := c.pause(i)
			<-time.After(length)
			goOn()
		} else {
			c.kill(i)
			<-time.After(length)
			c.start(i)
		}
		c.awaitMembers(len(c.nodes))
		<-time.After(time.Duration(rng.Int64N(int64(time.Second))))
	}
}

// up are the nodes that run.
func (c *ringNodes) up() (list []*node) {
	for _, n := range c.nodes {
		if n != nil {
			list = append(list, n)
		}
	}
	return list
}

// admin runs a command of ddb-admin at a node and returns what it prints.
func (c *ringNodes) admin(n *node, args ...string) string {
	c.t.Helper()
	r := run(c.t, "ddb-admin", append(args, "--addr", n.http)...)
	if r.code != 0 {
		c.t.Fatalf("ddb-admin %q ended with %d:\n%s%s", args, r.code, r.out, r.errOut)
	}
	return r.out
}

// awaitMembers waits until every node that runs says that there are so many members, and
// nothing is on its way.
func (c *ringNodes) awaitMembers(valid int) {
	c.t.Helper()
	want := fmt.Sprintf("Valid:%d / Leaving:0 / Exiting:0 / Joining:0 / Down:0", valid)
	var last string
	defer func() {
		if c.t.Failed() {
			c.t.Logf("the last answer was\n%s", last)
		}
	}()
	for _, n := range c.up() {
		eventually(c.t, want, func() bool {
			last = run(c.t, "ddb-admin", "member-status", "--addr", n.http).out
			return strings.Contains(last, want)
		})
	}
}

// awaitHealed waits until no node has hints for others, and no partition moves.
func (c *ringNodes) awaitHealed() {
	c.t.Helper()
	for _, n := range c.up() {
		eventually(c.t, "no transfers are active", func() bool {
			return strings.Contains(run(c.t, "ddb-admin", "transfers", "--addr", n.http).out,
				"No transfers active")
		})
	}
}

// awaitEqual waits until each node has compared each partition with all its copies since a moment.
func (c *ringNodes) awaitEqual(since time.Time) {
	c.t.Helper()
	for i, n := range c.up() {
		eventually(c.t, fmt.Sprintf("node %d has compared everything", i+1), func() bool {
			var audit admin.ClusterAudit
			if err := json.Unmarshal([]byte(c.admin(n, "audit", "--json")), &audit); err != nil {
				c.t.Fatal(err)
			}
			return !slices.ContainsFunc(audit.Partitions, func(p admin.AuditPass) bool {
				return p.Never || p.AgoS > time.Since(since).Seconds()
			})
		})
	}
}

// tcp is the address of a node for senders, whether or not it runs.
func (c *ringNodes) tcp(i int) string { return c.host(i) + ":5555" }

// certificates returns the directory with the certificates of a node, which are made at its first
// start.
func (c *ringNodes) certificates(i int) string {
	c.t.Helper()
	dir := filepath.Join(c.dir, "tls")
	if _, err := os.Stat(filepath.Join(dir, c.name(i)+".crt")); err != nil {
		if r := run(c.t, "ddb", "tls", "create", "--dir", dir, c.name(i)); r.code != 0 {
			c.t.Fatalf("%s%s", r.out, r.errOut)
		}
	}
	return dir
}

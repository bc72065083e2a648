package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/api/admin"
)

// change is one of the ring that was committed.
type change struct {
	words []string
	ring  int // its number; a node with a smaller one has not heard of it
}

// status is the ring as a node sees it.
func (c *ringNodes) status(at *node) (s admin.Cluster) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.admin(at, "cluster", "status", "--json")), &s); err != nil {
		c.t.Fatal(err)
	}
	return s
}

// ringNumber is that of the ring that a node has.
func (c *ringNodes) ringNumber(at *node) (number int) {
	c.t.Helper()
	ring := c.status(at).Ring
	if _, err := fmt.Sscanf(ring, "%d-", &number); err != nil {
		c.t.Fatalf("ring %q: %v", ring, err)
	}
	return number
}

// awaitOneRing waits until all nodes that run have the same ring.
func (c *ringNodes) awaitOneRing() {
	c.t.Helper()
	eventually(c.t, "all have one ring", func() bool {
		up := c.up()
		first := c.status(up[0]).Ring
		return !slices.ContainsFunc(up[1:], func(n *node) bool { return c.status(n).Ring != first })
	})
}

// commit stages a change of the ring and commits it. All nodes that run have heard of the one
// before: of two at once one would be lost.
func (c *ringNodes) commit(at *node, words ...string) change {
	c.t.Helper()
	c.awaitOneRing()
	var last result
	defer func() {
		if c.t.Failed() && last.code != 0 {
			c.t.Logf("%v was refused: %s", words, last.errOut)
		}
	}()
	eventually(c.t, "the change can be staged", func() bool {
		last = run(c.t, "ddb-admin", append(append([]string{"cluster"}, words...), "--addr", at.http)...)
		return last.code == 0
	})
	c.admin(at, "cluster", "commit")
	return change{words, c.ringNumber(at)}
}

// follow waits until a change of the ring has ended. Meanwhile the status never says that it waits
// for nothing.
func (c *ringNodes) follow(at *node, change change) (took time.Duration) {
	c.t.Helper()
	begun := time.Now()
	said := ""
	eventually(c.t, fmt.Sprint(change.words, " ends"), func() bool {
		if c.ringNumber(at) < change.ring {
			return false // it has not heard of it
		}
		status := c.admin(at, "cluster", "status")
		for line := range strings.Lines(status) {
			if strings.Contains(line, " 0 are left") {
				c.t.Errorf("after %v the status says: %s", time.Since(begun), line)
			}
			if strings.HasPrefix(line, "Waiting: ") && !strings.Contains(said, line) {
				said += line
			}
		}
		return !strings.Contains(status, "A change is under way")
	})
	took = time.Since(begun)
	c.t.Logf("%v took %v and waited for\n%s", change.words, took, said)
	return took
}

// TestTheNumberOfCopiesChanges: n falls and rises on nodes with data. Each change ends within
// seconds, every node answers with every point meanwhile, and afterwards as many nodes as n may be
// missing but one.
func TestTheNumberOfCopiesChanges(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	want := expected(t, load(t, c.nodes[0], "moved", "-batch", "-ack", "-steps", "60"))
	for i, n := range []string{"1", "3", "2"} {
		if took := c.follow(c.nodes[i], c.commit(c.nodes[i], "set-n", n)); took > 30*time.Second {
			t.Errorf("n = %s took %v", n, took)
		}
		for _, reader := range c.nodes {
			compareByGet(t, reader, "moved", want)
		}
		compareByQuery(t, c.nodes[i], "moved", want)
	}
	c.kill(1)
	for _, reader := range c.up() {
		compareByGet(t, reader, "moved", want)
	}
}

// TestAJoinIsTakenBack: a member whose join was taken back joins again, with what it had fetched.
func TestAJoinIsTakenBack(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	want := expected(t, load(t, c.nodes[0], "moved", "-batch", "-ack", "-steps", "60"))
	c.start(3)
	c.admin(c.nodes[0], "cluster", "pause")
	c.commit(c.nodes[0], "join", c.name(3))
	c.admin(c.nodes[0], "cluster", "undo")
	c.follow(c.nodes[1], change{[]string{"undo"}, c.ringNumber(c.nodes[0])})
	c.admin(c.nodes[0], "cluster", "resume")
	c.follow(c.nodes[3], c.commit(c.nodes[1], "join", c.name(3)))
	c.awaitMembers(4)
	for _, n := range c.up() {
		compareByGet(t, n, "moved", want)
	}
}

// TestMaintenance: a member leaves reads and writes to others, is stopped and started meanwhile,
// and has everything when that is over. No two of three members can do so at once.
func TestMaintenance(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	before := expected(t, load(t, c.nodes[0], "first", "-batch", "-ack", "-steps", "60"))
	if out := c.admin(c.nodes[0], "cluster", "maintenance", c.name(1),
		"on"); out != c.name(1)+": maintenance on\n" {
		t.Errorf("%q", out)
	}
	for _, n := range c.nodes {
		eventually(t, "all know it", func() bool {
			return strings.Contains(c.admin(n, "cluster", "status"), "In maintenance: "+c.name(1))
		})
	}
	r := run(t, "ddb-admin", "cluster", "maintenance", c.name(2), "on", "--addr", c.nodes[0].http)
	if r.code == 0 || !strings.Contains(r.errOut, c.name(1)+" (in maintenance)") {
		t.Errorf("two of three: %d, %s%s", r.code, r.out, r.errOut)
	}
	// it passes them on
	during := expected(t, load(t, c.nodes[1], "second", "-batch", "-ack", "-steps", "60"))
	c.kill(1)
	after := expected(t, load(t, c.nodes[2], "third", "-batch", "-ack", "-steps", "60"))
	c.start(1)
	for _, n := range c.nodes {
		eventually(t, "they see each other", func() bool {
			return strings.Contains(c.admin(n, "cluster", "status"), "In maintenance: "+c.name(1))
		})
		compareByGet(t, n, "first", before)
		compareByGet(t, n, "second", during)
		compareByQuery(t, n, "third", after)
	}
	c.admin(c.nodes[2], "cluster", "maintenance", c.name(1), "off")
	c.awaitMembers(3)
	for _, bucket := range []string{"second", "third"} {
		c.admin(c.nodes[1], "buckets", "quorum", bucket, "--r", "1") // so that it answers by itself
	}
	conn := c.nodes[1].dial()
	for bucket, want := range map[string]contents{"second": during, "third": after} {
		eventually(t, "it has all of "+bucket, func() bool {
			for k, words := range want.words {
				if !slices.Equal(get(t, conn, bucket, []byte(k), want.first, want.count), words) {
					return false
				}
			}
			return true
		})
	}
}

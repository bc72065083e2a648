package test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// commit stages a change of the ring, commits it, and waits until it has ended. Meanwhile the status
// never says that it waits for nothing.
func (c *ringNodes) commit(at *node, change ...string) (took time.Duration) {
	c.t.Helper()
	eventually(c.t, "the change can be staged", func() bool {
		return run(c.t, "ddb-admin", append(append([]string{"cluster"}, change...), "--addr", at.http)...).code == 0
	})
	begun := time.Now()
	c.admin(at, "cluster", "commit")
	said := ""
	eventually(c.t, fmt.Sprint(change, " ends"), func() bool {
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
	c.t.Logf("%v took %v and waited for\n%s", change, took, said)
	return took
}

// TestTheNumberOfCopiesChanges: n falls and rises on nodes with data. Each change ends within seconds, every node
// answers with every point meanwhile, and afterwards as many nodes as n may be missing but one.
func TestTheNumberOfCopiesChanges(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	want := expected(t, load(t, c.nodes[0], "moved", "-batch", "-ack", "-steps", "60"))
	for i, n := range []string{"1", "3", "2"} {
		if took := c.commit(c.nodes[i], "set-n", n); took > 30*time.Second {
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

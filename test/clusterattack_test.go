package test

import (
	"sync"
	"testing"
	"time"
)

// TestAllNodesAreKilledAtOnce: what was acknowledged is there after all processes of a cluster
// ended in one moment, as often as it comes. A minute later all copies are equal, and each node has
// everything by itself.
func TestAllNodesAreKilledAtOnce(t *testing.T) {
	t.Parallel()
	rounds := 4
	if testing.Short() {
		rounds = 2
	}
	rng := seeded(t)
	c := startCluster(t, 3)
	w := startWriters(c)
	for range rounds {
		<-time.After(time.Second + time.Duration(rng.Int64N(int64(time.Second))))
		var killed sync.WaitGroup
		for _, n := range c.nodes {
			killed.Go(n.kill)
		}
		killed.Wait()
		for i := range c.nodes {
			c.start(i)
		}
		c.awaitMembers(3)
	}
	<-time.After(time.Second)
	all := w.end()
	w.checkReads(t)
	t.Logf("%d batches, %d acknowledged", all.tries, all.acks)
	if all.acks < 20 {
		t.Errorf("of %d batches %d were acknowledged: the test shows little", all.tries, all.acks)
	}
	ended := time.Now()
	w.checkEverywhere(t, c, all)
	back := time.Now()
	c.awaitEqual(ended)
	if took := time.Since(back); took > time.Minute {
		t.Errorf("the copies are equal after %v", took)
	} else {
		t.Logf("the copies are equal after %v", took)
	}
	c.admin(c.nodes[0], "buckets", "quorum", chaosBucket, "--r", "1")
	for i := range c.nodes {
		c.kill((i + 1) % 3)
		c.kill((i + 2) % 3)
		w.check(t, c.nodes[i], all)
		c.start((i + 1) % 3)
		c.start((i + 2) % 3)
		c.awaitMembers(3)
	}
}

// TestJoinWhileNodesAreKilled: a fourth node joins under load while it, an old owner and the node
// that committed are killed in turn.
func TestJoinWhileNodesAreKilled(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	c := startCluster(t, 3)
	w := startWriters(c)
	<-time.After(2 * time.Second)
	c.start(3)
	eventually(t, "the plan has the new node", func() bool {
		return run(t, "ddb-admin", "cluster", "join", c.name(3), "--addr", c.nodes[0].http).code == 0
	})
	c.admin(c.nodes[0], "cluster", "plan")
	c.admin(c.nodes[0], "cluster", "commit")
	for _, i := range []int{0, 3, 1, 3} {
		<-time.After(time.Duration(rng.Int64N(int64(time.Second))))
		c.kill(i)
		<-time.After(time.Duration(rng.Int64N(int64(time.Second))))
		c.start(i)
	}
	c.awaitMembers(4)
	all := w.end()
	w.checkReads(t)
	t.Logf("%d batches, %d acknowledged", all.tries, all.acks)
	w.checkEverywhere(t, c, all)
}

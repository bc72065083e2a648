package test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"
)

// TestAcknowledgedTagsSurviveANode: nodes are killed and stopped one after the other while senders
// tag series at all of them. Every tag that was acknowledged is there, or a newer one, at each
// node, and the nodes agree.
func TestAcknowledgedTagsSurviveANode(t *testing.T) {
	t.Parallel()
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	rng := seeded(t)
	c := startCluster(t, 3, "--set", "wal.sync=always")
	m := &tagModel{sent: make(map[string]int), acked: make(map[string]int),
		lines: make(map[string]bool)}
	fillShop(t, c.nodes[0])
	end := m.sendToAll(c)
	c.interrupt(rng, 3, rounds, 3*time.Second)
	end()
	if len(m.acked) < tagSenders*tagSeries {
		t.Errorf("%d series have acknowledged tags: the test shows little", len(m.acked))
	}
	export := func(n *node) string {
		var out bytes.Buffer
		eventually(t, "the node knows all tags", func() bool {
			out.Reset()
			return n.admin().ExportTags(context.Background(), &out, "", "") == nil
		})
		return out.String()
	}
	for _, n := range c.nodes {
		export(n)
		m.check(t, n)
	}
	eventually(t, "the nodes agree", func() bool {
		first := export(c.nodes[0])
		return first == export(c.nodes[1]) && first == export(c.nodes[2])
	})
	for i := range c.nodes {
		c.kill(i)
		for _, n := range c.up() {
			export(n) // who was away compares first
			m.check(t, n)
		}
		c.start(i)
		c.awaitMembers(3)
	}
}

// sendToAll tags series at all nodes, and goes on when one is back. end kills all nodes, with which
// the senders end, and starts them again.
func (m *tagModel) sendToAll(c *ringNodes) (end func()) {
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for i := range c.nodes {
		n := &node{http: c.nodes[i].http} // it has this address in all its lives
		senders.Go(func() {
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for {
				m.send(n, i, make(chan struct{}, 1))
				select {
				case <-stop:
					return
				case <-tick.C:
				}
			}
		})
	}
	return func() {
		close(stop)
		for i := range c.nodes {
			c.kill(i)
		}
		senders.Wait()
		for i := range c.nodes {
			c.start(i)
		}
		c.awaitMembers(len(c.nodes))
	}
}

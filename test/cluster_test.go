package test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
)

// TestThreeNodesAreOneStore: three empty nodes become one store. What is sent to one of them is
// read from each, by GET and by query, and the accounts add up to what was sent.
func TestThreeNodesAreOneStore(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	for i, n := range c.nodes {
		bucket := fmt.Sprintf("from%d", i+1)
		want := expected(t, load(t, n, bucket, "-batch", "-ack", "-seed", fmt.Sprint(i+1), "-steps",
			"60"))
		var received, accepted uint64
		for _, reader := range c.nodes {
			compareByGet(t, reader, bucket, want)
			compareByQuery(t, reader, bucket, want)
			row := reader.account(bucket)
			received += row.Received
			accepted += row.Accepted + row.Late
		}
		if received != want.points || accepted != want.points {
			t.Errorf("%s: %d points were sent, the nodes received %d and accepted %d", bucket, want.points,
				received, accepted)
		}
	}
}

// TestANodeLessChangesNoAnswer: with three copies, points that were acknowledged while all nodes
// were up, and such as came while one was dead, are read whole from both others.
func TestANodeLessChangesNoAnswer(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	before := expected(t, load(t, c.nodes[0], "early", "-batch", "-ack", "-steps", "60"))
	c.kill(2)
	during := expected(t, load(t, c.nodes[1], "amid", "-batch", "-ack", "-steps", "60"))
	for _, n := range c.up() {
		compareByGet(t, n, "early", before)
		compareByQuery(t, n, "early", before)
		compareByGet(t, n, "amid", during)
		compareByQuery(t, n, "amid", during)
	}
	c.start(2)
	c.awaitMembers(3)
	c.awaitHealed()
	c.kill(0) // the copies of the node that was away count now
	for _, n := range c.up() {
		compareByGet(t, n, "amid", during)
		compareByQuery(t, n, "amid", during)
	}
}

// TestDeletedWhileANodeWasDown: a series that is deleted while a node is down does not come back
// with it, nor when it is created again.
func TestDeletedWhileANodeWasDown(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	slot := past(time.Hour)
	write := func(n *node, word uint64) {
		t.Helper()
		s, err := n.dial().OpenAckStream("deleted")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Points(key(t, "a", "series"), slot, word); err != nil {
			t.Fatal(err)
		}
		if _, err := s.FlushAck(); err != nil {
			t.Fatal(err)
		}
		if ack, err := s.ReadAck(); err != nil || ack.Refused > 0 {
			t.Fatalf("%+v, %v", ack, err)
		}
	}
	write(c.nodes[0], point.FromInt(9))
	c.kill(2)
	r := run(t, "ddb", "admin", "series", "delete", "deleted", "a.series", "--yes", "--addr",
		c.nodes[0].http)
	if r.code != 0 {
		t.Fatalf("%s%s", r.out, r.errOut)
	}
	gone := func() {
		t.Helper()
		for _, n := range c.up() {
			if got := get(t, n.dial(), "deleted", key(t, "a", "series"), slot, 1)[0]; got != 0 {
				t.Fatalf("%016x came back", got)
			}
		}
	}
	gone()
	c.start(2)
	c.awaitMembers(3)
	c.awaitHealed()
	gone()
	write(c.nodes[2], point.FromInt(1)) // smaller than the deleted one
	for _, n := range c.up() {
		if got := get(t, n.dial(), "deleted", key(t, "a", "series"), slot, 1)[0]; got != point.FromInt(
			1) {
			t.Fatalf("the new life of the series has %016x", got)
		}
	}
}

// TestJoinAndLeaveLoseNothing: a fourth node joins a cluster with data, one of the first leaves;
// every point is there in between and at the end.
func TestJoinAndLeaveLoseNothing(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	want := expected(t, load(t, c.nodes[0], "moved", "-batch", "-ack", "-steps", "60"))
	c.start(3)
	eventually(t, "the plan has the new node", func() bool {
		return run(t, "ddb-admin", "cluster", "join", c.name(3), "--addr", c.nodes[0].http).code == 0
	})
	if plan := c.admin(c.nodes[0], "cluster", "plan"); !strings.Contains(plan, c.name(3)) ||
		!strings.Contains(plan, "Down:0") {
		t.Fatalf("the plan does not name the new node, or says that it is down:\n%s", plan)
	}
	c.admin(c.nodes[0], "cluster", "commit")
	c.awaitMembers(4)
	for _, n := range c.up() {
		compareByGet(t, n, "moved", want)
	}
	c.admin(c.nodes[0], "cluster", "leave", c.name(1))
	c.admin(c.nodes[0], "cluster", "commit")
	left := c.nodes[1]
	eventually(t, "the node is no member", func() bool {
		return !strings.Contains(run(t, "ddb-admin", "member-status", "--addr", c.nodes[0].http).out,
			c.name(1))
	})
	left.kill()
	c.nodes[1] = nil
	c.awaitMembers(3)
	for _, n := range c.up() {
		compareByGet(t, n, "moved", want)
		compareByQuery(t, n, "moved", want)
	}
}

// TestANodeAloneIsNoCluster: without cluster.listen the commands of a cluster say so.
func TestANodeAloneIsNoCluster(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir())
	r := run(t, "ddb-admin", "member-status", "--addr", n.http)
	if r.code == 0 || !strings.Contains(r.errOut, "cluster.listen") {
		t.Errorf("exit code %d:\n%s%s", r.code, r.out, r.errOut)
	}
	if _, err := n.admin().Account(context.Background(), "", 0); err != nil {
		t.Error(err)
	}
}

package test

import (
	"testing"
	"time"
)

// TestAcknowledgedPointsSurviveANode: nodes are killed and stopped one after the other while
// senders write to all of them. With W = 2 of 3 copies no acknowledged point is missing, and when
// everything is up again, each two of the nodes have all of it.
func TestAcknowledgedPointsSurviveANode(t *testing.T) {
	t.Parallel()
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	rng := seeded(t)
	c := startCluster(t, 3, "--set", "wal.sync=always")
	w := startWriters(c)
	c.interrupt(rng, 3, rounds, 4*time.Second)
	all := w.end()
	t.Logf("%d batches, %d acknowledged", all.tries, all.acks)
	if all.acks < 20 {
		t.Errorf("of %d batches %d were acknowledged: the test shows little", all.tries, all.acks)
	}
	w.checkEverywhere(t, c, all)
}

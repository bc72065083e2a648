package node

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/host/config"
)

// A node that looks for a cluster where nobody is says so wherever somebody looks, and is neither
// ready nor a ring of its own. Once somebody is there it is both.
func TestAJoinerThatFindsNobody(t *testing.T) {
	seed, ctx := freeAddr(t), context.Background()
	start := func(name string, first bool) *running {
		n := startWith(t, t.TempDir(), name, func(c *config.Config) {
			c.SelfMonitor = false
			k := &c.Cluster
			k.Listen, k.Gossip, k.Heartbeat, k.Timeout = freeAddr(t), freeAddr(t), 50*time.Millisecond,
				500*time.Millisecond
			if first {
				k.Gossip = seed
			} else {
				k.Join = []string{seed}
			}
		})
		t.Cleanup(func() { n.end(t) })
		return n
	}
	joiner := start("n2", false)
	await(t, "the reason", func() bool {
		code, text := joiner.ask(t, "GET", "/ready")
		return code == http.StatusServiceUnavailable && strings.Contains(text, "nobody listens at "+seed)
	})
	st, err := joiner.operator().Status(ctx)
	if err != nil || st.Ready || !strings.Contains(st.Cluster.Joining, seed) {
		t.Errorf("the status: ready %v, %+v, %v", st.Ready, st.Cluster, err)
	}
	c, err := joiner.operator().Cluster(ctx)
	if err != nil || c.Agree || len(c.Members) != 1 || c.Members[0].Share != 0 ||
		c.Members[0].State != "joining" ||
		len(c.Refused) != 1 || !strings.Contains(c.Refused[0], seed) ||
		strings.Contains(c.Text, "100.0") || !strings.Contains(c.Text, "Ring ready: false") {
		t.Errorf("the status of the cluster: %+v, %v", c, err)
	}
	first := start("n1", true)
	for _, n := range []*running{joiner, first} {
		n.awaitMembers(t, "n1", "n2")
		if code, text := n.ask(t, "GET", "/ready"); code != http.StatusOK {
			t.Errorf("in the cluster: %d, %s", code, text)
		}
		if st, err := n.operator().Status(ctx); err != nil || !st.Ready {
			t.Errorf("in the cluster: %+v, %v", st, err)
		}
	}
}

// await waits for a condition.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("waited in vain for: " + what)
		}
	}
}

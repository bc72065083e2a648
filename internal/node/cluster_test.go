package node

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/host/config"
	"dalmatiner/internal/model/metric"
)

// freeAddr returns an address that nobody listens on. Its port is below those that the system gives
// to connections: one of these may be taken before it is listened on.
func freeAddr(t *testing.T) string {
	t.Helper()
	const first, past = 10_000, 32_000
	var last error
	for range 100 {
		ln, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", first+rand.IntN(past-first)))
		if err != nil {
			last = err
			continue
		}
		defer ln.Close()
		return ln.Addr().String()
	}
	t.Fatal(last)
	return ""
}

// ask gives the status and the text of an answer.
func (r *running) ask(t *testing.T, method, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+r.http+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(admin.Header, "1")
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (r *running) operator() *admin.Client {
	return &admin.Client{
		Addr: r.http, HTTP: &http.Client{
			Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// awaitMembers waits until a node says that these are the members, all up, and nothing is under
// way.
func (r *running) awaitMembers(t *testing.T, names ...string) {
	t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		c, err := r.operator().Cluster(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range c.Members {
			if m.Up && m.State == "active" {
				got = append(got, m.Name)
			}
		}
		if slices.Equal(got, names) && c.Agree && !c.Changing {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the members are not %v:\n%s", names, c.Text)
		}
	}
}

// TestThreeNodesInOneProcess: nodes that know one of them become one store. What one got is read
// from each, also when another has left; what a cluster cannot do yet is refused.
func TestThreeNodesInOneProcess(t *testing.T) {
	seed, ctx := freeAddr(t), context.Background()
	var nodes []*running
	for i, name := range []string{"n1", "n2", "n3"} {
		nodes = append(nodes, startWith(t, t.TempDir(), name, func(c *config.Config) {
			c.SelfMonitor, c.WALInterval = false, 10*time.Millisecond
			k := &c.Cluster
			k.Listen, k.Gossip, k.Heartbeat, k.Timeout = freeAddr(t), freeAddr(t), 100*time.Millisecond,
				10*time.Second
			if i == 0 {
				k.Gossip = seed
			} else {
				k.Join = []string{seed}
			}
		}))
		defer nodes[i].end(t)
	}
	for _, n := range nodes {
		n.awaitMembers(t, "n1", "n2", "n3")
	}
	key, err := metric.Key("a", "series")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	nodes[1].send(t, "shared", key, now-10, 42)
	read := func(from ...*running) {
		t.Helper()
		for _, n := range from {
			if got := n.query(t, "SELECT max(a.series BUCKET shared, 10m) LAST 10m"); !slices.Equal(got,
				[]float64{42}) {
				t.Errorf("read %v", got)
			}
		}
	}
	read(nodes...)
	if _, text := nodes[2].ask(t, "GET", "/metrics"); !strings.Contains(text,
		"dalmatiner_cluster_members_up 3\n") ||
		!strings.Contains(text, `dalmatiner_cluster_peer_connected{node="n1"} 1`) {
		t.Error("figures of the cluster are missing")
	}
	st, err := nodes[0].operator().Status(ctx)
	if err != nil || st.Cluster == nil || st.Cluster.Members != 3 || st.Cluster.Writes != 2 {
		t.Errorf("%+v, %v", st.Cluster, err)
	}
	quorumOfABucket(t, nodes[0].operator())
	if audit, err := nodes[0].operator().ClusterAudit(ctx); err != nil || len(audit.Partitions) == 0 {
		t.Errorf("%+v, %v", audit, err)
	}

	if _, err := nodes[0].operator().StageChange(ctx, "set-n",
		admin.ClusterChange{Copies: 2}); err != nil {
		t.Fatal(err)
	}
	commit(t, nodes[0])
	for _, n := range nodes {
		n.awaitMembers(t, "n1", "n2", "n3")
	}
	if _, err := nodes[2].operator().StageChange(ctx, "leave", admin.ClusterChange{}); err != nil {
		t.Fatal(err)
	}
	commit(t, nodes[2])
	for _, n := range nodes[:2] {
		n.awaitMembers(t, "n1", "n2")
	}
	read(nodes[:2]...)
}

// quorumOfABucket sets w of a bucket.
func quorumOfABucket(t *testing.T, c *admin.Client) {
	t.Helper()
	w := 3
	q, err := c.BucketQuorum(context.Background(), admin.BucketQuorum{Name: "shared", OwnWrites: &w})
	if err != nil || q.Writes != 3 || q.Reads != 2 || *q.OwnWrites != 3 || *q.OwnReads != 0 {
		t.Errorf("%+v, %v", q, err)
	}
	w = 4
	if _, err := c.BucketQuorum(context.Background(),
		admin.BucketQuorum{Name: "shared", OwnWrites: &w}); err == nil ||
		!strings.Contains(err.Error(), "from 1 to n, which is 3") {
		t.Errorf("w = 4 of 3 copies: %v", err)
	}
}

// commit commits what is staged as the plan has it.
func commit(t *testing.T, n *running) {
	t.Helper()
	plan, err := n.operator().ClusterPlan(context.Background())
	if err != nil || len(plan.Changes) != 1 {
		t.Fatalf("%+v, %v", plan, err)
	}
	if _, err := n.operator().CommitChanges(context.Background(),
		admin.ClusterCommit{Ring: "9-00000000"}); err == nil {
		t.Error("a plan of another ring was committed")
	}
	if _, err := n.operator().CommitChanges(context.Background(),
		admin.ClusterCommit{Ring: plan.Ring, Staged: plan.Staged}); err != nil {
		t.Fatal(err)
	}
}

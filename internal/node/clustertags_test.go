package node

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/host/config"
	"dalmatiner/internal/model/metric"
)

// startThree starts nodes that are a cluster of three.
func startThree(t *testing.T, change func(i int, c *config.Config)) []*running {
	t.Helper()
	seed := freeAddr(t)
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
			change(i, c)
		}))
		t.Cleanup(func() { nodes[i].end(t) })
	}
	for _, n := range nodes {
		n.awaitMembers(t, "n1", "n2", "n3")
	}
	return nodes
}

// post sends a body to a path and returns status and answer.
func (r *running) post(t *testing.T, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+r.http+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(admin.Header, "1")
	req.Header.Set("Content-Type", "application/json")
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

// timed is what answers say of the time that they took, and of the present.
var timed = regexp.MustCompile(`"(query_time|new_since|new_hours|t)":[0-9.e+-]+`)

// answer is what a node answers, without what depends on the clock.
func (r *running) answer(t *testing.T, path string) string {
	t.Helper()
	status, text := r.ask(t, http.MethodGet, path)
	return fmt.Sprint(status, " ", timed.ReplaceAllString(text, `"$1":0`))
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("waited in vain for: " + what)
		}
	}
}

// tagOperations draws changes of tags, removals among them, and sends each to a node on its own and
// to some node of a cluster.
func tagOperations(t *testing.T, random *rand.Rand, one *running, nodes []*running, number int) {
	t.Helper()
	for range number {
		series := random.IntN(12)
		line := fmt.Sprintf(`{"bucket":"fleet","metric":["cpu","m%d"]`, series)
		if random.IntN(3) == 0 {
			line += `,"collection":"other"`
		}
		switch random.IntN(6) {
		case 0:
			line += `,"remove":["site"]`
		case 1:
			line += fmt.Sprintf(`,"replace":true,"tags":{"site":"s%d"}`, random.IntN(3))
		default:
			line += fmt.Sprintf(`,"name":["cpu"],"tags":{"site":"s%d","k8s:app":"a%d"}`, random.IntN(3),
				random.IntN(2))
		}
		line += "}\n"
		want, wantText := one.post(t, "/tags", line)
		got, gotText := nodes[random.IntN(len(nodes))].post(t, "/tags", line)
		if got != want || gotText != wantText {
			t.Fatalf("%s the cluster answers %d %s, a node on its own %d %s", line, got, gotText, want,
				wantText)
		}
	}
}

// TestTagsOfAClusterAreThoseOfOneNode: the same changes and points, given to any node of a cluster
// and to a node on its own, make the same answers, byte for byte, at each node.
func TestTagsOfAClusterAreThoseOfOneNode(t *testing.T) {
	one := startWith(t, t.TempDir(), "one", func(c *config.Config) {
		c.SelfMonitor, c.WALInterval = false, 10*time.Millisecond
	})
	t.Cleanup(func() { one.end(t) })
	nodes := startThree(t, func(int, *config.Config) {})
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Now().Unix() - 100
	for i := range 10 { // two series have tags only
		key, err := metric.Key("cpu", fmt.Sprint("m", i))
		if err != nil {
			t.Fatal(err)
		}
		for slot := range int64(3) {
			one.send(t, "fleet", key, now+slot*int64(i), int64(i)+slot)
			nodes[i%3].send(t, "fleet", key, now+slot*int64(i), int64(i)+slot)
		}
	}
	queries := []string{
		"SELECT ALL FROM fleet WHERE site = 's1'",
		"SELECT cpu FROM other WHERE k8s:app = 'a1' AND site != 's0' AS $site",
		"SELECT ALL FROM fleet GROUP BY $site USING sum AS $site METADATA {app: $k8s:app}",
		"SELECT avg(ALL FROM fleet WHERE site =~ 's[12]' GROUP BY $k8s:app USING sum, 5s)",
		"SELECT ALL FROM fleet WHERE ddb:part_2 = 'm3'",
		"SELECT ALL FROM nowhere WHERE a = 'b'",
	}
	var paths []string
	for _, q := range queries {
		paths = append(paths,
			"/?q="+url.QueryEscape(fmt.Sprintf("%s BETWEEN %d000 AND %d000", q, now-5, now+30)),
			"/?q="+url.QueryEscape(fmt.Sprintf("%s BETWEEN %d000 AND %d000", q, now-9000, now-8000)))
	}
	paths = append(paths, "/collections", "/collections/fleet/metrics", "/collections/other/metrics",
		"/collections/fleet/namespaces",
		"/collections/fleet/namespaces/k8s/tags", "/tags/collections", "/tags/names",
		"/tags/names?collection=other", "/tags/values?name=site",
		"/tags/top?by=names", "/tags/top?by=values", "/tags/top?by=buckets", "/tags/top?by=prefixes")
	for round := range 3 {
		tagOperations(t, random, one, nodes, 15)
		if round == 2 {
			for _, n := range []*running{one, nodes[1]} {
				if status, text := n.post(t, "/admin/series/delete",
					`{"bucket":"fleet","metric":"cpu.m3"}`); status != http.StatusOK {
					t.Fatalf("%d %s", status, text)
				}
			}
		}
		for _, path := range paths {
			want := one.answer(t, path)
			for i, n := range nodes {
				if n.answer(t, path) != want {
					until(t, fmt.Sprintf("node %d to answer %s\n%s\nit answers\n%s", i, path, want,
						n.answer(t, path)), func() bool {
						return n.answer(t, path) == want
					})
				}
			}
		}
	}
}

// TestTagsOfSendersReachAllNodes: a sender of Graphite's lines gives tags to one node; another one
// finds the series by them. What it sends again costs nothing between nodes.
func TestTagsOfSendersReachAllNodes(t *testing.T) {
	addr := freeAddr(t)
	nodes := startThree(t, func(i int, c *config.Config) {
		if i == 0 {
			c.GraphiteAddr, c.GraphiteBucket = addr, "graphite"
		}
	})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	now := time.Now().Unix() - 20
	send := func(at int64) {
		t.Helper()
		for i := range 5 {
			if _, err := fmt.Fprintf(conn, "disk.used;host=web%d;dc=eu %d %d\n", i, i, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	query := "SELECT sum(ALL FROM graphite WHERE dc = 'eu' AND host = 'web3') LAST 10m"
	read := func(n *running) bool {
		status, text := n.ask(t, http.MethodGet, "/?q="+url.QueryEscape(query))
		return status == http.StatusOK && strings.Contains(text, "3")
	}
	send(now)
	for i, n := range nodes {
		until(t, fmt.Sprint("node ", i, " to find the series"), func() bool { return read(n) })
	}
	told := func() string {
		_, text := nodes[0].ask(t, http.MethodGet, "/metrics")
		lines := strings.Split(text, "\n")
		return lines[slices.IndexFunc(lines, func(l string) bool {
			return strings.HasPrefix(l, "dalmatiner_cluster_tag_changes_told_total ")
		})]
	}
	before := told()
	for at := range int64(5) {
		send(now + 1 + at)
	}
	count := "SELECT sum(count(ALL FROM graphite WHERE dc = 'eu', 10m)) LAST 10m"
	until(t, "all points", func() bool {
		_, text := nodes[1].ask(t, http.MethodGet, "/?q="+url.QueryEscape(count))
		return strings.Contains(text, "30")
	})
	if after := told(); after != before {
		t.Errorf("the same tags were told again: %s, then %s", before, after)
	}
}

package node

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/host/config"
)

// TestEventsOfAClusterAreThoseOfOneNode: the same events, given to any node of a cluster and to a
// node on its own, make the same answers, byte for byte, at each node.
func TestEventsOfAClusterAreThoseOfOneNode(t *testing.T) {
	one := startWith(t, t.TempDir(), "one", func(c *config.Config) {
		c.SelfMonitor, c.WALInterval = false, 10*time.Millisecond
	})
	t.Cleanup(func() { one.end(t) })
	nodes := startThree(t, func(int, *config.Config) {})
	random := rand.New(rand.NewPCG(3, 4))
	start := time.Now().Add(-6 * time.Hour).Truncate(time.Second)
	at := func(second int) int64 { return start.Add(time.Duration(second) * time.Second).UnixNano() }
	var lines []string
	seconds := random.Perm(5 * 3600)
	for i := range 300 {
		body := fmt.Sprintf(`{"time":%d,"host":"h%d","level":%d,"text":%q}`+"\n", at(seconds[i]), i%7,
			i%3, strings.Repeat("x", random.IntN(400)))
		lines = append(lines, body)
	}
	for len(lines) > 0 {
		n := min(len(lines), 1+random.IntN(40))
		batch := strings.Join(lines[:n], "")
		lines = lines[n:]
		for range 1 + random.IntN(2) { // some come twice, and stay both
			want, wantText := one.post(t, "/events/app", batch)
			got, gotText := nodes[random.IntN(3)].post(t, "/events/app", batch)
			if got != want || !strings.Contains(gotText, `"refused":0`) || got != http.StatusOK {
				t.Fatalf("the cluster answers %d %s, a node on its own %d %s", got, gotText, want, wantText)
			}
		}
	}
	var paths []string
	for _, span := range [][2]int{{0, 5 * 3600}, {1800, 2 * 3600}, {3600, 3601}} {
		from, to := at(span[0])/1e6, at(span[1])/1e6
		paths = append(paths,
			fmt.Sprintf("/events?bucket=app&start=%d&end=%d", from, to),
			fmt.Sprintf("/events?bucket=app&start=%d&end=%d&order=desc&limit=17", from, to),
			fmt.Sprintf("/events?bucket=app&start=%d&end=%d&limit=20&filter=%s", from, to,
				url.QueryEscape("host == h3")),
			"/?q="+url.QueryEscape(fmt.Sprintf("SELECT EVENTS FROM app WHERE level == 2 BETWEEN %d AND %d",
				from, to)),
			"/?q="+url.QueryEscape(fmt.Sprintf("SELECT count(EVENTS FROM app, 10m) BETWEEN %d AND %d", from,
				to)))
	}
	for _, path := range paths {
		want := one.answer(t, path)
		if !strings.HasPrefix(want, "200 ") {
			t.Errorf("%s: %.500s", path, want)
		}
		for i, n := range nodes {
			if got := n.answer(t, path); got != want {
				t.Errorf("%s: node %d answers\n%.2000s\na node on its own\n%.2000s", path, i, got, want)
			}
		}
	}
}

// TestALiveTailOfACluster shows the events that any node takes.
func TestALiveTailOfACluster(t *testing.T) {
	nodes := startThree(t, func(int, *config.Config) {})
	if status, text := nodes[0].post(t, "/events/app", `{"n":"first"}`+"\n"); status != http.StatusOK {
		t.Fatal(text)
	}
	resp, err := http.Get("http://" + nodes[1].http + "/events?bucket=app&follow=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	next := func() string {
		for in.Scan() {
			if in.Text() != "" {
				return in.Text()
			}
		}
		t.Fatal("the tail has ended: ", in.Err())
		return ""
	}
	if got := next(); got != ": events from now on" {
		t.Fatal(got)
	}
	for i := range 9 {
		if status, text := nodes[i%3].post(t, "/events/app",
			fmt.Sprintf(`{"n":"e%d"}`+"\n", i)); status != http.StatusOK {
			t.Fatal(text)
		}
		if got := next(); !strings.Contains(got, fmt.Sprintf(`{"n":"e%d"}`, i)) {
			t.Fatalf("event %d: %s", i, got)
		}
	}
}

// TestSyslogToACluster: messages that one node takes are read at another one.
func TestSyslogToACluster(t *testing.T) {
	addr := freeAddr(t)
	nodes := startThree(t, func(i int, c *config.Config) {
		if i == 0 {
			c.Syslog.Addr = addr
		}
	})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := range 5 {
		if _, err := fmt.Fprintf(conn, "<13>1 %s web1 app - - - message %d\n",
			time.Now().UTC().Format(time.RFC3339Nano), i); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now().Add(-time.Hour).UnixMilli()
	until(t, "the messages at another node", func() bool {
		status, text := nodes[2].ask(t, http.MethodGet,
			fmt.Sprintf("/events?bucket=syslog&start=%d", start))
		return status == http.StatusOK && strings.Count(text, "message ") == 5
	})
}

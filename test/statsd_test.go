package test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
)

// TestStatsDCountsExactly: what comes over UDP, TCP and the unix socket is in the sums, however the
// intervals cut it, and also what came just before the node stopped.
func TestStatsDCountsExactly(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	args := []string{"--set", "self_monitor=off", "--set", "statsd.addr=127.0.0.1:0", "--set",
		"statsd.interval=1s", "--set", "statsd.socket=" + socket}
	data := filepath.Join(dir, "data")
	n := startNode(t, data, args...)
	start := time.Now().Unix()
	sum := 0
	for round := 1; round <= 2; round++ {
		addr := n.listener("statsd lines")
		udp, tcp, unix := n.to("udp", addr), n.to("tcp", addr), n.to("unixgram", socket)
		samples := 0.0
		for i := range 3000 {
			text := fmt.Appendf(nil, "hits:%d|c|#host:a\nlatency:%d:%d|ms\nbad|c\n", i, i, i)
			put(t, udp, text)
			put(t, tcp, text)
			put(t, unix, text)
			sum += 3 * i
			samples += 9
			if i%100 == 99 { // UDP must not drop
				eventually(t, "all samples are read", func() bool {
					return n.figure("statsd_samples_total") == samples
				})
			}
		}
		put(t, udp, []byte("_e{5,4}:title|text|#a:b\n_sc|check|1"))
		put(t, udp, []byte("last:1|c"))
		if got := n.refusals("statsd_bad_line"); got != 9000*round {
			t.Errorf("%d lines are refused by round %d", got, round)
		}
		n.stop()
		n = startNode(t, data, args...)
	}
	end := time.Now().Unix() + 2
	series := func(parts ...string) (sum int) {
		t.Helper()
		for _, w := range get(t, n.dial(), "statsd", key(t, parts...), start, int(end-start)) {
			if point.KindOf(w) == point.KindInt {
				sum += int(point.Int(w))
			}
		}
		return sum
	}
	if got := series("hits", "counter", "host=a"); got != sum {
		t.Errorf("hits are %d, want %d", got, sum)
	}
	if got := series("latency", "count"); got != 36_000 {
		t.Errorf("%d latencies, want 36000", got)
	}
	if got := series("last", "counter"); got != 2 {
		t.Errorf("%d last samples, want 2: a stop reads what the kernel has", got)
	}
	answer, err := http.Get(fmt.Sprintf("http://%s/events?bucket=statsd&start=%d", n.http, start))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || strings.Count(string(text), `"title":"title"`) != 2 ||
		strings.Count(string(text), `"check":"check"`) != 2 {
		t.Errorf("%s, %v", text, err)
	}
}

// TestStatsDSocketOfACrash: a socket that a crash has left does not keep the node from starting.
func TestStatsDSocketOfACrash(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--set", "self_monitor=off", "--set", "statsd.interval=1s", "--set",
		"statsd.socket=" + filepath.Join(dir, "s")}
	n := startNode(t, filepath.Join(dir, "data"), args...)
	n.kill()
	n = startNode(t, filepath.Join(dir, "data"), args...)
	put(t, n.to("unixgram", filepath.Join(dir, "s")), []byte("a:1|c"))
	eventually(t, "the point is stored", func() bool {
		answer, err := http.Get("http://" + n.http + "/buckets/statsd")
		if err != nil {
			return false
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		return err == nil && strings.Contains(string(text), "'a'.'counter'")
	})
}

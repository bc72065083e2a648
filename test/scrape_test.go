package test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"dalmatiner/client"
	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/codec/point"
)

// scrapeTarget is a program that is scraped. At scrape n it says counter n, and ended up to the
// fifth scrape. Below /many it says three more series.
type scrapeTarget struct {
	*httptest.Server
	scrapes atomic.Int64
}

func newScrapeTarget(t *testing.T) *scrapeTarget {
	target := &scrapeTarget{}
	target.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		if r.URL.Path == "/many" {
			_, _ = fmt.Fprint(w, "a 1\nb 2\nc 3\n")
			return
		}
		n := target.scrapes.Add(1)
		_, _ = fmt.Fprintf(w, "# TYPE counter counter\ncounter %d\nhalf %d.5\ndropped 1\n"+
			"own{job=\"theirs\",path=\"/ä \\\"b\\\"=\"} 0.25\n", n, n)
		if n <= 5 {
			_, _ = fmt.Fprint(w, "ended 7\n")
		}
	}))
	t.Cleanup(target.Close)
	return target
}

// await waits until the target was scraped so many times more.
func (s *scrapeTarget) await(t *testing.T, more int64) {
	t.Helper()
	want := s.scrapes.Load() + more
	eventually(t, "the target is scraped", func() bool { return s.scrapes.Load() >= want })
}

// config writes a configuration, with further jobs.
func (s *scrapeTarget) config(t *testing.T, file, more string) {
	t.Helper()
	text := fmt.Sprintf(`
scrape_configs:
- job_name: ours
  scrape_interval: 50ms
  scrape_timeout: 50ms
  static_configs:
  - targets: [%q]
  relabel_configs:
  - target_label: instance
    replacement: one
  metric_relabel_configs:
  - source_labels: [__name__]
    regex: dropped
    action: drop
%s`, s.Listener.Addr(), more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestScrape: each scrape is stored with its time and value, but for the one under way when the
// node is killed. A series that ends has a marker.
func TestScrape(t *testing.T) {
	t.Parallel()
	target := newScrapeTarget(t)
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	target.config(t, file, "")
	dir := t.TempDir()
	args := []string{"--set", "scrape.config=" + file, "--set", "wal.sync=always",
		"--set", "scrape.bucket=by_ms", "--set", "self_monitor=off", "--set", "bucket.auto_create=off"}
	begin := time.Now().UnixMilli()
	n := startNode(t, dir, args...)
	// Until the bucket is there, samples are refused.
	eventually(t, "a scrape is refused", func() bool {
		return n.refusals("scrape_unknown_bucket") > 0
	})
	_, err := n.admin().CreateBucket(t.Context(),
		admin.Bucket{Name: "by_ms", Resolution: 1, PPF: 604800, HPTS: true})
	if err != nil {
		t.Fatal(err)
	}
	first := target.scrapes.Load() + 1
	target.await(t, 6)
	for range 2 {
		n.kill()
		n = startNode(t, dir, args...)
		target.await(t, 5)
	}
	checkScrapes(t, n, begin, first, target.scrapes.Load()-1)
	n.stop()
}

// checkScrapes reads what scrapes from the first on were stored: at most two of them are missing,
// which were under way at a kill.
func checkScrapes(t *testing.T, n *node, begin, first, last int64) {
	t.Helper()
	c := n.dial()
	slots := int(time.Now().UnixMilli() - begin)
	read := func(name string, labels ...string) (values []uint64) {
		t.Helper()
		parts := append([]string{name}, labels...)
		list, err := c.GetTimestamped(context.Background(), "by_ms", key(t, parts...), begin, slots)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range list {
			if p.Word == 0 {
				continue
			}
			if want := uint64(begin+int64(i)) * 1e6; p.Time != want {
				t.Errorf("%s of slot %d is at %d, want %d", name, i, p.Time, want)
			}
			values = append(values, p.Word)
		}
		return values
	}
	ours := []string{"instance=one", "job=ours"}
	counter, half := read("counter", ours...), read("half", ours...)
	there := map[uint64]bool{}
	for i, word := range counter {
		there[word] = true
		if i > 0 && point.Int(word) <= point.Int(counter[i-1]) {
			t.Errorf("counter has %x behind %x", word, counter[i-1])
		}
		if want := client.Float(float64(point.Int(word)) + 0.5); i >= len(half) || half[i] != want {
			t.Errorf("half has not %x as its value %d", want, i)
		}
	}
	missing := 0
	for n := first + 1; n <= last; n++ { // the bucket came during the first
		if !there[client.Int(n)] {
			missing++
		}
	}
	if missing > 2 {
		t.Errorf("of the scrapes %d to %d, %d are missing", first+1, last, missing)
	}
	if ups := read("up", ours...); len(ups) != len(counter) {
		t.Errorf("up has %d values, counter %d", len(ups), len(counter))
	}
	if got := read("dropped", ours...); len(got) > 0 {
		t.Errorf("dropped has %x", got)
	}
	own := read("own", "exported_job=theirs", "instance=one", "job=ours", `path=/ä "b"=`)
	if len(own) != len(counter) || own[0] != client.Float(0.25) {
		t.Errorf("own has %x", own)
	}
	if ended := read("ended", ours...); len(ended) > 0 && ended[len(ended)-1] != point.Stale {
		t.Errorf("ended has %x", ended)
	}
}

// TestScrapeNativeHistograms: they are stored as classic ones.
func TestScrapeNativeHistograms(t *testing.T) {
	t.Parallel()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "native", Help: "-",
		NativeHistogramBucketFactor: 2, NativeHistogramZeroThreshold: 0.5})
	for _, v := range []float64{0, 1, 3, 3.5, 100} {
		h.Observe(v)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(h)
	target := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	t.Cleanup(target.Close)
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	text := fmt.Sprintf(`
scrape_configs:
- job_name: j
  scrape_interval: 1s
  scrape_native_histograms: true
  static_configs: [{targets: [%q]}]
  relabel_configs: [{target_label: instance, replacement: one}]
`, target.Listener.Addr())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := past(0)
	n := startNode(t, t.TempDir(), "--set", "scrape.config="+file, "--set", "self_monitor=off")
	eventually(t, "a scrape is stored", func() bool { return n.account("prometheus").Accepted > 10 })
	for name, want := range map[string]float64{"native_count": 5, "native_sum": 107.5,
		"native_bucket/0.5": 1, "native_bucket/1": 2, "native_bucket/2": 2, "native_bucket/4": 4,
		"native_bucket/128": 5, "native_bucket/+Inf": 5} {
		name, le, _ := strings.Cut(name, "/")
		parts := []string{name, "instance=one", "job=j"}
		if le != "" {
			parts = append(parts, "le="+le)
		}
		words := get(t, n.dial(), "prometheus", key(t, parts...), begin, int(past(0)-begin)+1)
		word := slices.Max(words)
		if word != client.Float(want) && word != client.Int(int64(want)) {
			t.Errorf("%q has %v, want %v", parts, client.Value(word), want)
		}
	}
}

// TestScrapeReload: the file is read anew at SIGHUP and over HTTP. A bad one changes nothing.
func TestScrapeReload(t *testing.T) {
	t.Parallel()
	target := newScrapeTarget(t)
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	target.config(t, file, "")
	n := startNode(t, t.TempDir(), "--set", "scrape.config="+file, "--set", "self_monitor=off")
	target.await(t, 2)
	second := fmt.Sprintf(`
- job_name: second
  scrape_interval: 50ms
  scrape_timeout: 50ms
  metrics_path: /many
  sample_limit: 2
  static_configs:
  - targets: [%q]
`, target.Listener.Addr())
	target.config(t, file, second)
	hangup := func() {
		if err := n.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	hangup()
	eventually(t, "the second job fails by its limit", func() bool {
		list := activeTargets(t, n)
		return len(list) == 2 && strings.Contains(list[1].LastError, "sample limit exceeded")
	})
	eventually(t, "its samples are counted", func() bool {
		return n.refusals("scrape_failed_scrape") > 0
	})
	target.config(t, file, second+"  nonsense: 1\n")
	hangup()
	eventually(t, "the log names the mistake", func() bool {
		return strings.Contains(n.log.String(), "nonsense")
	})
	reload := senderRequest{"bad", "POST", "/-/reload", "", nil, 400, "field nonsense not found"}
	reload.check(t, n)
	target.await(t, 2)
	if list := activeTargets(t, n); len(list) != 2 {
		t.Errorf("there are %d targets", len(list))
	}
	target.config(t, file, "")
	reload = senderRequest{"good", "POST", "/-/reload", "", nil, 204, ""}
	reload.check(t, n)
	eventually(t, "the second job is over", func() bool { return len(activeTargets(t, n)) == 1 })
	if got := activeTargets(t, n)[0]; got.Health != "up" || got.Labels["instance"] != "one" {
		t.Errorf("%+v", got)
	}
	n.stop()
}

type activeTarget struct {
	Labels            map[string]string
	Health, LastError string
}

func activeTargets(t *testing.T, n *node) []activeTarget {
	t.Helper()
	r, err := http.Get("http://" + n.http + "/api/v1/targets?state=active")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var answer struct {
		Data struct{ ActiveTargets []activeTarget }
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer.Data.ActiveTargets
}

// TestScrapeConfigErrors: a node does not start with a file that it cannot read.
func TestScrapeConfigErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"scrape_configs: [{job_name: a, x: 1}]": "field x not found",
		"scrape_configs: [{job_name: a, kubernetes_sd_configs: [{}]}]": "kubernetes_sd_configs not " +
			"found in type config.ScrapeConfig; of the discoveries there are static_configs",
	} {
		file := filepath.Join(t.TempDir(), "prometheus.yml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n := launch(t, t.TempDir(), "--set", "scrape.config="+file)
		if code := n.wait(); code != 1 || !strings.Contains(n.log.String(), want) {
			t.Errorf("%s: exit code %d, want 1 and %q in\n%s", text, code, want, n.log)
		}
	}
}

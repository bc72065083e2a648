package test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dalmatiner/client"
)

// sender returns the path of a program that others wrote: make test-senders has built it.
func sender(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("DDB_SENDERS")
	if dir == "" {
		t.Skip("DDB_SENDERS names no directory with " + name + ": run make test-senders")
	}
	return filepath.Join(dir, name)
}

// process is a program that runs until the test ends.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	log strings.Builder
}

// Write takes what the program says.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(text)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func startProcess(t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // its log says how it ended
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it has usually ended
		<-p.done
		if t.Failed() {
			t.Logf("log of %s:\n%s", filepath.Base(program), p.text())
		}
	})
	return p
}

// end ends the program as its user would, and waits.
func (p *process) end() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%s runs on after SIGTERM", p.cmd.Path)
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// sentPoints are the points that a client says it has sent: of each series, by its parts with
// zeros between them, the values by time in ns.
type sentPoints map[string]map[int64]float64

func (s sentPoints) add(parts []string, ns int64, v float64) {
	name := strings.Join(parts, "\x00")
	if s[name] == nil {
		s[name] = map[int64]float64{}
	}
	s[name][ns] = v
}

func (s sentPoints) count() (n int) {
	for _, points := range s {
		n += len(points)
	}
	return n
}

// missing reads every series of a bucket with slots of a second back, and says what is not equal.
func (s sentPoints) missing(n *node, bucket string) (wrong []string) {
	n.t.Helper()
	c := n.dial()
	defer c.Close()
	for name, points := range s {
		first, last := int64(math.MaxInt64), int64(0)
		for ns := range points {
			first, last = min(first, ns/1e9), max(last, ns/1e9)
		}
		k := key(n.t, strings.Split(name, "\x00")...)
		got, err := c.GetTimestamped(context.Background(), bucket, k, first, int(last-first)+1)
		if err != nil {
			return []string{err.Error()}
		}
		there := map[int64]float64{}
		for _, p := range got {
			switch v := client.Value(p.Word).(type) {
			case int64:
				there[int64(p.Time)] = float64(v)
			case float64:
				there[int64(p.Time)] = v
			}
		}
		for ns, v := range points {
			if w, ok := there[ns]; !ok || w != v && !(math.IsNaN(v) && math.IsNaN(w)) {
				wrong = append(wrong, fmt.Sprintf("%q at %d: sent %v, there is %v (%v)", name, ns, v, w, ok))
			}
			delete(there, ns)
		}
		for ns, v := range there {
			wrong = append(wrong, fmt.Sprintf("%q at %d: never sent, there is %v", name, ns, v))
		}
	}
	return wrong
}

// check waits until all is there as it was sent.
func (s sentPoints) check(n *node, bucket string) {
	n.t.Helper()
	var wrong []string
	deadline := time.Now().Add(patience)
	for wrong = s.missing(n, bucket); len(wrong) > 0 && time.Now().Before(deadline); {
		wrong = s.missing(n, bucket)
	}
	if len(wrong) > 0 {
		n.t.Errorf("%d of %d points of %s differ, such as %s", len(wrong), s.count(), bucket,
			strings.Join(wrong[:min(5, len(wrong))], "\n"))
	}
	row := n.account(bucket)
	if stored := row.Accepted + row.Late; row.Received != stored+row.Duplicate ||
		stored < uint64(s.count()) {
		n.t.Errorf("account of %s: %+v, %d were sent", bucket, row, s.count())
	}
	n.t.Logf("%s: %d points of %d series", bucket, s.count(), len(s))
}

// atSame starts a node anew at the addresses it had.
func (n *node) atSame(dir string, args ...string) *node {
	n.t.Helper()
	return startNode(n.t, dir, append([]string{"--tcp-addr", n.tcp, "--http-addr", n.http},
		args...)...)
}

// TestPrometheusSends: Prometheus scrapes itself and the node, and sends all of it by both
// versions of remote write, while the node is killed.
func TestPrometheusSends(t *testing.T) {
	program := sender(t, "prometheus")
	dir := t.TempDir()
	args := []string{"--set", "wal.sync=always", "--set", "self_monitor=off"}
	n := startNode(t, dir, args...)
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	config := func(targets string) {
		text := fmt.Sprintf(`
global: {scrape_interval: 2s, scrape_timeout: 2s}
remote_write:
- {name: v1, url: "http://%[1]s/prometheus/v1/api/v1/write"}
- {name: v2, url: "http://%[1]s/prometheus/v2/api/v1/write", protobuf_message: io.prometheus.write.v2.Request}
scrape_configs: [%s]
`, n.http, targets)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config("")
	p := startProcess(t, program, "--config.file="+file, "--web.listen-address=127.0.0.1:0",
		"--storage.tsdb.path="+t.TempDir(), "--web.enable-lifecycle")
	address := ""
	eventually(t, "Prometheus listens", func() bool {
		m := regexp.MustCompile(`msg="Listening on" \S*\s*address=(\S+)`).FindStringSubmatch(p.text())
		if m != nil {
			address = m[1]
		}
		return m != nil
	})
	config(fmt.Sprintf(`{job_name: all, static_configs: [{targets: [%q, %q]}]}`, address, n.http))
	p.signal(syscall.SIGHUP)
	for range 2 {
		arrivals(t, n, "v1", 3000)
		n.kill()
		n = n.atSame(dir, args...)
	}
	arrivals(t, n, "v2", 3000)
	config("") // its samples become no more
	p.signal(syscall.SIGHUP)
	eventually(t, "scraping has ended", func() bool {
		return strings.Count(p.text(), "Completed loading of configuration file") == 3
	})
	sent := prometheusSamples(t, address)
	for _, bucket := range []string{"v1", "v2"} {
		sent.check(n, bucket)
	}
}

// arrivals waits until a bucket has received so many points since the node's start.
func arrivals(t *testing.T, n *node, bucket string, points uint64) {
	t.Helper()
	before := n.account(bucket).Received
	eventually(t, "points arrive in "+bucket, func() bool {
		return n.account(bucket).Received >= before+points
	})
}

// prometheusSamples returns all samples that a Prometheus has, without stale markers.
func prometheusSamples(t *testing.T, address string) sentPoints {
	t.Helper()
	query := url.Values{"query": {`{__name__!=""}[15m]`}}
	r, err := http.Get("http://" + address + "/api/v1/query?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	d := json.NewDecoder(r.Body)
	d.UseNumber()
	if err := d.Decode(&answer); err != nil || len(answer.Data.Result) < 100 {
		t.Fatalf("%d series, %v", len(answer.Data.Result), err)
	}
	sent := sentPoints{}
	for _, series := range answer.Data.Result {
		parts := []string{series.Metric["__name__"]}
		delete(series.Metric, "__name__")
		parts = append(parts, pairs(series.Metric)...)
		for _, v := range series.Values {
			seconds, err1 := strconv.ParseFloat(v[0].(json.Number).String(), 64)
			value, err2 := strconv.ParseFloat(v[1].(string), 64)
			if err1 != nil || err2 != nil {
				t.Fatalf("%v", v)
			}
			sent.add(parts, int64(math.Round(seconds*1000))*1e6, value)
		}
	}
	return sent
}

// pairs returns labels as parts, sorted.
func pairs(labels map[string]string) (parts []string) {
	for name, value := range labels {
		if value != "" {
			parts = append(parts, name+"="+value)
		}
	}
	slices.SortFunc(parts, func(a, b string) int {
		return strings.Compare(strings.SplitN(a, "=", 2)[0], strings.SplitN(b, "=", 2)[0])
	})
	return parts
}

// telegrafOutputs send the same points to buckets of their names.
const telegrafOutputs = `
[agent]
  interval = "1s"
  flush_interval = "1s"
  metric_batch_size = 200
  metric_buffer_limit = 100000
[[inputs.cpu]]
[[inputs.mem]]
[[inputs.net]]
[[inputs.system]]
[[inputs.disk]]
[[inputs.mock]]
  metric_name = "odd measurement, of a test"
  [inputs.mock.tags]
    "a key" = "v, w=x"
  [[inputs.mock.random]]
    name = "some value"
    min = -1.0
    max = 1.0
[[outputs.file]]
  files = ["%[2]s"]
  data_format = "influx"
[[outputs.influxdb]]
  urls = ["http://%[1]s"]
  database = "influx1"
[[outputs.influxdb_v2]]
  urls = ["http://%[1]s"]
  organization = "o"
  bucket = "influx2"
`

// TestTelegrafSends: telegraf's own inputs on this host, sent by each of its outputs, while the
// node is killed.
func TestTelegrafSends(t *testing.T) {
	program := sender(t, "telegraf")
	dir := t.TempDir()
	args := []string{"--set", "wal.sync=always", "--set", "self_monitor=off"}
	n := startNode(t, dir, args...)
	file, out := filepath.Join(t.TempDir(), "telegraf.conf"), filepath.Join(t.TempDir(), "sent")
	text := fmt.Sprintf(telegrafOutputs, n.http, out)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, program, "--config", file)
	for range 2 {
		arrivals(t, n, "influx1", 200)
		n.kill()
		n = n.atSame(dir, args...)
	}
	arrivals(t, n, "influx2", 200)
	p.end()
	sent := telegrafPoints(t, out)
	sent.check(n, "influx1")
	sent.check(n, "influx2")
}

// telegrafPoints reads the file of telegraf's output file: numbers and booleans, no texts.
func telegrafPoints(t *testing.T, path string) sentPoints {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sent := sentPoints{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := splitLine(lines.Text(), ' ')
		head := splitLine(words[0], ',')
		tags := map[string]string{}
		for _, tag := range head[1:] {
			pair := splitLine(tag, '=')
			tags[escaped(plain(pair[0]))] = plain(pair[1])
		}
		ns, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		for _, field := range splitLine(words[1], ',') {
			pair := splitLine(field, '=')
			if v, ok := influxNumber(pair[1]); ok {
				sent.add(append([]string{plain(head[0]), escaped(plain(pair[0]))}, pairs(tags)...), ns, v)
			}
		}
	}
	if sent.count() < 100 {
		t.Fatalf("telegraf sent %d points", sent.count())
	}
	return sent
}

// splitLine cuts a line where a byte stands that no \ is in front of, outside of texts.
func splitLine(line string, at byte) (parts []string) {
	begin, text := 0, false
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\':
			i++
		case line[i] == '"':
			text = !text
		case line[i] == at && !text:
			parts = append(parts, line[begin:i])
			begin = i + 1
		}
	}
	return append(parts, line[begin:])
}

// plain takes the \ off that stand before what divides a line.
func plain(text string) string {
	return strings.NewReplacer(`\ `, " ", `\,`, ",", `\=`, "=").Replace(text)
}

// escaped is a part of a name in a key.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, "=", `\=`).Replace(text)
}

func influxNumber(text string) (float64, bool) {
	switch {
	case text == "true":
		return 1, true
	case text == "false":
		return 0, true
	case strings.HasPrefix(text, `"`):
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.TrimRight(text, "iu"), 64)
	return v, err == nil
}

// TestTelegrafSendsOTLP: telegraf's output opentelemetry, over gRPC, while the node is killed.
// Names are those of Prometheus, and telegraf makes one metric of each field.
func TestTelegrafSendsOTLP(t *testing.T) {
	program := sender(t, "telegraf")
	dir := t.TempDir()
	args := []string{"--set", "wal.sync=always", "--set", "self_monitor=off"}
	n := startNode(t, dir, append(args, "--set", "otlp.grpc_addr=127.0.0.1:0")...)
	addr := n.listener("otlp over gRPC")
	args = append(args, "--set", "otlp.grpc_addr="+addr)
	file, out := filepath.Join(t.TempDir(), "telegraf.conf"), filepath.Join(t.TempDir(), "sent")
	text := fmt.Sprintf(`
[agent]
  interval = "1s"
  flush_interval = "1s"
  metric_buffer_limit = 100000
[[inputs.cpu]]
[[inputs.mem]]
[[outputs.file]]
  files = [%q]
  data_format = "influx"
[[outputs.opentelemetry]]
  service_address = %q
  [outputs.opentelemetry.attributes]
    "service.name" = "telegraf"
`, out, addr)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, program, "--config", file)
	arrivals(t, n, "otlp", 100)
	n.kill()
	n = n.atSame(dir, args...)
	arrivals(t, n, "otlp", 100)
	p.end()
	sent := sentPoints{}
	for name, points := range telegrafPoints(t, out) {
		parts := strings.Split(name, "\x00")
		tags := append(parts[2:], "job=telegraf")
		slices.Sort(tags)
		for ns, v := range points {
			sent.add(append([]string{parts[0] + "_" + parts[1]}, tags...), ns, v)
		}
	}
	sent.check(n, "otlp")
}

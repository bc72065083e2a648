package compare

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The names of protocols that several competitors speak.
const (
	graphiteProtocol    = "Graphite lines"
	remoteWriteProtocol = "remote write"
	influxProtocol      = "InfluxDB lines"
)

// victoriaMetrics is built from its module.
func victoriaMetrics() *competitor {
	const name, version = "victoriametrics-1.150.0", "v1.150.0"
	var program string
	return &competitor{
		name:     "VictoriaMetrics",
		settings: "-retentionPeriod=100y; it keeps answers of queries for the next time",
		fsync:    "parts written and synced within 5 s, no log",
		obtain: func(ctx context.Context, c *cache) (string, error) {
			program = filepath.Join(c.dir, name, "program")
			return version, c.goBuild(ctx, name, "github.com/VictoriaMetrics/VictoriaMetrics", version,
				"app/victoria-metrics", "", true)
		},
		ports: []string{"http", "graphite"},
		command: func(s *instance) (*exec.Cmd, error) {
			return exec.Command(program, "-storageDataPath="+filepath.Join(s.dir, "data"),
				"-retentionPeriod=100y",
				"-httpListenAddr="+s.addr("http"), "-graphiteListenAddr="+s.addr("graphite")), nil
		},
		ready: answers("http", "/health"),
		protocols: []protocol{
			{remoteWriteProtocol, remoteWrite, overRemoteWrite},
			{graphiteProtocol, graphiteLines, overTCP("graphite")},
		},
		flush: func(ctx context.Context, s *instance) error {
			_, err := s.get(ctx, "http", "/internal/force_flush")
			if err != nil {
				return err
			}
			if _, err = s.get(ctx, "http", "/internal/force_merge"); err != nil {
				return err
			}
			return until(ctx, "it has merged", func() (bool, error) {
				merging, err := s.sample(ctx, "vm_active_force_merges")
				return merging == 0, err
			})
		},
		count: func(ctx context.Context, s *instance) (int64, error) {
			return s.sample(ctx, "vm_rows_added_to_storage_total")
		},
		logs: []string{"data/cache"}, // written when it ends, for the next start
		ask:  askPromQL, answer: readPromQL, uncached: "&nocache=1", behind: true,
		tagging:  &tagWrites,
		playings: []playing{playParts(overRemoteWrite, remoteWritePart, false)},
	}
}

// prometheus is built from its module without service discovery, which has no
// part in what is measured.
func prometheus() *competitor {
	const name, version = "prometheus-3.15.0", "v0.315.0"
	var program string
	return &competitor{
		name: "Prometheus",
		settings: "--web.enable-remote-write-receiver --storage.tsdb.retention.time=10y; what is " +
			"younger than 2 h stays in its head and log: the load of many series writes no block",
		fsync: "log written to the page cache, synced when a segment is full",
		obtain: func(ctx context.Context, c *cache) (string, error) {
			program = filepath.Join(c.dir, name, "program")
			return "v3.15.0", c.goBuild(ctx, name, "github.com/prometheus/prometheus", version,
				"cmd/prometheus", "remove_all_sd", false)
		},
		ports: []string{"http"},
		command: func(s *instance) (*exec.Cmd, error) {
			config := filepath.Join(s.dir, "prometheus.yml")
			if err := os.WriteFile(config, []byte("global: {}\n"), 0o644); err != nil {
				return nil, err
			}
			return exec.Command(program, "--config.file="+config,
				"--storage.tsdb.path="+filepath.Join(s.dir, "data"),
				"--storage.tsdb.retention.time=10y", "--web.enable-remote-write-receiver",
				"--web.listen-address="+s.addr("http")), nil
		},
		ready:     answers("http", "/-/ready"),
		protocols: []protocol{{remoteWriteProtocol, remoteWrite, overRemoteWrite}},
		quiet:     5 * time.Second, advance: true, rows: 60,
		count: func(ctx context.Context, s *instance) (int64, error) {
			return s.sample(ctx, `prometheus_tsdb_head_samples_appended_total{type="float"}`)
		},
		logs: []string{"data/wal", "data/wbl", "data/chunks_head", "prometheus.yml"},
		ask:  askPromQL, answer: readPromQL, behind: true,
		tagging:  &tagWrites,
		playings: []playing{playParts(overRemoteWrite, remoteWritePart, true)},
	}
}

func overRemoteWrite(ctx context.Context, s *instance) (conn, error) {
	return overHTTP("http", "/api/v1/write", "Content-Encoding", "snappy", "Content-Type",
		"application/x-protobuf",
		"X-Prometheus-Remote-Write-Version", "0.1.0")(ctx, s)
}

// sample returns the value of one of a server's own metrics.
func (s *instance) sample(ctx context.Context, name string) (int64, error) {
	body, err := s.get(ctx, "http", "/metrics")
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(bytes.NewReader(body))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			v, err := strconv.ParseFloat(value, 64)
			return int64(v), err
		}
	}
	return 0, fmt.Errorf("it has no metric %s", name)
}

// askPromQL asks for steps that end with the time of their name, as ranges do:
// they are open to the left. An offset would make them begin with it, but then
// VictoriaMetrics keeps no answers.
func askPromQL(q *question) (port, path string) {
	window := fmt.Sprintf("[%ds]", q.every)
	var text string
	if q.mean {
		text = fmt.Sprintf(`avg(avg_over_time(metrics{agent="%s"}%s))`, agentName(q.agent), window)
	} else {
		text = fmt.Sprintf(`max_over_time(metrics{agent="%s",metric=~"%s"}%s)`, agentName(q.agent),
			strings.Join(q.names(), "|"), window)
	}
	v := url.Values{"query": {text}, "step": {strconv.FormatInt(q.every, 10)},
		"start": {strconv.FormatInt(q.from+q.every, 10)}, "end": {strconv.FormatInt(q.to, 10)}}
	return "http", "/api/v1/query_range?" + v.Encode()
}

func readPromQL(body []byte, _ *question) (answer, error) {
	var got struct {
		Data struct {
			Result []struct {
				Metric struct{ Metric string }
				Values [][2]json.RawMessage // time, text
			}
		}
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return nil, err
	}
	out := answer{}
	for _, r := range got.Data.Result {
		for _, pair := range r.Values {
			v, err := strconv.ParseFloat(strings.Trim(string(pair[1]), `"`), 64)
			if err != nil {
				return nil, err
			}
			out[r.Metric.Metric] = append(out[r.Metric.Metric], v)
		}
	}
	return out, nil
}

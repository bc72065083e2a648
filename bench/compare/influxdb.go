package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// influxConfig is what InfluxDB needs beside its defaults.
const influxConfig = `reporting-enabled = false
bind-address = "%s"
[meta]
  dir = "meta"
[data]
  dir = "data"
  wal-dir = "wal"
  wal-fsync-delay = "100ms"
  cache-max-memory-size = "4g"
  cache-snapshot-write-cold-duration = "3s"
  compact-full-write-cold-duration = "5s"
  max-series-per-database = 0
  max-values-per-tag = 0
[monitor]
  store-enabled = false
[http]
  bind-address = "%s"
  log-enabled = false
`

// influxDB is the package of Debian.
func influxDB() *competitor {
	const name = "influxdb-1.6.7"
	packages := []file{
		{"influxdb", "1.6.7~rc0-1+b13",
			"fcfddf7937befd82264359feaeb2f46a79f9574656ee0981eb19dcc5a153f55c"}}
	var program string
	return &competitor{
		name: "InfluxDB", settings: "wal-fsync-delay 100ms, for which writes wait; cache 4 GB, " +
			"snapshots after 3 s and full compactions after 5 s without writes, so that they end within " +
			"the measurement",
		fsync: "log synced every 100 ms",
		obtain: func(ctx context.Context, c *cache) (string, error) {
			program = filepath.Join(c.dir, name, "usr/bin/influxd")
			return "1.6.7", c.debian(ctx, name, packages)
		},
		ports: []string{"http", "rpc"},
		command: func(s *instance) (*exec.Cmd, error) {
			config := filepath.Join(s.dir, "influxdb.conf")
			err := os.WriteFile(config, fmt.Appendf(nil, influxConfig, s.addr("rpc"), s.addr("http")), 0o644)
			return exec.Command(program, "-config", config), err
		},
		ready: answers("http", "/ping"),
		prepare: func(ctx context.Context, s *instance) error {
			_, err := s.request(ctx, http.MethodPost, "http", "/query?q=CREATE+DATABASE+bench")
			return err
		},
		protocols: []protocol{
			{influxProtocol, influxLines, overHTTP("http", "/write?db=bench&precision=ns")}},
		quiet: 10 * time.Second, rows: 60,
		count: counted(influxPath("SELECT count(value) FROM metrics"), readInfluxQL),
		logs:  []string{"wal", "influxdb.conf"},
		ask:   askInfluxQL, answer: readInfluxQL,
		playings: []playing{playParts(overHTTP("http", "/write?db=bench&precision=ns"), influxPart,
			false)},
	}
}

func influxPath(query string) string {
	return "/query?db=bench&epoch=s&q=" + url.QueryEscape(query)
}

func askInfluxQL(q *question) (port, path string) {
	from := fmt.Sprintf("FROM metrics WHERE agent='%s' AND time >= %ds AND time < %ds",
		agentName(q.agent), q.from, q.to)
	if q.mean {
		return "http", influxPath(fmt.Sprintf("SELECT mean(value) %s GROUP BY time(%ds)", from, q.every))
	}
	metrics := "metric='" + strings.Join(q.names(), "' OR metric='") + "'"
	return "http", influxPath(fmt.Sprintf("SELECT max(value) %s AND (%s) GROUP BY time(%ds), metric",
		from, metrics, q.every))
}

func readInfluxQL(body []byte, _ *question) (answer, error) {
	var got struct {
		Results []struct {
			Error  string
			Series []struct {
				Tags   struct{ Metric string }
				Values [][2]float64 // time, value
			}
		}
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return nil, err
	}
	out := answer{}
	for _, r := range got.Results {
		if r.Error != "" {
			return nil, errors.New(r.Error)
		}
		for _, s := range r.Series {
			for _, pair := range s.Values {
				out[s.Tags.Metric] = append(out[s.Tags.Metric], pair[1])
			}
		}
	}
	return out, nil
}

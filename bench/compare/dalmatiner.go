package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/model/metric"
)

// ddbBucket is what the store's own stream is opened for, graphiteBucket what
// Graphite's lines go to.
const (
	ddbBucket      = "haggar"
	graphiteBucket = "graphite"
)

// dalmatiner is the store of this repository, to which all others are set in
// proportion.
func dalmatiner(bin string) *competitor {
	program := filepath.Join(bin, "ddb")
	return &competitor{
		name: "dalmatiner", settings: "defaults", fsync: "log synced every second", advance: true,
		obtain: func(ctx context.Context, _ *cache) (string, error) {
			out, err := exec.CommandContext(ctx, program, "--version").Output()
			if err != nil {
				return "", fmt.Errorf("%s: %w: build it with make build", program, err)
			}
			return strings.TrimSpace(string(out)), nil
		},
		ports: []string{"tcp", "http", "graphite"},
		command: func(s *instance) (*exec.Cmd, error) {
			absolute, err := filepath.Abs(program)
			return exec.Command(absolute, "serve", "--data-dir", filepath.Join(s.dir, "data"), "--set",
				"tcp.addr="+s.addr("tcp"),
				"--set", "http.addr="+s.addr("http"), "--set", "graphite.addr="+s.addr("graphite")), err
		},
		ready: answers("http", "/health"),
		protocols: []protocol{
			{"own stream, batches", batches, overStream},
			{graphiteProtocol, graphiteLines, overTCP("graphite")},
		},
		flush: func(ctx context.Context, s *instance) error {
			c := s.admin()
			if _, err := c.Flush(ctx); err != nil {
				return err
			}
			_, err := c.Merge(ctx)
			return err
		},
		count: func(ctx context.Context, s *instance) (int64, error) {
			account, err := s.admin().Account(ctx, "", 0)
			if err != nil {
				return 0, err
			}
			points := int64(0)
			for i := range account.Rows {
				if r := &account.Rows[i]; r.Bucket == ddbBucket || r.Bucket == graphiteBucket {
					points += int64(r.Accepted)
				}
			}
			return points, nil
		},
		logs:   []string{"data/wal"},
		ask:    askDQL,
		answer: readDQL, uncached: "&cache=off",
		tagging:  &tagLines,
		playings: []playing{playStream("slots", false), playStream("timestamps (hpts)", true)},
	}
}

func (s *instance) admin() *admin.Client {
	return &admin.Client{Addr: s.addr("http"),
		HTTP: &http.Client{Transport: s.http.Transport, Timeout: settleTimeout}}
}

// answers is the check of a server that is ready once a path can be read.
func answers(port, path string) func(context.Context, *instance) error {
	return func(ctx context.Context, s *instance) error {
		_, err := s.get(ctx, port, path)
		return err
	}
}

func askDQL(q *question) (port, path string) {
	span := fmt.Sprintf("BEFORE %q FOR %ds", time.Unix(q.to, 0).UTC().Format(time.DateTime),
		q.to-q.from)
	if q.mean {
		all := strings.TrimSuffix(metric.Text(key(q.agent, 0)), metric.Quote(metricName(0))) + "*"
		return "http", "/?q=" +
			url.QueryEscape(fmt.Sprintf("SELECT avg(avg(%s BUCKET %s, %ds)) %s", all, ddbBucket, q.every,
				span))
	}
	var fields []string
	for _, i := range q.metrics {
		fields = append(fields, fmt.Sprintf("max(%s BUCKET %s, %ds)", metric.Text(key(q.agent, i)),
			ddbBucket, q.every))
	}
	return "http", "/?q=" + url.QueryEscape("SELECT "+strings.Join(fields, ", ")+" "+span)
}

func readDQL(body []byte, q *question) (answer, error) {
	var got admin.Result
	if err := json.Unmarshal(body, &got); err != nil {
		return nil, err
	}
	names := q.names()
	if len(got.Results) != len(names) {
		return nil, fmt.Errorf("%d results, want %d", len(got.Results), len(names))
	}
	out := answer{}
	for i, r := range got.Results {
		for _, v := range r.Values {
			if v == nil {
				return nil, fmt.Errorf("result %d has gaps", i)
			}
			out[names[i]] = append(out[names[i]], *v)
		}
	}
	return out, nil
}

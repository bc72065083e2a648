package test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"

	"dalmatiner/client"
	"dalmatiner/internal/wire"
)

// TestExpositionText: what jobs push to VictoriaMetrics or to a Pushgateway is stored with the
// labels of the request, also behind a kill.
func TestExpositionText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startNode(t, dir, "--set", "self_monitor=off", "--set", "http.max_write=4KB")
	second := past(0) - 10
	ms := second * 1000
	text := fmt.Sprintf("# TYPE up gauge\nup{a=\"1\"} 1 %d\nup{a=\"1\"} 0.5 %d\n", ms+7, ms+1008)
	open := http.Header{"Content-Type": {"application/openmetrics-text; version=1.0.0"}}
	messages := http.Header{"Content-Type": {string(expfmt.NewFormat(expfmt.TypeProtoDelim))}}
	const path = "/api/v1/import/prometheus"
	for _, c := range []senderRequest{
		{"text", "POST", path + "?extra_label=job=x", text, nil, 204, ""},
		{"again", "PUT", "/prometheus" + path + "?extra_label=job=x", zipped(text), coded("gzip"), 204,
			""},
		{"another bucket", "POST", "/prometheus/old" + path, text, nil, 204, ""},
		{"seconds", "POST", path, fmt.Sprintf("open 2 %d.25\n# EOF\n", second), open, 204, ""},
		{"its time", "POST", fmt.Sprintf("%s?timestamp=%d", path, ms+7), "timed 3", nil, 204, ""},
		{"a group", "POST", "/metrics/job/cron/a/b%2Fc", fmt.Sprintf("up{a=\"z\"} 4 %d", ms), nil, 200,
			""},
		{"base64", "PUT", "/prometheus/metrics/job@base64/Y3Jvbg/a/c/none@base64/=",
			fmt.Sprintf("up 5 %d", ms), nil, 200, ""},
		{"messages", "PUT", "/metrics/job/go", family(t, ms), messages, 200, ""},
		{"no messages", "PUT", "/metrics/job/go", "\x05\xff", messages, 400, "messages of metrics"},
		{"bad lines", "POST", path, "a b\n{}\nok 1", nil, 400, "2 bad lines, all others are stored"},
		{"a bad label", "POST", path + "?extra_label=job", text, nil, 400, "name=value"},
		{"a bad time", "POST", path + "?timestamp=x", text, nil, 400, "milliseconds"},
		{"half a group", "POST", "/metrics/job/cron/a", text, nil, 400, "/metrics/job/"},
		{"large", "POST", path, strings.Repeat(" ", 5000), nil, 413, "http.max_write"},
	} {
		c.check(t, n)
	}
	if bad := n.refusals("exposition_bad_line"); bad != 2 {
		t.Errorf("%d bad lines", bad)
	}
	n.kill()
	n = startNode(t, dir, "--set", "self_monitor=off")
	for _, c := range []struct {
		bucket string
		key    []byte
		want   wire.Timestamped
	}{
		{"prometheus", key(t, "up", "a=1", "job=x"), timestamped(client.Int(1), ms+7)},
		{"old", key(t, "up", "a=1"), timestamped(client.Int(1), ms+7)},
		{"prometheus", key(t, "open"), timestamped(client.Int(2), ms+250)},
		{"prometheus", key(t, "timed"), timestamped(client.Int(3), ms+7)},
		{"prometheus", key(t, "up", "a=b/c", "job=cron"), timestamped(client.Int(4), ms)},
		{"prometheus", key(t, "up", "a=c", "job=cron"), timestamped(client.Int(5), ms)},
		{"prometheus", key(t, "runs", "job=go"), timestamped(client.Int(6), ms)},
	} {
		got, err := n.dial().GetTimestamped(t.Context(), c.bucket, c.key, second, 1)
		if err != nil || got[0] != c.want {
			t.Errorf("%s of %s: %+v, %v, want %+v", c.key, c.bucket, got, err, c.want)
		}
	}
}

func timestamped(w uint64, ms int64) wire.Timestamped {
	return wire.Timestamped{Word: w, Time: uint64(ms) * 1e6}
}

// family returns a metric as clients of Go push it.
func family(t *testing.T, ms int64) string {
	t.Helper()
	var out bytes.Buffer
	err := expfmt.NewEncoder(&out, expfmt.NewFormat(expfmt.TypeProtoDelim)).Encode(&dto.MetricFamily{
		Name: proto.String("runs"), Type: dto.MetricType_COUNTER.Enum(),
		Metric: []*dto.Metric{{Counter: &dto.Counter{Value: proto.Float64(6)},
			TimestampMs: proto.Int64(ms)}}})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

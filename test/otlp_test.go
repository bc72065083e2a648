package test

import (
	"net/http"
	"strings"
	"testing"

	"dalmatiner/client"
	"dalmatiner/internal/testkit/protomsg"
	"dalmatiner/internal/wire"
)

// TestOTLPAnswers: what an exporter does next follows from status and body.
func TestOTLPAnswers(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir(), "--set", "self_monitor=off", "--set", "http.max_write=4KB",
		"--set", "otlp.promote=host.name, x")
	ns := uint64(past(0)-10)*1e9 + 123
	pair := func(name, value string) protomsg.Message {
		return protomsg.Message(nil).Text(1, name).Bytes(2, protomsg.Message(nil).Text(1, value))
	}
	metrics := func(ns uint64, temporality uint64) string {
		data := protomsg.Message(nil).Bytes(1, protomsg.Message(nil).Fixed(3, ns).Fixed(6, 42))
		m := protomsg.Message(nil).Text(1, "http.requests").
			Bytes(7, data.Varint(2, temporality).Varint(3, 1))
		resource := protomsg.Message(nil).Bytes(1, pair("service.name", "shop")).
			Bytes(1, pair("host.name", "h"))
		return string(protomsg.Message(nil).Bytes(1, protomsg.Message(nil).Bytes(1, resource).
			Bytes(2, protomsg.Message(nil).Bytes(2, m))))
	}
	good, proto := metrics(ns, 2), http.Header{"Content-Type": {"application/x-protobuf"}}
	packed := coded("gzip")
	packed.Set("Content-Type", "application/x-protobuf")
	for _, c := range []senderRequest{
		{"good", "POST", "/v1/metrics", good, proto, 200, ""},
		{"VictoriaMetrics' path", "POST", "/opentelemetry/v1/metrics", zipped(good), packed, 200, ""},
		{"Prometheus' path", "POST", "/api/v1/otlp/v1/metrics", good, proto, 200, ""},
		{"differences", "POST", "/v1/metrics", metrics(ns, 1), proto, 200,
			"1 data points are not stored, such as: a sum or histogram of differences"},
		{"ahead", "POST", "/v1/metrics", metrics(ns+3600e9, 2), proto, 200, "1 of 1 points were not"},
		{"cut off", "POST", "/v1/metrics", good[:20], proto, 400, "no ExportMetricsServiceRequest"},
		{"JSON", "POST", "/v1/metrics", `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m",` +
			`"gauge":{"dataPoints":[{"timeUnixNano":"0"}]}}]}]}]}`,
			http.Header{"Content-Type": {"application/json"}}, 200,
			`{"partialSuccess":{"rejectedDataPoints":"1","errorMessage":"1 data points`},
		{"no JSON", "POST", "/v1/metrics", "{", http.Header{"Content-Type": {"application/json"}},
			400, "no JSON"},
		{"text", "POST", "/v1/metrics", "{}", http.Header{"Content-Type": {"text/plain"}}, 415,
			"application/x-protobuf and application/json"},
		{"large", "POST", "/v1/metrics", strings.Repeat("x", 5000), proto, 413, "http.max_write"},
	} {
		c.check(t, n)
	}
	k := key(t, "http_requests_total", "host_name=h", "job=shop")
	got, err := n.dial().GetTimestamped(t.Context(), "otlp", k, int64(ns/1e9), 1)
	if err != nil || got[0] != (wire.Timestamped{Word: client.Int(42), Time: ns}) {
		t.Errorf("%+v, %v", got, err)
	}
	if row := n.account("otlp"); row.Accepted != 1 || row.Duplicate != 2 ||
		row.Refused["future"] != 1 {
		t.Errorf("%+v", row)
	}
	if n.refusals("otlp_delta") != 1 || n.refusals("otlp_malformed") != 1 {
		t.Error("refusals are not counted")
	}
}

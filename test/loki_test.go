package test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"dalmatiner/internal/testkit/protomsg"
)

// TestLokiAnswers: lines become events once, in either form; what a shipper does next follows from
// the status.
func TestLokiAnswers(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir(), "--set", "self_monitor=off", "--set", "http.max_write=4KB")
	second := past(0) - 10
	json := http.Header{"Content-Type": {"application/json"}}
	proto := http.Header{"Content-Type": {"application/x-protobuf"}}
	text := func(labels, ns string) string {
		return fmt.Sprintf(`{"streams":[{"stream":%s,"values":[["%s","a \"line\"",{"trace":"x"}],`+
			`["%d","b"]]}]}`, labels, ns, second*1e9+2)
	}
	entry := func(labels string) string {
		at := protomsg.Message(nil).Varint(1, uint64(second)).Varint(2, 3)
		e := protomsg.Message(nil).Bytes(1, at).Text(2, "c").
			Bytes(3, protomsg.Message(nil).Text(1, "trace").Text(2, "y"))
		stream := protomsg.Message(nil).Text(1, labels).Bytes(2, e)
		return string(s2.EncodeSnappy(nil, protomsg.Message(nil).Bytes(1, stream)))
	}
	good := text(`{"job":"web"}`, fmt.Sprint(second*1e9+1))
	packed := coded("gzip")
	packed.Set("Content-Type", "application/json")
	const path = "/loki/api/v1/push"
	for _, c := range []senderRequest{
		{"JSON", "POST", path, good, json, 204, ""},
		{"again", "POST", path, zipped(good), packed, 204, ""},
		{"protocol buffers", "POST", path, entry(`{job="web", a="\"q\""}`), proto, 204, ""},
		{"a bad time", "POST", path, text(`{"job":"web"}`, "now"), json, 400,
			"1 lines are not stored, all others are"},
		{"bad labels", "POST", path, entry(`{job=web}`), proto, 400, "labels that are not {name="},
		{"many labels", "POST", path, entry("{" + strings.Repeat(`a="b",`, 200) + "}"), proto, 400,
			"more than 128 labels"},
		{"no JSON", "POST", path, "{", json, 400, "no push request of Loki"},
		{"not packed", "POST", path, "x", proto, 400, "block format of snappy"},
		{"text", "POST", path, "x", http.Header{"Content-Type": {"text/plain"}}, 415, "lines are taken"},
		{"large", "POST", path, strings.Repeat(" ", 5000), json, 413, "http.max_write"},
		{"what it became", "GET", "/events?bucket=loki&filter=labels.job%3D%3D'web'&start=" +
			fmt.Sprint(second*1000), "", nil, 200, `"message":"a \"line\""`},
		{"metadata", "GET", "/events?bucket=loki&filter=fields.trace%3D%3D'y'&start=" +
			fmt.Sprint(second*1000), "", nil, 200, `"labels":{"a":"\"q\"","job":"web"}`},
	} {
		c.check(t, n)
	}
	if got := n.eventsOf("loki"); got != 3 {
		t.Errorf("%d events are stored", got)
	}
	if n.refusals("loki_bad_line") != 3 || n.refusals("loki_malformed") != 1 {
		t.Error("bad lines are not counted")
	}
}

package test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/api/admin"
)

// TestInfluxAnswers: what telegraf does next follows from the status, and from the text of a 400.
func TestInfluxAnswers(t *testing.T) {
	n := startNode(t, t.TempDir(), "--set", "self_monitor=off", "--set", "http.max_write=4KB",
		"--set", "bucket.auto_create=off")
	for _, b := range []admin.Bucket{{Name: "telegraf", Resolution: 1000, PPF: 604800, HPTS: true},
		{Name: "influx", Resolution: 1000, PPF: 604800}} {
		if _, err := n.admin().CreateBucket(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	second := strconv.FormatInt(past(0), 10)
	for _, c := range influxRequests(second) {
		c.check(t, n)
	}
	if row := n.account("telegraf"); row.Accepted != 7 || row.Refused["future"] != 1 ||
		row.Received != 8 {
		t.Errorf("%+v", row)
	}
	slot, err := strconv.ParseInt(second, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	idle := key(t, "cpu", "idle", "host=a")
	got, err := n.dial().GetTimestamped(t.Context(), "telegraf", idle, slot, 1)
	if err != nil || got[0].Word != client.Int(1) || got[0].Time != uint64(slot)*1e9+123456789 {
		t.Errorf("%+v, %v", got, err)
	}
	words := get(t, n.dial(), "telegraf", key(t, "cpu", "user", "host=b"), slot, 1)
	if words[0] != client.Float(0.5) {
		t.Errorf("%x", words)
	}
}

// zipped returns a text compressed with gzip.
func zipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s)) // to memory
	_ = w.Close()
	return b.String()
}

// coded is the header of a body that is compressed.
func coded(coding string) http.Header { return http.Header{"Content-Encoding": {coding}} }

// influxRequests are those of one second, of which seven points are good and one is ahead.
func influxRequests(second string) []senderRequest {
	later := strconv.FormatInt(past(-time.Hour), 10)
	return []senderRequest{
		{"version 1", "POST", "/write?db=telegraf", "cpu,host=a idle=1 " + second + "123456789", nil,
			204, ""},
		{"version 2", "POST", "/influx/api/v2/write?org=o&bucket=telegraf&precision=s",
			"cpu,host=b idle=2i,user=0.5 " + second, nil, 204, ""},
		{"version 3", "POST", "/api/v3/write_lp?db=telegraf&precision=second",
			"cpu,host=c idle=t " + second, nil, 204, ""},
		{"gzip", "POST", "/write?db=telegraf&precision=s", zipped("cpu,host=d idle=4 " + second),
			coded("gzip"),
			204, ""},
		{"no database", "POST", "/write?precision=s", "m f=1 " + second, nil, 204, ""},
		{"texts", "POST", "/write?db=telegraf", `system,host=a uptime_format="1 day"`, nil, 204, ""},
		{"partly", "POST", "/write?db=telegraf&precision=s",
			"# comment\nm f=1 " + second + "\n\nm f=x\nm g=2 " + second, nil, 400,
			`{"error":"partial write: line 4: unable to parse 'm f=x': invalid field value dropped=1"}`},
		{"partly, version 2", "POST", "/api/v2/write?bucket=telegraf", "m", nil, 400,
			`{"code":"invalid","message":"partial write: line 1: unable to parse 'm': missing fields`},
		{"ahead", "POST", "/write?db=telegraf&precision=s", "m f=1 " + later, nil, 400,
			"1 of 1 points were not stored"},
		{"unknown", "POST", "/write?db=missing", "m f=1", nil, 404, `{"error":"unknown bucket 'missing'`},
		{"unknown, version 2", "POST", "/api/v2/write?bucket=missing", "m f=1", nil, 404,
			`{"code":"not found"`},
		{"precision", "POST", "/write?db=telegraf&precision=day", "m f=1", nil, 400, "known are ns"},
		{"large", "POST", "/write?db=telegraf", strings.Repeat("#", 5000), nil, 413, "http.max_write"},
		{"large unpacked", "POST", "/write?db=telegraf", zipped(strings.Repeat("#", 5000)),
			coded("gzip"), 413,
			"http.max_write"},
		{"no gzip", "POST", "/write?db=telegraf", "m f=1", coded("gzip"), 400, "not gzip"},
		{"zstd", "POST", "/write?db=telegraf", "m f=1", coded("zstd"), 415, "Content-Encoding zstd"},
		{"ping", "GET", "/ping", "", nil, 204, ""},
		{"health", "GET", "/influx/health", "", nil, 200, `"status":"pass"`},
		{"create", "POST", "/query?q=CREATE+DATABASE+%22x%22", "", nil, 200, `{"statement_id":0}`},
		{"databases", "GET", "/query?q=show+databases", "", nil, 200,
			`"columns":["name"],"name":"databases","values":[["influx"],["telegraf"]]`},
		{"select", "GET", "/query?q=SELECT+1", "", nil, 400, `{"error":"InfluxQL is not answered`},
	}
}

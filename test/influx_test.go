package test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/api/admin"
)

// influxRequest is a request, and what is answered.
type influxRequest struct {
	what, method, path, body string
	coding                   string
	status                   int
	says                     string
}

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

// check sends a request and compares the answer.
func (c *influxRequest) check(t *testing.T, n *node) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+n.http+c.path,
		strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	if c.coding != "" {
		r.Header.Set("Content-Encoding", c.coding)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != c.status || !strings.Contains(string(text), c.says) {
		t.Errorf("%s: %s: %s %v, want %d: %s", c.what, answer.Status, text, err, c.status, c.says)
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

// influxRequests are those of one second, of which seven points are good and one is ahead.
func influxRequests(second string) []influxRequest {
	later := strconv.FormatInt(past(-time.Hour), 10)
	return []influxRequest{
		{"version 1", "POST", "/write?db=telegraf", "cpu,host=a idle=1 " + second + "123456789", "",
			204, ""},
		{"version 2", "POST", "/influx/api/v2/write?org=o&bucket=telegraf&precision=s",
			"cpu,host=b idle=2i,user=0.5 " + second, "", 204, ""},
		{"version 3", "POST", "/api/v3/write_lp?db=telegraf&precision=second",
			"cpu,host=c idle=t " + second, "", 204, ""},
		{"gzip", "POST", "/write?db=telegraf&precision=s", zipped("cpu,host=d idle=4 " + second), "gzip",
			204, ""},
		{"no database", "POST", "/write?precision=s", "m f=1 " + second, "", 204, ""},
		{"texts", "POST", "/write?db=telegraf", `system,host=a uptime_format="1 day"`, "", 204, ""},
		{"partly", "POST", "/write?db=telegraf&precision=s",
			"# comment\nm f=1 " + second + "\n\nm f=x\nm g=2 " + second, "", 400,
			`{"error":"partial write: line 4: unable to parse 'm f=x': invalid field value dropped=1"}`},
		{"partly, version 2", "POST", "/api/v2/write?bucket=telegraf", "m", "", 400,
			`{"code":"invalid","message":"partial write: line 1: unable to parse 'm': missing fields`},
		{"ahead", "POST", "/write?db=telegraf&precision=s", "m f=1 " + later, "", 400,
			"1 of 1 points were not stored"},
		{"unknown", "POST", "/write?db=missing", "m f=1", "", 404, `{"error":"unknown bucket 'missing'`},
		{"unknown, version 2", "POST", "/api/v2/write?bucket=missing", "m f=1", "", 404,
			`{"code":"not found"`},
		{"precision", "POST", "/write?db=telegraf&precision=day", "m f=1", "", 400, "known are ns"},
		{"large", "POST", "/write?db=telegraf", strings.Repeat("#", 5000), "", 413, "http.max_write"},
		{"large unpacked", "POST", "/write?db=telegraf", zipped(strings.Repeat("#", 5000)), "gzip", 413,
			"http.max_write"},
		{"no gzip", "POST", "/write?db=telegraf", "m f=1", "gzip", 400, "not gzip"},
		{"zstd", "POST", "/write?db=telegraf", "m f=1", "zstd", 415, "Content-Encoding zstd"},
		{"ping", "GET", "/ping", "", "", 204, ""},
		{"health", "GET", "/influx/health", "", "", 200, `"status":"pass"`},
		{"create", "POST", "/query?q=CREATE+DATABASE+%22x%22", "", "", 200, `{"statement_id":0}`},
		{"databases", "GET", "/query?q=show+databases", "", "", 200,
			`"columns":["name"],"name":"databases","values":[["influx"],["telegraf"]]`},
		{"select", "GET", "/query?q=SELECT+1", "", "", 400, `{"error":"InfluxQL is not answered`},
	}
}

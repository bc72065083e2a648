package test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dalmatiner/client"
)

// TestOpenTSDBAnswers: what a client does next follows from the status.
func TestOpenTSDBAnswers(t *testing.T) {
	n := startNode(t, t.TempDir(), "--set", "self_monitor=off", "--set", "http.max_write=4KB",
		"--set", "opentsdb.addr=127.0.0.1:0")
	second := past(0)
	object := func(value string) string {
		return fmt.Sprintf(`{"metric":"sys.cpu","timestamp":%d,"value":%s,"tags":{"host":"a%s"}}`,
			second, value, value)
	}
	ahead := fmt.Sprintf(`{"metric":"sys.cpu","timestamp":%d,"value":1,"tags":{"host":"z"}}`,
		second+7200)
	for _, c := range []senderRequest{
		{"one", "POST", "/api/put", object("1"), nil, 204, ""},
		{"a list", "POST", "/opentsdb/api/put?sync", "[" + object("2") + "," + object("3") + "]", nil,
			204, ""},
		{"gzip", "POST", "/api/put", zipped(object("4")), coded("gzip"), 204, ""},
		{"summary", "POST", "/api/put?summary", object("5"), nil, 200, `{"success":1,"failed":0}`},
		{"details", "POST", "/api/put?details", object("6"), nil, 200,
			`{"success":1,"failed":0,"errors":[]}`},
		{"partly", "POST", "/api/put", "[" + object("7") + "," + object("true") + "]", nil, 400,
			`{"error":{"code":400,"message":"One or more data points had errors","details":"point 2: `},
		{"partly, details", "POST", "/api/put?details", `[` + object("8") + `,{"metric":""}]`, nil, 400,
			`{"success":1,"failed":1,"errors":[{"datapoint":{"metric":""},"error":"metric name was empty"}]}`},
		{"partly, summary", "POST", "/api/put?summary", `[{"metric":""}]`, nil, 400,
			`{"success":0,"failed":1}`},
		{"ahead", "POST", "/api/put?details", ahead, nil, 400,
			`"failed":1,"errors":[{"datapoint":null,"error":"1 of 1 points were not stored, 1: future`},
		{"cut", "POST", "/api/put", "[" + object("9") + ",", nil, 400,
			"1 points ahead of it are stored"},
		{"nothing", "POST", "/api/put", "[]", nil, 400, "No datapoints found in content"},
		{"large", "POST", "/api/put", strings.Repeat(" ", 5000), nil, 413, "http.max_write"},
		{"a query", "GET", "/opentsdb/api/query", "", nil, 404, "queries of OpenTSDB are not answered"},
		{"version", "GET", "/opentsdb/api/version", "", nil, 200, `{"version":"2.4.0-dalmatiner"}`},
	} {
		c.check(t, n)
	}
	c := n.to("tcp", n.listener("opentsdb lines"))
	put(t, c, fmt.Appendf(nil, "put sys.cpu %d 10 host=a10\nputt\nexit\n", second))
	answer, err := io.ReadAll(c)
	if err != nil || string(answer) != "unknown command: putt.  Try `help'.\n" {
		t.Errorf("%q, %v", answer, err)
	}
	c = n.to("tcp", n.listener("opentsdb lines"))
	put(t, c, []byte("POST /api/put HTTP/1.1\r\nHost: a\r\n\r\n"))
	answer, err = io.ReadAll(c)
	if err != nil || !strings.Contains(string(answer), "answered at http.addr, POST /api/put") {
		t.Errorf("%q, %v", answer, err)
	}
	if row := n.account("opentsdb"); row.Accepted != 10 || row.Refused["future"] != 1 ||
		row.Received != 11 {
		t.Errorf("%+v", row)
	}
	for i := 1; i <= 10; i++ {
		words := get(t, n.dial(), "opentsdb", key(t, "sys", "cpu", fmt.Sprint("host=a", i)), second, 1)
		if words[0] != client.Int(int64(i)) {
			t.Errorf("host a%d has %x", i, words)
		}
	}
	if got := n.refusals("opentsdb_unknown_command"); got != 1 {
		t.Errorf("%d commands are counted as unknown", got)
	}
}

// putOnce sends a request of points once. taken is false where the client tries it again.
func putOnce(addr, body string) (taken bool, err error) {
	answer, err := http.Post("http://"+addr+"/api/put", "application/json",
		bytes.NewReader([]byte(body)))
	if err != nil {
		return false, nil // the node is down
	}
	text, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	switch answer.StatusCode / 100 {
	case 2:
		return true, nil
	case 5:
		return false, nil
	}
	return false, fmt.Errorf("%s: %s", answer.Status, text)
}

// TestOpenTSDBSurvivesKill: what a client of OpenTSDB was answered for is there once, however often
// the node is killed and the request is sent again.
func TestOpenTSDBSurvivesKill(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--set", "wal.sync=always", "--set", "self_monitor=off"}
	n := startNode(t, dir, args...)
	var addr atomic.Pointer[string]
	addr.Store(&n.http)
	var acked atomic.Int64
	over, ended := make(chan struct{}), make(chan error, 1)
	const series = 50
	base := past(time.Hour)
	go func() {
		for request := int64(0); ; request++ {
			var list []string
			for i := range series {
				list = append(list, fmt.Sprintf(`{"metric":"load","timestamp":%d,"value":%d,"tags":{"h":"%d"}}`,
					(base+request)*1000+int64(i), request*series+int64(i), i))
			}
			body := "[" + strings.Join(list, ",") + "]"
			for taken := false; !taken; {
				var err error
				if taken, err = putOnce(*addr.Load(), body); err != nil {
					ended <- err
					return
				}
			}
			acked.Add(1)
			select {
			case <-over:
				ended <- nil
				return
			default:
			}
		}
	}()
	for kill := range int64(3) {
		want := acked.Load() + 3 + 4*kill
		eventually(t, "requests are answered", func() bool { return acked.Load() >= want })
		n.kill()
		n = startNode(t, dir, args...)
		addr.Store(&n.http)
	}
	close(over)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	requests := acked.Load()
	for i := range series {
		words := get(t, n.dial(), "opentsdb", key(t, "load", "h="+strconv.Itoa(i)), base, int(requests))
		for request, w := range words {
			if want := client.Int(int64(request)*series + int64(i)); w != want {
				t.Fatalf("series %d, request %d: %x, want %x", i, request, w, want)
			}
		}
	}
	if row := n.account("opentsdb"); row.Accepted != uint64(requests*series) ||
		row.Received != row.Accepted+row.Duplicate {
		t.Errorf("%d requests: %+v", requests, row)
	}
}

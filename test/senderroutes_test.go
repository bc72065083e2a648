package test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/testkit/protomsg"
)

// TestRemoteWriteAnswers: what a client does next follows from the status.
func TestRemoteWriteAnswers(t *testing.T) {
	n := startNode(t, t.TempDir(), "--set", "self_monitor=off", "--set", "http.max_write=4KB",
		"--set", "bucket.auto_create=off")
	label := protomsg.Message(nil).Text(1, "__name__").Text(2, "m")
	message := func(ms int64) string {
		sample := protomsg.Message(nil).Float(1, 1).Varint(2, uint64(ms))
		return string(protomsg.Message(nil).
			Bytes(1, protomsg.Message(nil).Bytes(1, label).Bytes(2, sample)))
	}
	good := message(past(0) * 1000)
	snappy := func(s string) string { return string(s2.EncodeSnappy(nil, []byte(s))) }
	const v1, v2 = "application/x-protobuf", "application/x-protobuf;proto=io.prometheus.write.v2.Request"
	there, missing := "/prometheus/there/api/v1/write", "/api/v1/write"
	b := admin.Bucket{Name: "there", Resolution: 1000, PPF: 604800, HPTS: true}
	if _, err := n.admin().CreateBucket(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	sent := func(content, coding, from string) http.Header {
		h := http.Header{}
		for name, value := range map[string]string{"Content-Type": content,
			"Content-Encoding": coding, "Origin": from} {
			if value != "" {
				h.Set(name, value)
			}
		}
		return h
	}
	for _, c := range []senderRequest{
		{"good", "POST", there, snappy(good), sent(v1, "snappy", ""), 204,
			""},
		{"again", "POST", there, snappy(good), sent("", "snappy", ""), 204,
			""},
		{"nothing", "POST", there, snappy(""), sent(v2, "snappy", ""), 204,
			""},
		{"ahead", "POST", there, snappy(message(past(0)*1000 + 3_600_000)), sent(v1, "snappy", ""), 400,
			"1 of 1 points were not stored, 1: future"},
		{"no bucket", "POST", missing, snappy(good), sent(v1, "snappy", ""), 404,
			"unknown bucket 'prometheus'"},
		{"a bad name", "POST", "/prometheus/a%5Cx/api/v1/write", snappy(good),
			sent(v1, "snappy", ""), 404,
			"bucket"},
		{"cut off", "POST", there, snappy(good[:9]), sent(v1, "snappy", ""), 400,
			"cut off"},
		{"not packed", "POST", there, good, sent(v1, "", ""), 415,
			"compressed with snappy"},
		{"zstd", "POST", there, good, sent(v1, "zstd", ""), 415,
			"compressed with snappy"},
		{"no snappy", "POST", there, "\x05\xff\xff", sent(v1, "snappy", ""), 400,
			"snappy"},
		{"JSON", "POST", there, snappy("{}"), sent("application/json", "snappy", ""), 415,
			"application/x-protobuf"},
		{"another message", "POST", there, snappy(good), sent(v1+";proto=x.Y", "snappy", ""), 415,
			"proto="},
		{"a large body", "POST", there, strings.Repeat("\xff", 5000), sent(v1, "snappy", ""), 413,
			"http.max_write"},
		{"large unpacked", "POST", there, snappy(strings.Repeat("x", 5000)), sent(v1, "snappy", ""), 413,
			"5000 bytes unpacked"},
		{"a page", "POST", there, snappy(good), sent(v1, "snappy", "http://evil.example"), 403,
			"pages of other origins"},
	} {
		c.check(t, n)
	}
	if got := n.refusals("remote_write_unknown_bucket"); got != 2 {
		t.Errorf("%d requests are counted for want of a bucket", got)
	}
	if row := n.account("there"); row.Accepted != 1 || row.Duplicate != 1 ||
		row.Refused["future"] != 1 || row.Received != 3 {
		t.Errorf("%+v", row)
	}
}

// senderRequest is a request of a sender, and what is answered.
type senderRequest struct {
	what, method, path, body string
	header                   http.Header
	status                   int
	says                     string
}

// check sends a request and compares the answer.
func (c *senderRequest) check(t *testing.T, n *node) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+n.http+c.path,
		strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	if c.header != nil {
		r.Header = c.header
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

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
	for _, c := range []struct {
		what, path, body      string
		content, coding, from string
		status                int
		says                  string
	}{
		{"good", there, snappy(good), v1, "snappy", "", 204, ""},
		{"again", there, snappy(good), "", "snappy", "", 204, ""},
		{"nothing", there, snappy(""), v2, "snappy", "", 204, ""},
		{"ahead", there, snappy(message(past(0)*1000 + 3_600_000)), v1, "snappy", "", 400,
			"1 of 1 points were not stored, 1: future"},
		{"no bucket", missing, snappy(good), v1, "snappy", "", 404, "unknown bucket 'prometheus'"},
		{"a bad name", "/prometheus/a%5Cx/api/v1/write", snappy(good), v1, "snappy", "", 404, "bucket"},
		{"cut off", there, snappy(good[:9]), v1, "snappy", "", 400, "cut off"},
		{"not packed", there, good, v1, "", "", 415, "compressed with snappy"},
		{"zstd", there, good, v1, "zstd", "", 415, "compressed with snappy"},
		{"no snappy", there, "\x05\xff\xff", v1, "snappy", "", 400, "snappy"},
		{"JSON", there, snappy("{}"), "application/json", "snappy", "", 415, "application/x-protobuf"},
		{"another message", there, snappy(good), v1 + ";proto=x.Y", "snappy", "", 415, "proto="},
		{"a large body", there, strings.Repeat("\xff", 5000), v1, "snappy", "", 413, "http.max_write"},
		{"large unpacked", there, snappy(strings.Repeat("x", 5000)), v1, "snappy", "", 413,
			"5000 bytes unpacked"},
		{"a page", there, snappy(good), v1, "snappy", "http://evil.example", 403,
			"pages of other origins"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+n.http+c.path,
			strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": c.content,
			"Content-Encoding": c.coding, "Origin": c.from} {
			if value != "" {
				r.Header.Set(name, value)
			}
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
	if row := n.account("there"); row.Accepted != 1 || row.Duplicate != 1 ||
		row.Refused["future"] != 1 || row.Received != 3 {
		t.Errorf("%+v", row)
	}
}

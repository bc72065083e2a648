package test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/wire"
)

// refusal is one bad request: the bytes of a frame and what is behind it, what
// the ERROR must say, and the reason under which it is counted.
type refusal struct {
	bytes  []byte
	says   []string
	reason string
}

// onStream returns the opening of an acknowledged stream into bucket there and
// raw bytes behind it.
func onStream(t *testing.T, raw ...byte) []byte {
	t.Helper()
	return append(frame(
		payload(t, wire.Request{Op: wire.OpAckStream, Delay: 1, Bucket: []byte("there")})), raw...)
}

// badRequests are what a node with bucket.auto_create off, frames of at most
// 64 KiB and the bucket there refuses.
func badRequests(t *testing.T) map[string]refusal {
	hex := func(text string) []byte { return frame(unhex(t, text)) }
	bucket := func(op wire.Op) []byte {
		return frame(payload(t, wire.Request{Op: op, Delay: 1, Bucket: []byte("nope")}))
	}
	create := []string{"unknown bucket 'nope'",
		"ddb admin buckets create 'nope' 1s 1w false --addr 127.0.0.1:"}
	entry := wire.AppendEntry(nil, key(t, "x"), 1000, make([]uint64, 200_000)...)
	return map[string]refusal{
		"metrics of an unknown bucket":        {bucket(wire.OpList), create[:1], "unknown_bucket"},
		"properties of an unknown bucket":     {bucket(wire.OpInfo), create[:1], "unknown_bucket"},
		"deleting an unknown bucket":          {bucket(wire.OpDelete), create[:1], "unknown_bucket"},
		"a stream into an unknown bucket":     {bucket(wire.OpStream), create, "unknown_bucket"},
		"an acked stream into an unknown one": {bucket(wire.OpAckStream), create, "unknown_bucket"},
		"an unknown opcode":                   {hex("63"), []string{"opcode", "99"}, "unknown_opcode"},
		"an entry outside a stream": {hex("05 00000000 00"), []string{"opcode", "5"},
			"unknown_opcode"},
		"an empty frame": {hex(""), []string{"0 bytes", "no opcode"}, "malformed"},
		"a frame that ends inside a field": {hex("07 04 66"), []string{"opcode 7", "3 bytes"},
			"malformed"},
		"an empty bucket name": {hex("07 00"), []string{"opcode 7", "no bucket"}, "malformed"},
		"bytes behind a request": {hex("03 00"), []string{"opcode 3", "1 bytes too many"},
			"malformed"},
		"options out of range": {
			hex("02 05 7468657265 0002 0178 00000000000003e8 0000000a 04 00 00"),
			[]string{"flags 4", "0 to 3"}, "malformed"},
		"more replicas than there are": {
			hex("02 05 7468657265 0002 0178 00000000000003e8 0000000a 00 00 03"), []string{"r is 3", "one"},
			"malformed"},
		"a slot beyond all time": {
			hex("02 05 7468657265 0002 0178 ffffffffffffffff 0000000a"), []string{"18446744073709551615"},
			"malformed"},
		"a frame beyond the limit": {binary.BigEndian.AppendUint32(nil, 1<<20),
			[]string{"1048576", "limit is 65536", "split"}, "too_large"},
		"a message of a stream beyond it": {onStream(t, entry[:100]...),
			[]string{"1600017", "limit is 1048576", "fewer points"}, "too_large"},
		"an unknown opcode in a stream": {onStream(t, 99), []string{"99", "byte 0 of the stream"},
			"unknown_opcode"},
		"writing events": {
			hex("0d 04 6669666f 14 4c14d1120d7b16000000000008836d000000026869"),
			[]string{"unknown bucket 'fifo'", "bucket.auto_create"}, "unknown_bucket"},
		"reading events": {hex("0e 04 6669666f 0000000000000001 0000000000000002"),
			[]string{"unknown bucket 'fifo'"}, "unknown_bucket"},
		"reading filtered events": {
			hex("11 04 6669666f 0000000000000001 0000000000000002 00"),
			[]string{"bad filter", "ends inside a length"}, "malformed"},
		"a UDP put": {hex("00 04 6669666f"), []string{"UDP", "open a stream"}, "unsupported"},
		"a stream with timestamps": {hex("12 01 05 05 7468657265"),
			[]string{"hpts", "'there'"}, "unsupported"},
		"an acked stream with timestamps": {hex("20 02 05 05 7468657265"),
			[]string{"hpts", "'there'"}, "unsupported"},
		"a bucket with an unknown flag": {
			hex("08 01 62 00000000000003e8 0000000000093a80 0000000000000000 02"), []string{"hpts flag 2"},
			"malformed"},
		"a later acknowledged stream": {hex("20 03 01 05 7468657265"),
			[]string{"version 3", "speaks 1 and 2"}, "unsupported"},
		"a bucket without resolution": {
			hex("08 01 62 0000000000000000 0000000000093a80 0000000000000000"),
			[]string{"resolution of 0 ms", "1 to"}, "invalid_bucket"},
		"a bucket without room": {
			hex("08 01 62 00000000000003e8 0000000000000000 0000000000000000"),
			[]string{"0 points per file", "1 to"}, "invalid_bucket"},
		"a bucket that exists": {
			hex("08 05 7468657265 00000000000003e8 0000000000093a80 0000000000000000"),
			[]string{"'there'", "exists"}, "bucket_exists"},
		"a lifetime beyond what can be counted": {hex("0c 05 7468657265 ffffffffffffffff"),
			[]string{"TTL", "0 (none) to"}, "invalid_bucket"},
	}
}

// TestBadRequests: each is answered with an ERROR that names the thing, the
// limit and the remedy, and counted; nothing is stored; others go on.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir(), "--set", "bucket.auto_create=off", "--set", "tcp.max_frame=64KB")
	if _, err := n.dial().AddBucket(context.Background(), "there", 1000, 1000, 0); err != nil {
		t.Fatal(err)
	}
	other := openAcked(t, n, "there")
	slot := past(time.Hour)
	counted := map[string]uint64{}
	for name, r := range badRequests(t) {
		s := n.socket()
		s.send(r.bytes)
		text := s.refusal()
		for _, part := range r.says {
			if !strings.Contains(text, part) {
				t.Errorf("%s: the answer %q does not say %q", name, text, part)
			}
		}
		counted[r.reason]++
		other.point(key(t, "good"), slot, value(1, slot))
		if ack := other.flush(); ack.Received != 1 || ack.Refused != 0 {
			t.Fatalf("%s: another connection got %+v", name, ack)
		}
		slot++
	}
	a, err := n.admin().Account(context.Background(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for reason, want := range counted {
		if a.Requests[reason] != want {
			t.Errorf("%d requests are counted as %s, sent were %d", a.Requests[reason], reason, want)
		}
		if text := scrape(t, n); !strings.Contains(text,
			fmt.Sprintf("dalmatiner_requests_refused_total{reason=%q} %d\n", reason, want)) {
			t.Errorf("/metrics does not count %d of %s", want, reason)
		}
	}
	nothingButGood(t, n, len(badRequests(t)))
}

// nothingButGood checks that bucket there holds the points of the good
// connection alone, and that no bucket has appeared.
func nothingButGood(t *testing.T, n *node, points int) {
	t.Helper()
	if row := n.account("there"); row.Received != uint64(points) || row.Accepted != uint64(points) {
		t.Errorf("the account says %+v, %d good points were sent", row, points)
	}
	c := n.dial()
	names, err := c.List(context.Background(), "there")
	if err != nil || len(names) != 1 {
		t.Errorf("the bucket holds %q: %v", names, err)
	}
	buckets, err := c.Buckets(context.Background())
	slices.Sort(buckets)
	if err != nil || !slices.Equal(buckets, []string{"dalmatinerdb", "there"}) {
		t.Errorf("buckets are %q: %v", buckets, err)
	}
}

// TestClassicStreamIsClosed: a classic stream has no replies, so that trouble
// ends the connection; it is counted.
func TestClassicStreamIsClosed(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir())
	s := n.socket()
	slot := past(time.Minute)
	stream := frame(payload(t, wire.Request{Op: wire.OpStream, Delay: 1, Bucket: []byte("classic")}))
	stream = wire.AppendEntry(stream, key(t, "a"), uint64(slot), point.FromInt(1))
	s.send(append(stream, 99))
	s.closed()
	if words := get(t, n.dial(), "classic", key(t, "a"), slot, 1); words[0] != point.FromInt(1) {
		t.Errorf("the point before the bad byte is %x", words)
	}
	if got := n.figure(`requests_refused_total{reason="unknown_opcode"}`); got != 1 {
		t.Errorf("%v refusals are counted", got)
	}
}

// TestBadPoints: points that are refused alone. The rest of their message is
// stored.
func TestBadPoints(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir())
	s := openAcked(t, n, "points")
	now := past(0)
	refused := map[string]uint64{}
	metric := key(t, "a")
	s.point(metric, now-3, 3<<56|1)
	refused["bad_type"]++
	s.point(metric, now+3600, point.FromInt(1))
	s.point(metric, now+3600, point.FromInt(1), point.FromInt(2))
	s.point(metric, 1<<60, point.FromInt(1))
	s.point(metric, -1, point.FromInt(1))
	refused["future"] += 5
	if err := s.Write(wire.AppendEntry(nil, nil, uint64(now), point.FromInt(1))); err != nil {
		t.Fatal(err)
	}
	refused["empty_name"]++
	s.point(metric, now-1000, point.FromInt(1), 3<<56, point.FromInt(3))
	refused["bad_type"]++
	var sum uint64
	for _, count := range refused {
		sum += count
	}
	if ack := s.flush(); ack.Received != sum+2 || ack.Refused != sum {
		t.Errorf("answered with %+v, bad points were %d of %d", ack, sum, sum+2)
	}
	row := n.account("points")
	if fmt.Sprint(row.Refused) != fmt.Sprint(refused) || stored(row) != 2 {
		t.Errorf("the account says %+v, refused are %v", row, refused)
	}
	got := get(t, n.dial(), "points", metric, now-1000, 5000)
	for i, word := range got {
		if want := map[int]uint64{0: point.FromInt(1), 2: point.FromInt(3)}[i]; word != want {
			t.Errorf("slot %d is %016x, want %016x", i, word, want)
		}
	}
}

// TestFullDisk: with less free space than storage.min_free points are refused
// as disk_full; what is stored is served.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startNode(t, dir)
	metric, slot := key(t, "a"), past(time.Hour)
	send(t, n, "disk", metric, slot, point.FromInt(1))
	n.stop()
	n = startNode(t, dir, "--set", "storage.min_free=1000000GB")
	s := openAcked(t, n, "disk")
	s.point(metric, slot, point.FromInt(2), point.FromInt(3))
	if ack := s.flush(); ack.Received != 2 || ack.Refused != 2 {
		t.Errorf("answered with %+v", ack)
	}
	if words := get(t, n.dial(), "disk", metric, slot, 2); words[0] != point.FromInt(1) ||
		words[1] != 0 {
		t.Errorf("read %x", words)
	}
	if row := n.account("disk"); row.Refused["disk_full"] != 2 || stored(row) != 1 {
		t.Errorf("the account says %+v", row)
	}
	if n.figure("disk_full") != 1 || !strings.Contains(n.log.String(), "storage.min_free") {
		t.Errorf("neither figure nor log name the cause:\n%s", n.log)
	}
	n.stop()
	n = startNode(t, dir)
	send(t, n, "disk", metric, slot+1, point.FromInt(3))
	if row := n.account("disk"); row.Refused["disk_full"] != 2 || stored(row) != 2 {
		t.Errorf("after a restart the account says %+v", row)
	}
}

// TestBadQueries: each is answered with the status, the place and the reason.
func TestBadQueries(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir())
	send(t, n, "there", key(t, "a"), past(time.Minute), point.FromInt(1))
	long := strings.Repeat("x", 256)
	for text, c := range map[string]struct {
		status int
		says   []string
	}{
		"SELECT max(a BUCKET there, 1m LAST 1h": {400, []string{"line 1, column 31", `"LAST"`}},
		"SELECT a BUCKET\n there LAST": {
			400, []string{"line 2, column 12", "span of time such as 5m"}},
		"SELECT a BUCKET\n there LAST 1h 'x": {
			400, []string{"line 2, column 16", "not closed"}},
		"SELECT nosuch(a BUCKET there, 1m) LAST 1h": {
			400, []string{"line 1, column 8", "nosuch(metric, time)"}},
		"SELECT a BUCKET nope LAST 1h": {404, []string{"line 1, column 17", "'nope'"}},
		"SELECT zz.* BUCKET there LAST 1h": {
			404, []string{"line 1, column 8", "no metric 'zz'.*", "none begins with 'zz'"}},
		"SELECT '" + long + "' BUCKET there LAST 1h": {
			400, []string{"line 1, column 8", "256 bytes", "limit is 255"}},
		"SELECT a BUCKET '" + long +
			"' LAST 1h": {400, []string{"line 1, column 17", "256 bytes", "limit is 255"}},
		"SELECT a BUCKET there LAST 100000w": {
			400, []string{"points to read", "limit is 500000000", "shorter range"}},
		"SELECT 'a" + strings.Repeat("(", 100) + "LAST":  {400, []string{"line 1"}},
		strings.Repeat("(", 5000):                        {400, []string{"line 1"}},
		"SELECT " + strings.Repeat("(", 9000) + "LAST 1": {400, []string{"line 1"}},
	} {
		status, body := httpGet(t, n, "/?q="+url.QueryEscape(text))
		if status != c.status {
			t.Errorf("%.60s: status %d: %s", text, status, body)
		}
		for _, part := range c.says {
			if !strings.Contains(body, part) {
				t.Errorf("%.60s: %q does not say %q", text, body, part)
			}
		}
	}
	for path, says := range map[string]string{
		"/buckets/nope": "unknown bucket 'nope'", "/nowhere": "/nowhere",
		"/buckets/there/" + long: "256 bytes, the limit is 255", "/buckets/there/a%5C": "backslash",
	} {
		if status, body := httpGet(t, n, path); status/100 != 4 || !strings.Contains(body, says) {
			t.Errorf("%.60s: status %d: %s", path, status, body)
		}
	}
	if got := n.figure(`requests_refused_total{reason="query_syntax"}`); got < 7 {
		t.Errorf("%v queries are counted as query_syntax", got)
	}
	query(t, n, "SELECT a BUCKET there LAST 1h")
}

// httpGet returns status and body of a request.
func httpGet(t *testing.T, n *node, path string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + n.http + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// scrape returns the text of /metrics.
func scrape(t *testing.T, n *node) string {
	t.Helper()
	status, text := httpGet(t, n, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	return text
}

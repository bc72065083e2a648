package test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/point"
)

// step is one command line and what it must answer: a regular expression for
// the whole output of either kind.
type step struct {
	args []string
	code int
	out  string
}

// perform runs the steps in their order; the node's address is in the
// environment.
func perform(t *testing.T, n *node, program string, steps []step) {
	t.Helper()
	t.Setenv("DDB_ADDR", n.http)
	for _, s := range steps {
		r := run(t, program, s.args...)
		text := r.out
		if s.code != 0 {
			text = r.errOut
		}
		if r.code != s.code || !regexp.MustCompile(`\A`+s.out+`\z`).MatchString(text) {
			t.Errorf("%s %q ends with %d\n%s%swant %d\n%s", program, s.args, r.code, r.out, r.errOut, s.code, s.out)
		}
	}
}

const bucketsHead = ` +Bucket \| Resolution      \| File Size       \| Grace           \| TTL\n`

// TestAdminCommands: the same commands under both names.
func TestAdminCommands(t *testing.T) {
	for program, prefix := range map[string][]string{"ddb": {"admin"}, "ddb-admin": nil} {
		t.Run(program, func(t *testing.T) {
			n := startNode(t, t.TempDir(), "--set", "self_monitor=off")
			line := func(text string) []string { return append(prefix[:len(prefix):len(prefix)], strings.Fields(text)...) }
			perform(t, n, program, []step{
				{line("buckets list"), 0, bucketsHead},
				{line("buckets create metrics 1s 1w false"), 0, `Created metrics with a resolution of 1s and 1w worth of points per file\.\n`},
				{line("buckets create kept 10s 1d false 52w 5s"), 0, `Created kept with a resolution of 10s and 1d worth of points per file\.\n`},
				{line("buckets create metrics 1s 1w false"), 1, `\S+: the bucket exists: 'metrics'; only its TTL can be changed, .+\n`},
				{line("buckets create bad 1x 1w false"), 1, `\S+: resolution 1x: .+\n`},
				{line("buckets list"), 0, bucketsHead +
					` +kept \| 10s             \| 1d              \| 5s              \| 52w\n` +
					` +metrics \| 1s              \| 1w              \| 0ns             \| infinity\n`},
				{line("buckets ttl kept"), 0, `TTL of kept: 52w \(3144960 points\)\n`},
				{line("buckets ttl kept 1h"), 0, `TTL of kept: 1h \(360 points\)\n`},
				{line("buckets ttl kept infinity"), 0, `TTL of kept: infinity\n`},
				{line("buckets ttl nope 1h"), 1, `\S+: bucket nope does not exist: ddb admin buckets list --addr 127.0.0.1:\d+ shows all\n`},
				{line("buckets delete kept"), 2, `\S+: nothing was deleted: .*\n`},
				{line("buckets list"), 0, bucketsHead + ` +kept \| .*\n +metrics \| .*\n`},
				{line("buckets delete kept --yes"), 0, `Deleted kept\.\n`},
				{line("buckets delete kept --yes"), 1, `\S+: unknown bucket 'kept': ddb admin buckets list --addr 127.0.0.1:\d+ shows all\n`},
				{line("buckets list"), 0, bucketsHead + ` +metrics \| .*\n`},
			})
			send(t, n, "metrics", key(t, "a"), past(time.Minute), point.FromInt(1), point.FromInt(2))
			perform(t, n, program, []step{
				{line("flush"), 0, `Flushed 2 points of 1 series into flush/[0-9a-f]{16}\.seg: \d+ bytes in \S+ ms\.\n`},
				{line("flush"), 0, `Nothing to flush\.\n`},
				{line("account"), 0, `Bucket +Received .*\nmetrics +2 +2 +0 +0 +0 +0 +0\nreceived = .*: holds in every line\n` +
					`lost later: none\nrecovered of these: none\nrefused requests: query_unknown_bucket 1\n`},
				{line("account --bucket metrics --minutes 2"), 0, `Bucket metrics\nMinute \(UTC\) .*\n(\d{4}-\d\d-\d\d \d\d:\d\d +[12] .*\n)+(.*\n)+`},
				{line("account --bucket nope"), 1, `\S+: unknown bucket 'nope': ddb admin buckets list --addr 127.0.0.1:\d+ shows all\n`},
				{line("stats"), 0, `(?s)bucket_series\{bucket="metrics"\} 1\n.*\nsegment_points 2\n.*`},
			})
		})
	}
}

// TestQueryCommand: a table for people, the node's JSON for programs.
func TestQueryCommand(t *testing.T) {
	n := startNode(t, t.TempDir())
	slot := past(10*time.Minute) / 60 * 60
	send(t, n, "metrics", key(t, "cpu", "user"), slot, point.FromInt(1), point.FromFloat(2.5), point.FromInt(4))
	text := fmt.Sprintf("SELECT cpu.user BUCKET metrics, max(cpu.user BUCKET metrics, 2s) AS 'top' AFTER %d FOR 4s", slot*1000)
	at := func(i int64) string { return time.Unix(slot+i, 0).UTC().Format("2006-01-02 15:04:05") }
	perform(t, n, "ddb", []step{
		{[]string{"query", text}, 0, `   Series +Resolution  Points  Coverage\n` +
			`1  'cpu'.'user' BUCKET 'metrics' +1s +4 +0.750\n2  'top' +2s +2 +0.750\n\n` +
			`Time \(UTC\) +1\n` + at(0) + ` +1\n` + at(1) + ` +2.5\n` + at(2) + ` +4\n` + at(3) + ` +4\n\n` +
			`Time \(UTC\) +2\n` + at(0) + ` +2.5\n` + at(2) + ` +4\n\n` +
			`2 series, 6 points, coverage 0.750, query \S+ ms, round trip \S+ ms\n`},
		{[]string{"query", "--json", text}, 0, fmt.Sprintf(`\{"start":%d,"query_time":\d+,"results":\[`, slot*1000) +
			`\{"type":"metrics","name":"'cpu'.'user' BUCKET 'metrics'","resolution":1000,"values":\[1,2.5,4,4\],"coverage":0.75,"bucket_resolution":1000,"interval":1000,"bucket":"metrics","metric":\["cpu","user"\],"stars":\[\],"metadata":\{\}\},` +
			`\{"type":"metrics","name":"'top'","resolution":2000,"values":\[2.5,4\],"coverage":0.75,"bucket_resolution":1000,"interval":1000,"bucket":"metrics","metric":\["cpu","user"\],"stars":\[\],"metadata":\{\}\}\]\}\n?`},
		{[]string{"query", "SELECT nonsense"}, 1, `ddb: line 1, column 16: expected .*\nSELECT nonsense\n {15}\^\n`},
		{[]string{"query"}, 2, `(?s)ddb: .*\nsee ddb --help\n`},
	})
}

// TestCommandLine: versions, wrong settings, and a node that is not there.
func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		program string
		args    []string
		code    int
		says    string
	}{
		{"ddb", []string{"--version"}, 0, `ddb \S+\n`},
		{"ddb-admin", []string{"--version"}, 0, `ddb-admin \S+\n`},
		{"ddb", []string{"serve", "--set", "wal.snyc=always"}, 2, `ddb: .*wal\.snyc.*unknown key; did you mean wal\.sync\?\n(.*\n)*`},
		{"ddb", []string{"serve", "--set", "wal.sync=sometimes"}, 2, `ddb: .*wal\.sync = sometimes.*always.*interval.*off.*\n(.*\n)*`},
		{"ddb", []string{"serve", "--config", "absent.conf"}, 2, `ddb: .*absent\.conf.*\n(.*\n)*`},
		{"ddb", []string{"admin", "account", "--addr", "127.0.0.1:1"}, 1, `ddb: no node answers at 127\.0\.0\.1:1: start one with ddb serve.*\n`},
		{"haggar", []string{"-agents", "0"}, 2, `haggar: agents is 0.*\n`},
		{"haggar", []string{"-jitter", "1m", "-spawn-interval", "1s"}, 2, `haggar: jitter is 1m0s.*\n`},
	} {
		r := run(t, c.program, c.args...)
		if r.code != c.code || !regexp.MustCompile(`\A`+c.says+`\z`).MatchString(r.out+r.errOut) {
			t.Errorf("%s %q ends with %d: %s%s", c.program, c.args, r.code, r.out, r.errOut)
		}
	}
}

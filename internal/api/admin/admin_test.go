package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"dalmatiner/internal/testkit/golden"
)

// tree is the command tree of the tests: that of ddb-admin, and query.
type tree struct {
	Commands `embed:""`

	Query   QueryCommand     `cmd:""`
	Version kong.VersionFlag `help:"Print the version."`
}

// answers are what the fake node says to "METHOD path".
type answers map[string]string

// run executes commands against a fake node and returns a transcript: command,
// requests with their bodies, output, complaints, exit code.
func run(t *testing.T, node answers, commands ...[]string) string {
	t.Helper()
	var log bytes.Buffer
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(&log, "> %s %s %s\n", r.Method, r.URL, body)
		if r.Method == http.MethodPost && r.Header.Get(Header) == "" {
			t.Errorf("%s %s without %s", r.Method, r.URL, Header)
		}
		answer, ok := node[r.Method+" "+r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintln(w, "unknown bucket 'x'")
			return
		}
		io.WriteString(w, answer)
	}))
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	for _, args := range commands {
		fmt.Fprintf(&log, "$ %s\n", strings.ToValidUTF8(strings.Join(args, " "), "(byte)"))
		var out, errOut bytes.Buffer
		code := Execute(context.Background(), "ddb-admin", "Test.", "v1", &tree{},
			append(args, "--addr", addr), &out, &errOut)
		log.Write(out.Bytes())
		log.Write(errOut.Bytes())
		fmt.Fprintf(&log, "exit %d\n\n", code)
	}
	return strings.ReplaceAll(log.String(), addr, "ADDR")
}

func TestBucketCommands(t *testing.T) {
	buckets, err := json.Marshal([]Bucket{
		{Name: "tachyon", Resolution: 1000, PPF: 604800, TTL: 0},
		{Name: `odd \'\xff name`, Resolution: 500, PPF: 120, Grace: int64(5 * time.Second), TTL: 7200},
		{Name: "b", Resolution: 60_000, PPF: 10, TTL: 1 << 60},
	})
	if err != nil {
		t.Fatal(err)
	}
	node := answers{
		"GET /buckets":               string(buckets),
		"GET /buckets/shop":          `["'web'.'us'","'temp'","'web'.'eu'"]`,
		"GET /buckets/empty":         `[]`,
		"POST /admin/buckets/create": `{"name":"new","resolution":1000,"ppf":604800,"ttl":"infinity"}`,
		"POST /admin/buckets/delete": `{"name":"b"}`,
		"GET /admin/segments":        `[{"file":"flush/1.seg","points":10},{"file":"flush/2.seg","points":5}]`,
		"POST /admin/buckets/ttl":    `{"name":"b","ttl":60}`,
		"POST /admin/series/delete":  `{"series":3,"dry_run":false,"segments":2,"bytes":2048}`,
	}
	golden.Same(t, "testdata/buckets.golden", run(t, node,
		[]string{"buckets", "list"},
		[]string{"buckets", "create", "new", "1s", "1w", "false"},
		[]string{"buckets", "create", "new", "1s", "1w", "disabled", "52w"},
		[]string{"buckets", "create", "new", "10s", "1h30m", "true", "100", "5s"},
		[]string{"buckets", "create", "it's \xff", "1s", "1w", "false", "infinity"},
		[]string{"buckets", "create", `it's \xff`, "1s", "1w", "false", "infinity"},
		[]string{"buckets", "create", "new", "1s", "1w", "false", "--json"},
		[]string{"buckets", "ttl", "b", "60", "--json"},
		[]string{"buckets", "delete", "b", "--yes", "--json"},
		[]string{"buckets", "delete", "b", "--json"},
		[]string{"buckets", "create", "new", "1s", "1500ms", "false"},
		[]string{"buckets", "create", "new", "1us", "1s", "false"},
		[]string{"buckets", "create", "new", "60", "1w", "false"},
		[]string{"buckets", "create", "new", "1s", "1w", "perhaps"},
		[]string{"buckets", "create", "new", "1s", "1w", "false", "never"},
		[]string{"buckets", "create", "new", "1s", "1w", "false", "0"},
		[]string{"buckets", "create", "new", "1s", "1w", "false", "inf", "soon"},
		[]string{"buckets", "create", "new", "1s"},
		[]string{"buckets", "delete", "b"},
		[]string{"buckets", "delete", "b", "--yes"},
		[]string{"buckets", "delete", "--help"},
		[]string{"series", "delete", "b", "web.eu.requests", "--yes"},
		[]string{"series", "delete", "b", "web", "--prefix", "web.eu"},
		[]string{"series", "delete", "--help"},
		[]string{"metrics", "list", "shop"},
		[]string{"metrics", "list", "shop", "--contains", "e", "--limit", "1"},
		[]string{"metrics", "list", "shop", "--limit", "2", "--json"},
		[]string{"metrics", "list", "empty"},
		[]string{"metrics", "list", "empty", "--contains", "x"},
		[]string{"metrics", "list", "shop", "--limit", "0"},
		[]string{"metrics", "list", "--help"},
		[]string{"buckets", "ttl", "tachyon"},
		[]string{"buckets", "ttl", `odd '\xff name`},
		[]string{"buckets", "ttl", "b", "90s"},
		[]string{"buckets", "ttl", "b", "infinity"},
		[]string{"buckets", "ttl", "b", "-5"},
		[]string{"buckets", "ttl", "nowhere", "1h"},
		[]string{"nonsense"},
	))
	golden.Same(t, "testdata/missing.golden", run(t, answers{},
		[]string{"buckets", "delete", "x"},
		[]string{"flush"},
	))
}

func TestNodeCommands(t *testing.T) {
	node := answers{
		"POST /admin/flush":  `{"segment":"000007.seg","bytes":123456,"points":1000000,"series":2000,"took_us":15250}`,
		"GET /admin/account": `{"rows":[{"bucket":"","received":7,"accepted":7},{"bucket":"b","received":47,"accepted":30,"duplicate":1,"conflicting":2,"late":3,"unset":4,"refused":{"expired":2,"future":5}}],"lost_total":{"damaged":6},"recovered_total":{"damaged":2},"refused_requests":{},"events":{"rows":[]}}`,
		"GET /admin/stats":   `[{"name":"series","value":9},{"name":"x","value":0.25},{"name":"disk","value":1e18}]`,
	}
	golden.Same(t, "testdata/node.golden", run(t, node,
		[]string{"flush"},
		[]string{"account"},
		[]string{"account", "--minutes", "5"},
		[]string{"stats"},
	))
	node["POST /admin/flush"] = `{"segment":""}`
	node["GET /admin/account"] =
		`{"rows":[{"bucket":"b","minute":27000000,"received":30,"accepted":30},{"bucket":"b","minute":27000001,"received":9,"accepted":8}],"lost_total":{},"recovered_total":{},"refused_requests":{"query_syntax":2}}`
	golden.Same(t, "testdata/node2.golden", run(t, node,
		[]string{"flush"},
		[]string{"account", "--bucket", "b", "--minutes", "5"},
	))
	node["GET /admin/account"] =
		`{"rows":[{"bucket":"b","received":9,"accepted":9},{"bucket":"e","received":0}],"lost_total":{},"recovered_total":{},"refused_requests":{},` +
			`"events":{"rows":[{"bucket":"b","received":3,"accepted":3},{"bucket":"e","received":7,"accepted":5,"duplicate":1,"refused":{"future":1}}],"lost_total":{"event_file_missing":2},"recovered_total":{}},"tags_lost":3}`
	golden.Same(t, "testdata/node3.golden",
		run(t, node, []string{"account"}, []string{"account", "--json"}))
	node["GET /admin/account"] =
		`{"rows":[],"lost_total":{},"recovered_total":{},"refused_requests":{},"events":{"rows":[{"bucket":"e","minute":27000000,"received":7,"accepted":6}]}}`
	golden.Same(t, "testdata/node4.golden",
		run(t, node, []string{"account", "--bucket", "e", "--minutes", "5"}))
}

func TestQueryCommand(t *testing.T) {
	const reply = `{"start":1800000000000,"query_time":420,"results":[
{"type":"metrics","name":"max('a' BUCKET 'b')","resolution":60000,"values":[1,2.5,null],"coverage":0.98,"metadata":{}},
{"type":"metrics","name":"'x'","resolution":60000,"values":[100,1e300],"coverage":1,"metadata":{}},
{"type":"metrics","name":"'none'","resolution":1000,"values":[],"coverage":0,"bucket_resolution":1000,"interval":null,"bucket":"b","metric":["a","none"],"stars":["none"],"metadata":{}},
{"type":"metrics","name":"'fast'","resolution":100,"values":[-0.000001],"coverage":1,"bucket_resolution":1000,"interval":10000,"bucket":"b","metric":["a","fast"],"stars":["fast"],"metadata":{}}],
"missing":[{"selector":"'b' BUCKET 'b'","offset":7,"message":"there is no metric 'b' in bucket 'b', which is empty","near":[]}],
"unmatched":[{"selector":"'a'.* BUCKET 'b'","offset":7,"series":["'a'.'x'","'a'.'y'"],"more":3},
{"selector":"'c'.* BUCKET 'b'","offset":24,"series":["'c'.'z'"],"more":0}]}`
	node := answers{"POST /": reply}
	golden.Same(t, "testdata/queryjson.golden", run(t, node, []string{"query", "--json", "SELECT x"}))
	var r Result
	if err := json.Unmarshal([]byte(reply), &r); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteResult(&b, &r, 1500*time.Microsecond); err != nil {
		t.Fatal(err)
	}
	golden.Same(t, "testdata/query.golden", b.String())
	if got := run(t, node, []string{"query", "SELECT x"}); !strings.Contains(got,
		"4 series, 6 points, coverage 0.745, query 0.42 ms, round trip ") {
		t.Errorf("got %s", got)
	}
	plan := `{"start":1,"query_time":420,"results":[],"plan":{},"plan_text":"rounds 1\n1 read x\n"}`
	if got := run(t, answers{"POST /": plan},
		[]string{"query", "EXPLAIN SELECT x"}); !strings.Contains(got,
		"rounds 1\n1 read x\n\nquery 0.42 ms, round trip ") {
		t.Errorf("got %s", got)
	}
	events :=
		`{"start":1,"query_time":420,"results":[{"type":"events","name":"EVENTS FROM 'b'","metadata":{},"values":[` +
			`{"timestamp":1800000000000000001,"event":{"name":"deploy","n":9007199254740993}},{"timestamp":1800000001500000000,"event":"x"}]}]}`
	if got := run(t, answers{"POST /": events},
		[]string{"query", "SELECT EVENTS FROM b"}); !strings.Contains(got, "EVENTS FROM 'b'\n"+
		"Time (UTC)                     Event\n2027-01-15 08:00:00.000000001  "+
		"{\"name\":\"deploy\",\"n\":9007199254740993}\n"+
		"2027-01-15 08:00:01.500000000  \"x\"\n\n2 events, query 0.42 ms, round trip ") {
		t.Errorf("got %s", got)
	}
	if got := run(t, answers{"POST /": `[1]`}, []string{"query", "SELECT x"}); !strings.Contains(got,
		"not what a node sends") || !strings.Contains(got, "exit 1") {
		t.Errorf("got %s", got)
	}
}

// Spans of the calendar stand at their own times, in the zone asked for, beside series with the
// same.
func TestTimesOfTheCalendar(t *testing.T) {
	const reply = `{"start":1774652400000,"query_time":420,"results":[
{"type":"metrics","name":"'days'","resolution":86400000,"times":[1774652400000,1774738800000,1774821600000],"values":[24,23,24],"coverage":1,"points":71},
{"type":"metrics","name":"'too'","resolution":86400000,"times":[1774652400000,1774738800000,1774821600000],"values":[1,null,2],"coverage":1,"points":71,
"bucket_resolution":3600000,"unknown":{"slots":1,"ranges":[[1774818000000,1774821600000]],"why":["x"]}},
{"type":"metrics","name":"'day'","resolution":86400000,"values":[24,24,23],"coverage":1,"points":71}]}`
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "Time (UTC)            1  2\n2026-03-27 23:00:00  24  1\n2026-03-28 23:00:00  23  " +
			"?\n2026-03-29 22:00:00  24  2\n\n" +
			"Time (UTC)            3\n2026-03-27 23:00:00  24\n2026-03-28 23:00:00  24\n2026-03-29 " +
			"23:00:00  23\n"},
		{[]string{"--tz", "Europe/Zagreb"},
			"Time (Europe/Zagreb)         1  2\n2026-03-28 00:00:00 +01:00  24  1\n2026-03-29 00:00:00 " +
				"+01:00  23  ?\n" +
				"2026-03-30 00:00:00 +02:00  24  2\n"},
		{[]string{"--tz", "Europe/Zagrab"}, "did you mean Europe/Zagreb"},
	} {
		args := append(append([]string{"query"}, c.args...), "SELECT x")
		if got := run(t, answers{"POST /": reply}, args); !strings.Contains(got, c.want) {
			t.Errorf("%v:\n%s\nwant\n%s", args, got, c.want)
		}
	}
}

// TestUnknownLines: below the legend stands what damage took, of the first series.
func TestUnknownLines(t *testing.T) {
	one := 1.0
	r := Result{Damaged: "shown", Results: make([]Series, 12)}
	for i := range r.Results {
		r.Results[i] = Series{Name: "'s'", Resolution: 1000, Values: []*float64{&one}}
		if i > 0 {
			r.Results[i].Unknown = &Unknown{Slots: 6, Ranges: [][2]int64{{0, 1000}, {5000, 9500}},
				Why: []string{"x", "y"}}
		}
	}
	r.Results[2].Unknown.More = 4
	var b strings.Builder
	if err := WriteResult(&b, &r, 0); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{
		"\nunknown: series 2, 6 slots from 1970-01-01 00:00:00 to 1970-01-01 00:00:09.5 in 2 ranges, " +
			"with older values (x; y)\n",
		"\nunknown: series 3, 6 slots from 1970-01-01 00:00:00 to 1970-01-01 00:00:09.5 in 6 ranges, 4 " +
			"of them behind that, with older values (x; y)\n",
		"\nunknown: also in 3 more series\nunknown: where there is a ?, older values are shown, which " +
			"may be out of date\n\nTime",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "unknown: "); n != maxUnknownLines+2 {
		t.Errorf("%d lines in\n%s", n, text)
	}
}

// TestUnknownValues: values of slots that damage took have a mark, also where the range
// begins within a slot, and where a value stands for many.
func TestUnknownValues(t *testing.T) {
	one := 1.0
	lost := &Unknown{Slots: 3, Ranges: [][2]int64{{2000, 4000}, {6000, 7000}}, Why: []string{"x"}}
	for _, c := range []struct {
		start, resolution int64
		want              string
	}{{0, 1000, "1 1 ? 1? 1 1 1? 1"}, {999, 1000, "1 1 ? 1? 1 1 1? 1"},
		{1000, 1000, "1 1? ? 1 1 1? 1 1"}, {0, 4000, "1? 1? - 1 1 1 1 1"}} {
		s := Series{Resolution: c.resolution, BucketResolution: 1000,
			Values: slices.Repeat([]*float64{&one}, 8), Unknown: lost}
		s.Values[2] = nil
		r := &Result{Start: c.start, Results: []Series{s}}
		var got []string
		for row := range s.Values {
			got = append(got, cell(r, 0, row))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("from %d every %d ms: %s, want %s", c.start, c.resolution, text, c.want)
		}
	}
}

func TestManySeriesSplitIntoTables(t *testing.T) {
	one := 1.0
	r := Result{Results: make([]Series, columnsPerTable+1)}
	for i := range r.Results {
		r.Results[i] = Series{Name: "'s'", Resolution: 1000, Values: []*float64{&one}}
	}
	if got := groups(r.Results); len(got) != 2 || len(got[0]) != columnsPerTable {
		t.Errorf("got %v", got)
	}
}

func TestHelp(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	var log strings.Builder
	for _, args := range [][]string{{"--help"}, {"buckets", "create", "--help"}, {"account", "--help"},
		{"check", "--help"}, {"snapshot", "--help"}, {"segments", "list", "--help"}, {"query", "--help"},
		{"--version"}} {
		var out, errOut bytes.Buffer
		code := Execute(context.Background(), "ddb-admin", "Test.", "v1", &tree{}, args, &out, &errOut)
		fmt.Fprintf(&log, "$ ddb-admin %s\n%s%sexit %d\n\n", strings.Join(args, " "), out.String(),
			errOut.String(), code)
	}
	golden.Same(t, "testdata/help.golden", log.String())
}

func TestNobodyAnswers(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	addr := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	_, err := (&Client{Addr: addr}).Buckets(context.Background())
	if err == nil || !strings.Contains(err.Error(), "ddb serve") {
		t.Errorf("got %v", err)
	}
}

func TestTTLReadsBack(t *testing.T) {
	for text, want := range map[string]TTL{`"infinity"`: 0, `"inf"`: 0, "5": 5} {
		var got TTL
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"0", "-1", "1.5", `"5"`, "[]"} {
		var got TTL
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is taken as %d", text, got)
		}
	}
}

// What went wrong is followed by what to do.
func TestRemedies(t *testing.T) {
	node := answers{"POST /admin/series/delete": `{"series":0,"dry_run":false,"segments":2,"bytes":2048}`}
	if text := run(t, node, []string{"series", "delete", "b", "--prefix", "web.nope",
		"--yes"}); !strings.Contains(text,
		"No series of b begins with the prefix: nothing was deleted.\nexit 0") {
		t.Errorf("a prefix of nothing: %s", text)
	}
	node = answers{"POST /admin/series/delete": `{"series":0,"dry_run":true,"segments":2,"bytes":2048}`}
	if text := run(t, node,
		[]string{"series", "delete", "b", "--prefix", "web.nope"}); !strings.Contains(text,
		"No series of b begins with the prefix: nothing was deleted.\nexit 0") {
		t.Errorf("a prefix of nothing, without --yes: %s", text)
	}
	node = answers{"GET /admin/segments": "[]"}
	if text := run(t, node, []string{"buckets", "delete", "day"}); !strings.Contains(text,
		"Bucket day would be deleted. No segment holds points of it: what it has is in memory.\n") ||
		!strings.Contains(text, "exit 2") {
		t.Errorf("a bucket without segments: %s", text)
	}
	node = answers{"POST /admin/flush": `{}`,
		"POST /admin/merge": `{"windows":0,"overlays":0,"removed":0}`}
	if text := run(t, node, []string{"flush", "--merge"}); !strings.Contains(text,
		"Nothing to flush.\nNothing is left to merge: the node does it by itself, and flushes wait "+
			"until their windows have closed, see ddb admin flush --help.\nexit 0") {
		t.Errorf("a merge of nothing: %s", text)
	}
	for _, c := range []struct {
		status int
		body   string
		args   []string
		want   string
	}{
		{404, `{"error":"query_unknown_bucket","message":"unknown bucket 'x'"}`,
			[]string{"account", "--bucket", "x"},
			"unknown bucket 'x': ddb admin buckets list --addr ADDR shows all\n"},
		{409, `{"error":"conflict","message":"the bucket exists: 'x'"}`,
			[]string{"buckets", "create", "x", "1s", "1w", "false"},
			"the bucket exists: 'x'; only its TTL can be changed, ddb admin buckets ttl --addr ADDR: " +
				"delete it first or choose another name\n"},
		{404, `{"error":"not_found","message":"unknown snapshot dialy; did you mean daily?"}`,
			[]string{"snapshot", "delete", "dialy"},
			"unknown snapshot dialy; did you mean daily?: ddb admin snapshot list --addr ADDR shows all\n"},
		{409, `{"error":"conflict","message":"too many: delete the bucket, or flush and merge first"}`,
			[]string{"series", "delete", "b", "x", "--yes"},
			"too many: delete the bucket, or flush and merge first: ddb admin flush --merge --addr ADDR " +
				"does both\n"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		}))
		var out, errOut bytes.Buffer
		code := Execute(context.Background(), "ddb-admin", "Test.", "v1", &tree{},
			append(c.args, "--addr", strings.TrimPrefix(server.URL, "http://")), &out, &errOut)
		server.Close()
		if code != 1 || strings.ReplaceAll(errOut.String(), strings.TrimPrefix(server.URL, "http://"),
			"ADDR") != "ddb-admin: "+c.want {
			t.Errorf("%q ends with %d: %s", c.args, code, errOut.String())
		}
	}
	unreachable := &Client{Addr: "nowhere:80", HTTP: &http.Client{Transport: noHost{}}}
	if _, err := unreachable.Stats(context.Background()); err == nil ||
		err.Error() != `there is no host "nowhere": name the HTTP address of a running node, HOST:PORT, with --addr` {
		t.Errorf("a host that there is not: %v", err)
	}
}

// noHost is a network without names.
type noHost struct{}

func (noHost) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, &net.DNSError{Err: "no such host", Name: r.URL.Hostname(), IsNotFound: true}
}

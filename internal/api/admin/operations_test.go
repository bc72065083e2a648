package admin

import (
	"encoding/json"
	"strings"
	"testing"

	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/inventory"
	"dalmatiner/internal/testkit/golden"
)

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func operationAnswers(t *testing.T) answers {
	t.Helper()
	report := fsck.Report{Dir: "/var/lib/ddb", Online: true, Files: 12, Bytes: 3 << 20, Blocks: 400,
		Chunks: 3000,
		Points: 2_000_000, Series: 1500, Again: 1, Deletions: 2, Remembered: 5, Records: 77,
		TookUS: 1_234_000, Damaged: 3,
		Damages: []fsck.Damage{
			{File: "flush/0000000000000001.seg", Offset: 8192, Length: 8100, Part: "data",
				Expected: "CRC-32C 00000001", Found: "00000002"},
			{File: "catalogue/000004.sst", Part: "table", Detail: "pebble: two\nlines"},
		},
		Expected: []fsck.Damage{
			{File: "wal/0000000000000001.wal", Offset: 64, Length: 10, Part: "torn end", Detail: "cut off"}},
	}
	return answers{
		"GET /admin/status": mustJSON(t, Status{Version: "v1", Node: "ddb@a", Ready: true, UptimeS: 93784,
			DataDir: "/var/lib/ddb",
			TCPAddr: "127.0.0.1:5555", HTTPAddr: "127.0.0.1:8080", Buckets: 2, Series: 1500,
			PointsIn: 200000, PointsOut: 12.5,
			RSSBytes: 250 << 20, HeapBytes: 40 << 20, HeadBytes: 100 << 20, Segments: 7,
			SegmentBytes: 10 << 30, SegmentPoints: 8 << 30,
			WALSync: "interval", WALBytes: 65 << 20, WALUnsynced: 1000, Flushes: 9, SinceFlushS: 61,
			FreeDisk: 2 << 40}),
		"GET /admin/segments": mustJSON(t, []inventory.Segment{
			{File: "flush/0000000000000001.seg", Bytes: 1_000_000, Points: 1_000_000, Series: 2000,
				Chunks: 4000, ChunkBytes: 950_000,
				From: 1_800_000_000_000, To: 1_800_001_440_000, FirstSlot: 1_800_000_000,
				PastSlot: 1_800_001_440},
			{File: "window/0000000000000002.seg", Bytes: 10, Damage: "torn"},
		}),
		"GET /admin/caches":            `[{"name":"segment-indexes","holds":"leaves","bytes":123456,"entries":7}]`,
		"GET /admin/snapshots":         `[{"name":"daily","dir":"/d/snapshots/daily","created":"2026-11-20T10:00:00Z","files":9,"bytes":1000}]`,
		"POST /admin/snapshots/create": `{"name":"daily","dir":"/d/snapshots/daily","created":"2026-11-20T10:00:00Z","files":9,"bytes":1000,"linked":900,"took_us":2500}`,
		"POST /admin/snapshots/delete": `{"name":"daily"}`,
		"POST /admin/check": `{"progress":{"file":"MANIFEST"}}` + "\n" +
			mustJSON(t, CheckMessage{Report: &report}) + "\n",
	}
}

func TestOperations(t *testing.T) {
	node := operationAnswers(t)
	golden.Same(t, "testdata/operations.golden", run(t, node,
		[]string{"status"},
		[]string{"segments", "list"},
		[]string{"segments", "list", "--bucket", "it's"},
		[]string{"cache", "stats"},
		[]string{"snapshot", "daily"},
		[]string{"snapshot", "list"},
		[]string{"snapshot", "delete", "daily"},
		[]string{"check"},
		[]string{"check", "--rate", "1MB"},
		[]string{"check", "--rate", "much"},
		[]string{"check", "--data-dir", "testdata"},
		[]string{"check", "--data-dir", "nowhere"},
	))
	node["GET /admin/status"] = mustJSON(t, Status{Damage: 4, DiskFull: true})
	node["GET /admin/snapshots"] = "[]"
	node["GET /admin/segments"] = "[]"
	node["POST /admin/check"] = mustJSON(t, CheckMessage{Report: &fsck.Report{Dir: "/d"}})
	golden.Same(t, "testdata/operations2.golden", run(t, node,
		[]string{"status"},
		[]string{"segments", "list"},
		[]string{"snapshot", "list"},
		[]string{"check"},
	))
	for answer, want := range map[string]string{
		`{"progress":{}}`:                "ended the answer before",
		`{"error":"the disk went away"}`: "the disk went away", "[": "not what a node sends",
	} {
		node["POST /admin/check"] = answer
		if got := run(t, node, []string{"check"}); !strings.Contains(got, want) ||
			!strings.Contains(got, "exit 2") {
			t.Errorf("%s gives %s", answer, got)
		}
	}
}

// Every command that prints what it learned prints it as JSON, too.
func TestJSONEverywhere(t *testing.T) {
	node := operationAnswers(t)
	node["GET /buckets"] = `[{"name":"b","resolution":1000,"ppf":5,"ttl":"infinity"}]`
	node["POST /admin/flush"] = `{"segment":""}`
	node["GET /admin/account"] =
		`{"rows":[],"lost_total":{},"recovered_total":{},"refused_requests":{}}`
	node["GET /admin/stats"] = `[{"name":"x","value":1}]`
	for _, args := range [][]string{
		{"status"}, {"buckets", "list"}, {"flush"}, {"account"}, {"stats"}, {"segments", "list"},
		{"cache", "stats"},
		{"check"}, {"snapshot", "daily"}, {"snapshot", "list"},
	} {
		got := run(t, node, append(args, "--json"))
		start := strings.IndexAny(got, "{[")
		for _, line := range strings.SplitAfter(got, "\n") {
			if strings.HasPrefix(line, "{") || strings.HasPrefix(line, "[") {
				start = strings.Index(got, line)
				break
			}
		}
		dec := json.NewDecoder(strings.NewReader(got[max(start, 0):]))
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Errorf("%v: %v in\n%s", args, err, got)
		}
	}
}

package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dalmatiner/bench/measure"
)

var testHead = Head{
	Machine: measure.Machine{CPU: "a processor", Memory: "1 kB", Commit: "1234567-dirty",
		Source: "89abcde", Load: "Load average 0.1"}, Begun: time.Unix(0, 0)}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		f    Figure
		want string
	}{
		{Figure{Value: 5}, ""},
		{Figure{Value: 5, Budget: 5}, "ok"},
		{Figure{Value: 5.1, Budget: 5}, "MISS"},
		{Figure{Value: 5, Least: 5}, "ok"},
		{Figure{Value: 4.9, Least: 5}, "MISS"},
		{Figure{Failed: true, Budget: 5}, "FAILED"},
	} {
		if got := c.f.Verdict(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.f, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	tab := Table{Head: testHead}
	tab.Add(Figure{Area: "ingest", What: "ddb", Value: 33.333, Samples: []float64{30, 33.333, 40},
		Unit: "ns/point", Budget: 34, Note: "a|b"})
	tab.Add(Figure{Area: "rate", What: "ddb", Value: 1234.5, Unit: "points/s", Least: 2000})
	var out strings.Builder
	tab.Render(&out)
	want := `# Benchmark of 1970-01-01 00:00 UTC

` + testHead.Machine.String() + `
1 of 2 figures miss their budget. Processor time is the server's alone; a range is the least and the most of the runs a median is of.

| part   | figure | measured                  | budget |      | how |
| ---    | ---    | ---                       | ---    | ---  | --- |
| ingest | ddb    | 33.3 ns/point (30.0–40.0) | ≤ 34.0 | ok   | a\|b |
| rate   | ddb    | 1234 points/s             | ≥ 2000 | MISS |  |
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// The lines are what benchstat reads: a name without blanks and without what it
// takes for GOMAXPROCS, pairs of a value and a unit, a line for each sample.
func TestBenchmarkFormat(t *testing.T) {
	tab := Table{Head: testHead}
	tab.Add(Median("ingest, batch stream, 10 k series", "ddb above discard", "ns/point",
		[]float64{33.5, 30, 40}))
	tab.Add(Figure{Area: "restart after kill -9", What: "written ÷ received, all", Value: 2,
		Unit: "×"})
	tab.Add(Figure{Area: "rate", What: "ddb", Value: 1.5, Unit: "M points/s"})
	tab.Add(Figure{Area: "Q", What: "memory", Value: 2, Unit: "MiB"})
	tab.Add(Figure{Area: "allocations", What: "decode a batch", Value: 3, Unit: "a run"})
	tab.Add(Figure{Area: "allocations", What: "server", Value: 3, Unit: "1000 points"})
	tab.Add(Figure{Area: "late", What: "failed", Failed: true})
	var out strings.Builder
	writeBenchmarks(&out, &tab.Head, tab.Benchmarks())
	_, lines, _ := strings.Cut(out.String(), "cpu: a processor\n")
	want := `Unit 1000points better=lower
Unit B better=lower
Unit allocations/run better=lower
Unit ns/point better=lower
Unit points/s better=higher
Unit ratio better=lower
BenchmarkIngest_batch_stream_10_k_series/ddb_above_discard 1 33.5 ns/point
BenchmarkIngest_batch_stream_10_k_series/ddb_above_discard 1 30 ns/point
BenchmarkIngest_batch_stream_10_k_series/ddb_above_discard 1 40 ns/point
BenchmarkRestart_after_kill_9/written_per_received_all 1 2 ratio
BenchmarkRate/ddb 1 1500000 points/s
BenchmarkQ/memory 1 2097152 B
BenchmarkAllocations/decode_a_batch 1 3 allocations/run
BenchmarkAllocations/server 1 3 1000points
`
	if lines != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	// What differs between any two runs would make benchstat set them apart.
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "1234567") && !strings.HasPrefix(line, "#") {
			t.Errorf("the commit is in the configuration: %s", line)
		}
	}
}

// A run writes files of its own, whatever is there.
func TestSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	for i, want := range []string{"1970-01-01-1234567-dirty-steps.txt",
		"1970-01-01-1234567-dirty-steps-2.txt", "1970-01-01-1234567-dirty-steps-3.txt"} {
		path, err := Save(dir, &testHead, "steps", []byte{byte('a' + i)},
			[]Benchmark{{"X", []Value{{float64(i), "sec"}}}})
		if err != nil || filepath.Base(path) != want {
			t.Errorf("got %s, %v, want %s", path, err, want)
		}
		page, err := os.ReadFile(strings.TrimSuffix(path, ".txt") + ".md")
		if err != nil || string(page) != string(rune('a'+i)) {
			t.Errorf("the page is %q, %v", page, err)
		}
		lines, err := os.ReadFile(path)
		if err != nil || !strings.HasSuffix(string(lines), fmt.Sprintf("BenchmarkX 1 %d sec\n", i)) {
			t.Errorf("the lines are %q, %v", lines, err)
		}
	}
	if path, err := Save(dir, &testHead, "", nil, nil); err != nil ||
		filepath.Base(path) != "1970-01-01-1234567-dirty.txt" {
		t.Errorf("got %s, %v", path, err)
	}
}

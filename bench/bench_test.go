package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/admin"
	"dalmatiner/internal/haggar"
)

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		f    figure
		want string
	}{
		{figure{value: 5}, ""},
		{figure{value: 5, budget: 5}, "ok"},
		{figure{value: 5.1, budget: 5}, "MISS"},
		{figure{failed: true, budget: 5}, "FAILED"},
	} {
		if got := c.f.verdict(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.f, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	tab := table{machine: "a machine\n", begun: time.Unix(0, 0)}
	tab.add(figure{area: "ingest", what: "ddb", value: 33.333, spread: [2]float64{30, 40}, unit: "ns/point", budget: 34, note: "a|b"})
	tab.add(figure{area: "rate", what: "ddb", value: 1234.5, unit: "points/s", budget: 1})
	var out strings.Builder
	tab.render(&out)
	want := `# Benchmark of 1970-01-01 00:00 UTC

a machine

1 of 2 figures miss their budget. Processor time is the server's alone; a range is the least and the most of the runs a median is of.

| part   | figure | measured                  | budget |      | how |
| ---    | ---    | ---                       | ---    | ---  | --- |
| ingest | ddb    | 33.3 ns/point (30.0–40.0) | ≤ 34.0 | ok   | a\|b |
| rate   | ddb    | 1234 points/s             | ≤ 1.00 | MISS |  |
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestCollecting(t *testing.T) {
	log := []string{
		"time=x level=INFO msg=ready",
		"gc 1 @0.012s 2%: 0.026+0.39+0.10 ms clock, 0.5+1/2/3+0.25 ms cpu, 4->4->0 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P",
		"gc 2 @0.5s 0%: 0.1+0.2+0.1 ms clock, 0.25+0/1/0+2 ms cpu, 4->4->1 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)",
	}
	if got, want := collecting(log), 10*time.Millisecond; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBenchFigure(t *testing.T) {
	out := "goos: linux\nBenchmarkStreamBatch-2     	   10000	     27007 ns/op	7035.66 MB/s	         5.401 ns/point	       0 B/op\nPASS\n"
	if v, ok := benchFigure(out, "ns/point"); !ok || v != 5.401 {
		t.Errorf("got %v %v, want 5.401", v, ok)
	}
	if _, ok := benchFigure(out, "ns/slot"); ok {
		t.Error("a unit that is not there is found")
	}
	if _, ok := benchFigure("PASS\n", "ns/op"); ok {
		t.Error("a benchmark that did not run has a figure")
	}
}

func TestRowsAreChosenByName(t *testing.T) {
	chosen, err := choose("^ingest-1")
	if err != nil || len(chosen) != 2 {
		t.Errorf("got %v, %v, want two rows", chosen, err)
	}
	if _, err := choose("nothing of that name"); err == nil || !strings.Contains(err.Error(), "ingest-200k") {
		t.Errorf("got %v, want the names there are", err)
	}
}

// A load into the discard server ends without errors, as it does with a store.
func TestDiscard(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- discard(ln) }()
	c := uniform(2, 100, 50)
	c.Addr = ln.Addr().String()
	sum, err := haggar.Run(context.Background(), c)
	if err != nil || sum.Errors != 0 || sum.Points != 2*100*50 {
		t.Errorf("got %+v, %v, want 10000 points", sum, err)
	}
	if err := ln.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A query to the server that has its answer ready is answered with it.
func TestAnswer(t *testing.T) {
	s := httptest.NewServer(answer([]byte(`{"t":0}`)))
	defer s.Close()
	client := admin.Client{Addr: strings.TrimPrefix(s.URL, "http://"), HTTP: s.Client()}
	var body bytes.Buffer
	if err := client.CopyQuery(t.Context(), &body, "SELECT 'a' BUCKET b LAST 1s"); err != nil || body.String() != `{"t":0}` {
		t.Errorf("got %q, %v", &body, err)
	}
}

func TestEntropy(t *testing.T) {
	if got := entropy(map[int64]int{1: 5, 2: 5, 3: 5, 4: 5}); got != 2 {
		t.Errorf("four equal values have %v bits, want 2", got)
	}
	if got := entropy(map[int64]int{7: 9}); got != 0 {
		t.Errorf("a constant has %v bits, want 0", got)
	}
	// log2 1000 and the 2.4 bits of the published mix.
	if got := entropyOfUniform(); math.Abs(got-math.Log2(1000)) > 0.01 {
		t.Errorf("uniform values have %v bits, want %v", got, math.Log2(1000))
	}
	if got := entropyOfMix(); math.Abs(got-2.41) > 0.03 {
		t.Errorf("the mix has %v bits, want 2.41", got)
	}
}

func TestDiskUsage(t *testing.T) {
	dir := t.TempDir()
	for path, size := range map[string]int{
		"flush/1.seg": 90, "window/1.seg": 10, "overlay/1.seg": 10, "catalogue/2.sst": 7, "wal/3.wal": 1000, "MANIFEST": 3, "VERSION": 1,
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := diskUsage(dir)
	if want := (usage{segments: 110, catalogue: 7, rest: 4, log: 1000}); err != nil || got != want || got.kept() != 121 {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// Answers are compared with what haggar sends.
func TestAnswersAreChecked(t *testing.T) {
	c := uniform(dayAgents, 20, 10)
	s := span{1000, 1004, 2}
	q := dayQuery{want: [][]float64{s.max(&c, 1, 7)}}
	values := func(slot int64) int64 { it := c.Series(1, 7); return it.At(slot) }
	first, second := max(values(1000), values(1001)), max(values(1002), values(1003))
	right := fmt.Sprintf(`{"results":[{"values":[%d,%d],"coverage":1}]}`, first, second)
	if err := q.check([]byte(right)); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{
		fmt.Sprintf(`{"results":[{"values":[%d,%d],"coverage":1}]}`, first, second+1),
		fmt.Sprintf(`{"results":[{"values":[%d,%d],"coverage":0.5}]}`, first, second),
		fmt.Sprintf(`{"results":[{"values":[%d,null],"coverage":1}]}`, first),
		fmt.Sprintf(`{"results":[{"values":[%d],"coverage":1}]}`, first),
		`{"results":[]}`,
		`{`,
	} {
		if err := q.check([]byte(wrong)); err == nil {
			t.Errorf("%s is taken for right", wrong)
		}
	}
	mean := s.mean(&c, 1)
	sum := 0.0
	for i := range c.Metrics {
		it := c.Series(1, i)
		sum += float64(it.At(1002) + it.At(1003))
	}
	if want := sum / 40; math.Abs(mean[1]-want) > 1e-9 {
		t.Errorf("mean %v, want %v", mean[1], want)
	}
}

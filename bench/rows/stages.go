package rows

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"dalmatiner/bench/report"
)

// stage is one step of a point's way, measured by a Go benchmark beside the
// code.
type stage struct {
	what, pkg, bench string
	unit             string  // of the benchmark's report.Figure to take
	per              float64 // points in that unit
	note             string
}

var stages = []stage{
	{"decode a batch stream", "kernel", "^BenchmarkMatch$/^batch$/^name=28$/^kernel$", "ns/point", 1,
		"names of 28 bytes, compared with those expected"},
	{"decode entries", "kernel", "^BenchmarkMatch$/^entries$/^name=28$/^kernel$", "ns/point", 1,
		"the same"},
	{"decode a batch stream, any names", "wire", "^BenchmarkStreamBatch$", "ns/point", 1,
		"point by point"},
	{"decode entries, any names", "wire", "^BenchmarkStreamEntries$", "ns/point", 1, "the same"},
	{"append to the head", "head", "^BenchmarkApplyRow$", "ns/op", 1, "full rows of 256 columns"},
	{"append to the log", "wal", "^BenchmarkAppend$/^memory$/^goroutines=8$", "ns/op", 256,
		"record of 2 KiB, 8 bytes a point: an upper bound, small integers take fewer; without the disk"},
	{"seal (transpose, encode 60 rows)", "head", "^BenchmarkSeal$", "ns/op", 1, "uniform values"},
	{"encode a chunk, uniform", "chunk", "^BenchmarkEncode$/^random$/^720$", "ns/slot", 1,
		"720 slots"},
	{"encode a chunk, counter", "chunk", "^BenchmarkEncode$/^counter$/^720$", "ns/slot", 1,
		"720 slots"},
	{"decode a chunk, uniform", "chunk", "^BenchmarkDecode$/^random$/^720$", "ns/slot", 1,
		"720 slots"},
	{"decode a chunk, counter", "chunk", "^BenchmarkDecode$/^counter$/^720$", "ns/slot", 1,
		"720 slots"},
	{"flush (write a segment)", "segment", "^BenchmarkAdd$/^900B$/^random$", "ns/chunk", 720,
		"chunks of 900 B in random order, index included, without the disk"},
	{"all of it but the socket", "ingest/ddbtcp", "^BenchmarkIngest$/^series=200000$", "ns/op", 1,
		"by the clock; sealing runs on the other core"},
}

// stages runs the benchmarks one after the other.
func (b *bench) stages(ctx context.Context) error {
	for _, s := range stages {
		out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", s.bench, "-benchtime",
			"300ms", "./internal/"+s.pkg).CombinedOutput()
		if err != nil {
			return fmt.Errorf("benchmark %s of %s: %w: %s", s.bench, s.pkg, err, out)
		}
		v, ok := benchFigure(string(out), s.unit)
		if !ok {
			return fmt.Errorf("benchmark %s of %s printed no %s: %s", s.bench, s.pkg, s.unit, out)
		}
		b.table.Add(report.Figure{
			Area:  "stage",
			What:  s.what,
			Value: v / s.per,
			Unit:  "ns/point",
			Note:  s.note,
		})
	}
	return nil
}

var benchLine = regexp.MustCompile(`(?m)^Benchmark\S+\s+\d+\s+(.*)$`)

// benchFigure returns the report.Figure with a unit of the first benchmark in the
// output of go test.
func benchFigure(out, unit string) (float64, bool) {
	m := benchLine.FindStringSubmatch(out)
	if m == nil {
		return 0, false
	}
	fields := strings.Fields(m[1])
	for i := 1; i < len(fields); i += 2 {
		if fields[i] == unit {
			v, err := strconv.ParseFloat(fields[i-1], 64)
			return v, err == nil
		}
	}
	return 0, false
}

package steps

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"dalmatiner/bench/report"
)

// A run of three steps, the second beyond what is stored.
func testSteps() *Result {
	r := &Result{length: 10 * time.Second, sent: 9_000_000}
	at := time.Unix(1000, 0)
	for i, st := range []struct{ offered, stored float64 }{{1e5, 1e5}, {1e7, 4e6}, {1e5, 1e5}} {
		s := step{offered: st.offered, begin: time.Duration(i) * 10 * time.Second, took: 8 * time.Second}
		s.from.at = at.Add(s.begin)
		s.to.stored = uint64(8 * st.stored)
		s.to.written, s.to.refused = 8<<20, uint64(i)
		s.errors = s.to.refused
		s.visible = []time.Duration{100 * time.Microsecond, time.Duration(i+1) * time.Millisecond}
		r.steps = append(r.steps, s)
		for sec := range 10 {
			stored := st.stored
			if i == 2 && sec < 3 {
				stored = 0
			}
			r.seconds = append(r.seconds, second{at: float64(10*i + sec + 1), offered: st.offered,
				stored: stored, cpu: 0.5, visible: 1e-4})
		}
	}
	return r
}

func TestStepsTellTheRecovery(t *testing.T) {
	r := testSteps()
	over, ok := r.overload()
	if !ok || over != 1 {
		t.Errorf("the overload is step %d, %v, want 1", over, ok)
	}
	if after, ok := r.recovered(over); !ok || after != 4 {
		t.Errorf("recovered after %v s, %v, want 4", after, ok)
	}
	r.seconds = r.seconds[:20]
	if after, ok := r.recovered(over); ok {
		t.Errorf("recovered after %v s, though nothing was seen after the overload", after)
	}
	r.steps = r.steps[:1]
	if over, ok := r.overload(); ok {
		t.Errorf("step %d is taken for an overload", over)
	}
}

func TestStepsTable(t *testing.T) {
	var out strings.Builder
	testSteps().Render(&out)
	for _, want := range []string{
		"| Server | Time | Met [k] | Mputs | 99p [us] | CPU  | write IO | read IO | errors |",
		"| ddb    | 0:10 | 10000   | 4.00  | 2000     | 0.00 | 1.00 MiB | 0 MiB   | 1      |",
		"At 100 k the 99p was 1000 us before the overload and 3000 us after it, stored 0.100 and 0.100 " +
			"M points/s.",
		"On the way up it stored most, 4.00 M points/s, at 10000 k offered.",
		"4 s after the last step beyond its capacity it stored what was offered.",
		"on the same cores",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
}

// Every step is a line of Go's benchmark format, by its number: rates come twice.
func TestStepsAsBenchmarks(t *testing.T) {
	lines := testSteps().Benchmarks()
	if len(lines) != 3 || lines[0].Name != "Steps/step=01/offered=100k" ||
		lines[2].Name != "Steps/step=03/offered=100k" {
		t.Fatalf("got %+v", lines)
	}
	if v := lines[1].Values[0]; v.Value != 4e6 || v.Unit != report.HigherIsBetter {
		t.Errorf("of the overload %+v was stored, want 4 M points/s", v)
	}
}

func TestLatenciesOfATime(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	all := []measured{{at(1), 9}, {at(2), 5}, {at(3), 4}, {at(4), 1}}
	if got := within(all, at(1), at(3)); len(got) != 2 || got[0] != 4 || got[1] != 5 {
		t.Errorf("got %v, want 4 and 5", got)
	}
	if got := p99(nil); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	sorted := make([]time.Duration, 200)
	for i := range sorted {
		sorted[i] = time.Duration(i)
	}
	if got := p99(sorted); got != 198 {
		t.Errorf("of 0 to 199: %v, want 198", got)
	}
}

// Every chart is well-formed, has a curve of each line, and its dots lie inside.
func TestChartsAreDrawn(t *testing.T) {
	for name, c := range testSteps().charts() {
		dec := xml.NewDecoder(strings.NewReader(string(c.svg())))
		curves := 0
		for {
			token, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
				curves++
			}
		}
		want := 0
		x, y := c.scales()
		for _, l := range c.lines {
			want += len(y.parts(l.dots))
			for _, d := range l.dots {
				if y.drawn(d[1]) && !(inside(x.at(d[0])) && inside(y.at(d[1]))) {
					t.Errorf("%s: %v lies outside", name, d)
				}
			}
		}
		if curves != want || want == 0 {
			t.Errorf("%s has %d curves, want %d", name, curves, want)
		}
	}
	if out := string((&chart{title: "<none>", log: true}).svg()); !strings.Contains(out,
		"&lt;none&gt;") || strings.Contains(out, "NaN") {
		t.Errorf("a chart without curves: %s", out)
	}
}

func inside(v float64) bool { return v >= -1e-9 && v <= 1+1e-9 }

func TestScales(t *testing.T) {
	s := scale{1e3, 1e7, true}
	if got := s.at(1e5); math.Abs(got-0.5) > 1e-9 {
		t.Errorf("the middle of 1 k to 10 M is at %v", got)
	}
	if got := s.ticks(); len(got) != 5 || got[0] != 1e3 || got[4] != 1e7 {
		t.Errorf("ticks at %v, want 1 k to 10 M", got)
	}
	if got := (scale{0, 2.1, false}).ticks(); len(got) != 5 || got[4] != 2 {
		t.Errorf("ticks at %v, want 0 to 2", got)
	}
	if got := s.parts([][2]float64{{1, 5}, {2, 0}, {3, math.NaN()}, {4, 6}, {5, 7}}); len(got) != 2 ||
		len(got[0]) != 1 || len(got[1]) != 2 {
		t.Errorf("cut into %v", got)
	}
	for v, want := range map[float64]string{2e6: "2M", 1000: "1k", 250e-6: "250µ", 0.5: "500m", 0: "0",
		12.5: "12.5"} {
		if got := short(v); got != want {
			t.Errorf("%v is printed as %s, want %s", v, got, want)
		}
	}
}

package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
)

// answersMetric is a metric of answers/answers.py: its points are pairs of a slot
// and a number as text.
type answersMetric struct {
	Bucket     string
	Resolution uint64 // s
	Metric     []string
	Points     [][2]json.RawMessage
}

// answersQuestion is a query, and the answer that the script computed.
type answersQuestion struct {
	Query   string
	Width   int
	Start   int64
	Results []answersSeries
}

// answersSeries is a series of an answer, by the script or by a node.
type answersSeries struct {
	Stars      []string
	Start      *int64 // of columns
	Resolution int64
	Values     []*float64
	Min, Max   []*float64 // of columns
	Coverage   float64
	Points     *uint64
	LastPoint  *int64 `json:"last_point"`
	Ended      bool
	Interval   *int64 // of the script none where several metrics have the most points
}

// TestAnswers asks a node what the script in answers computes without it: from
// memory, and again from files, without the results that are kept.
func TestAnswers(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is missing: the answers of queries are not compared with those of " +
			"answers/answers.py")
	}
	now := time.Now().Unix()
	var metrics []answersMetric
	runAnswers(t, python, now, "data", &metrics)
	var questions []answersQuestion
	runAnswers(t, python, now, "answers", &questions)
	if len(questions) < 300 {
		t.Fatalf("the script has %d questions", len(questions))
	}
	n := startNode(t, t.TempDir(), "--set", "self_monitor=off")
	loadAnswers(t, n, metrics)
	askAnswers(t, n, questions, url.Values{})
	if _, err := n.admin().Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	askAnswers(t, n, questions, url.Values{"cache": {"off"}})
}

// runAnswers runs the script and decodes what it prints.
func runAnswers(t *testing.T, python string, now int64, what string, into any) {
	t.Helper()
	// -B: no files beside the script.
	cmd := exec.Command(python, "-B", "answers/answers.py", fmt.Sprint(now), what)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, errOut.String())
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
}

// loadAnswers makes the buckets and sends all points.
func loadAnswers(t *testing.T, n *node, metrics []answersMetric) {
	t.Helper()
	streams, sent := map[string]ackStream{}, map[string]uint64{}
	for _, m := range metrics {
		if _, made := streams[m.Bucket]; !made {
			if _, err := n.dial().AddBucket(context.Background(), m.Bucket, m.Resolution*1000, 604800,
				0); err != nil {
				t.Fatal(err)
			}
			streams[m.Bucket] = openAcked(t, n, m.Bucket)
		}
		k := key(t, m.Metric...)
		for _, p := range m.Points {
			slot, word := answersPoint(t, p)
			streams[m.Bucket].point(k, slot, word)
		}
		sent[m.Bucket] += uint64(len(m.Points))
	}
	for bucket, s := range streams {
		if ack := s.flush(); ack.Received != sent[bucket] || ack.Refused != 0 {
			t.Fatalf("%d points of %s were answered with %+v", sent[bucket], bucket, ack)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// answersPoint decodes a point: integers are digits alone, floats have more.
func answersPoint(t *testing.T, p [2]json.RawMessage) (slot int64, word uint64) {
	t.Helper()
	var text string
	err := json.Unmarshal(p[0], &slot)
	if err == nil {
		err = json.Unmarshal(p[1], &text)
	}
	if err != nil {
		t.Fatal(err)
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return slot, point.FromInt(v)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return slot, point.FromFloat(v)
}

// askAnswers asks all questions, with further parameters, and compares.
func askAnswers(t *testing.T, n *node, questions []answersQuestion, more url.Values) {
	t.Helper()
	wrong := 0
	for _, q := range questions {
		form := url.Values{"q": {q.Query}}
		for name, values := range more {
			form[name] = values
		}
		if q.Width > 0 {
			form.Set("width", fmt.Sprint(q.Width))
		}
		got, err := askAnswer(n, form)
		if err != nil {
			t.Errorf("%s\n  %v", form, err)
			wrong++
			continue
		}
		if differences := q.compare(got); len(differences) > 0 {
			t.Errorf("%s %v\n  %s", q.Query, more, strings.Join(differences, "\n  "))
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d questions have other answers, asked with %v", wrong, len(questions), more)
	}
}

// askAnswer returns the answer of a node.
func askAnswer(n *node, form url.Values) (a answersQuestion, err error) {
	resp, err := http.PostForm("http://"+n.http+"/", form)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, body)
	}
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(body, &a)
}

// compare returns how an answer of a node differs from that of the script.
func (q *answersQuestion) compare(got answersQuestion) (differences []string) {
	if len(got.Results) != len(q.Results) {
		return append(differences, fmt.Sprintf("%d series, want %d", len(got.Results), len(q.Results)))
	}
	for i, want := range q.Results {
		if got.Results[i].Start == nil {
			got.Results[i].Start = &got.Start
		}
		for _, d := range want.compare(got.Results[i], q.Start) {
			differences = append(differences, fmt.Sprintf("series %d: %s", i, d))
		}
	}
	return differences
}

// compare returns how a series of a node differs from that of the script.
func (want *answersSeries) compare(got answersSeries, start int64) (differences []string) {
	differ := func(what string, got, want any) {
		differences = append(differences, fmt.Sprintf("%s %v, want %v", what, got, want))
	}
	if !slices.Equal(got.Stars, want.Stars) {
		differ("stars", got.Stars, want.Stars)
	}
	if *got.Start != start {
		differ("start", *got.Start, start)
	}
	if got.Resolution != want.Resolution {
		differ("resolution", got.Resolution, want.Resolution)
	}
	if math.Abs(got.Coverage-want.Coverage) > 1e-9 {
		differ("coverage", got.Coverage, want.Coverage)
	}
	if !equalOrNone(got.Points, want.Points) {
		differ("points", orNone(got.Points), orNone(want.Points))
	}
	if !equalOrNone(got.LastPoint, want.LastPoint) {
		differ("last_point", orNone(got.LastPoint), orNone(want.LastPoint))
	}
	if got.Ended != want.Ended {
		differ("ended", got.Ended, want.Ended)
	}
	if want.Interval != nil && !equalOrNone(got.Interval, positive(want.Interval)) {
		differ("interval", orNone(got.Interval), orNone(positive(want.Interval)))
	}
	for _, list := range []struct {
		name      string
		got, want []*float64
	}{{"value", got.Values, want.Values}, {"min", got.Min, want.Min}, {"max", got.Max, want.Max}} {
		if d := differentNumbers(list.got, list.want); d != "" {
			differences = append(differences, list.name+d)
		}
	}
	return differences
}

// differentNumbers describes the first number that differs by more than the
// rounding of a sum, and how many do.
func differentNumbers(got, want []*float64) string {
	if len(got) != len(want) {
		return fmt.Sprintf("s: %d, want %d", len(got), len(want))
	}
	first, count := "", 0
	for i := range want {
		if g, w := got[i], want[i]; g == nil && w == nil || g != nil && w != nil && near(*g, *w) {
			continue
		}
		if count++; count == 1 {
			first = fmt.Sprintf(" %d is %v, want %v", i, orNone(got[i]), orNone(want[i]))
		}
	}
	if count > 1 {
		first += fmt.Sprintf("; %d of %d differ", count, len(want))
	}
	return first
}

func near(a, b float64) bool {
	return math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b))
}

func equalOrNone[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// orNone returns what a message prints of an optional number.
func orNone[T any](p *T) any {
	if p == nil {
		return "none"
	}
	return *p
}

// positive returns none for 0, as the answer of a node has it.
func positive(p *int64) *int64 {
	if *p == 0 {
		return nil
	}
	return p
}

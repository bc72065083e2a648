package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"dalmatiner/haggar"
	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

const (
	journalAgents  = 3
	journalMetrics = 300
	journalSteps   = 400
)

// TestEveryPointOfTheJournal: what haggar says it sent is what the store has
// after a clean stop: every point by GET and by query, and the account.
func TestEveryPointOfTheJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startNode(t, dir)
	streams := []struct {
		bucket string
		flags  []string
	}{
		{"classic", []string{"-cache_connections=false"}},
		{"tiny", []string{"-tiny-writes", "-steps", "40"}},
		{"batch", []string{"-batch", "-walk", "-seed", "7"}},
		{"acked", []string{"-batch", "-ack", "-seed", "8"}},
	}
	journals := map[string]*haggar.Journal{}
	for _, s := range streams {
		journals[s.bucket] = load(t, n, s.bucket, s.flags...)
	}
	n.stop()
	n = startNode(t, dir)
	if replayed := replayedRecords(t, n); replayed > 10 {
		t.Errorf("%d records of the log were replayed after a clean stop", replayed)
	}
	for _, s := range streams {
		t.Run(s.bucket, func(t *testing.T) {
			want := expected(t, journals[s.bucket])
			compareByGet(t, n, s.bucket, want)
			compareByQuery(t, n, s.bucket, want)
			row := n.account(s.bucket)
			if points := want.points; row.Received != points || row.Accepted+row.Late != points {
				t.Errorf("the journal has %d points, the account %+v", points, row)
			}
		})
	}
}

// load runs haggar and returns its journal.
func load(t *testing.T, n *node, bucket string, flags ...string) *haggar.Journal {
	t.Helper()
	file := filepath.Join(t.TempDir(), "journal")
	args := append([]string{
		"-carbon", n.tcp, "-prefix", bucket, "-fast", "-journal", file, "-agents",
		strconv.Itoa(journalAgents),
		"-metrics", strconv.Itoa(journalMetrics), "-steps", strconv.Itoa(journalSteps),
	}, flags...)
	r := run(t, "haggar", args...)
	var sum haggar.Summary
	if err := json.Unmarshal([]byte(r.out), &sum); err != nil || r.code != 0 || sum.Errors != 0 {
		t.Fatalf("haggar %q ended with %d: %v\n%s%s", args, r.code, err, r.out, r.errOut)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	j, err := haggar.ReadJournal(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// contents is what a bucket must hold.
type contents struct {
	first  int64 // slot
	count  int
	words  map[string][]uint64 // by key, from first on
	points uint64
}

// expected computes every point of a journal again.
func expected(t *testing.T, j *haggar.Journal) contents {
	t.Helper()
	first, last := int64(math.MaxInt64), int64(0)
	for _, f := range j.Flushes {
		if f.State == haggar.Failed || f.Refused > 0 {
			t.Fatalf("a flush failed: %+v", f)
		}
		first, last = min(first, f.Slot), max(last, f.Slot+(f.Slots-1)*f.Step)
	}
	c := contents{first: first, count: int(last-first) + 1, words: map[string][]uint64{}}
	for _, f := range j.Flushes {
		c.points += uint64(f.Points())
		for i := f.First; i < f.First+f.Count; i++ {
			k := string(j.AppendKey(nil, f.Agent, i))
			words := c.words[k]
			if words == nil {
				words = make([]uint64, c.count)
				c.words[k] = words
			}
			series := j.Series(f.Agent, i)
			for slot := f.Slot; slot < f.Slot+f.Slots*f.Step; slot += f.Step {
				words[slot-first] = point.FromInt(series.At(slot))
			}
		}
	}
	if want := journalAgents * journalMetrics; len(c.words) != want {
		t.Fatalf("the journal has %d series, haggar was asked for %d", len(c.words), want)
	}
	return c
}

func compareByGet(t *testing.T, n *node, bucket string, want contents) {
	t.Helper()
	c := n.dial()
	const around = 100 // slots before and after that must be unset
	for k, words := range want.words {
		got := get(t, c, bucket, []byte(k), want.first-around, want.count+2*around)
		for i, word := range got {
			slot := i - around
			if should := slot >= 0 && slot < want.count; should && word != words[slot] || !should &&
				word != point.Unset {
				t.Fatalf("%s, slot %d: %016x is there", metric.Text([]byte(k)), want.first+int64(slot), word)
			}
		}
	}
}

func compareByQuery(t *testing.T, n *node, bucket string, want contents) {
	t.Helper()
	r := query(t, n, fmt.Sprintf("SELECT agent.*.metrics.* BUCKET %s AS $1.$2.$3.$4 AFTER %d FOR %ds",
		bucket, want.first*1000, want.count))
	if len(r.Results) != len(want.words) || r.Start != want.first*1000 {
		t.Fatalf("%d series from %d, want %d from %d", len(r.Results), r.Start, len(want.words),
			want.first*1000)
	}
	byName := map[string][]*float64{}
	for _, s := range r.Results {
		if s.Coverage != 1 || len(s.Values) != want.count {
			t.Fatalf("%s: %d values, coverage %v", s.Name, len(s.Values), s.Coverage)
		}
		byName[s.Name] = s.Values
	}
	for k, words := range want.words {
		name := metric.Text([]byte(k))
		values := byName[name]
		if values == nil {
			t.Fatalf("there is no result %s", name)
		}
		for i, v := range values {
			if v == nil || *v != point.Float(words[i]) {
				t.Fatalf("%s, value %d: %v, want %v", name, i, v, point.Float(words[i]))
			}
		}
	}
}

// query runs a query over HTTP.
func query(t *testing.T, n *node, text string) *admin.Result {
	t.Helper()
	r, err := n.admin().Query(context.Background(), text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

var replayedField = regexp.MustCompile(`replayed_records=(\d+)`)

// replayedRecords returns how many records of the log the last start replayed.
func replayedRecords(t *testing.T, n *node) int {
	t.Helper()
	m := replayedField.FindStringSubmatch(n.log.String())
	if m == nil {
		t.Fatalf("the log does not say how many records were replayed:\n%s", n.log)
	}
	records, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return records
}

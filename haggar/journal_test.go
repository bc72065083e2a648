package haggar

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

var flushes = []Flush{
	{State: Sent, Agent: 3, Seq: 1, Slot: 1_790_000_000, Step: 1, Slots: 42, Count: 40},
	{State: Acked, Agent: 0, Seq: 2, Slot: -5, Step: 10, Slots: 1, First: 7, Count: 1, Refused: 3},
	{State: Failed, Agent: 1, Seq: 9, Slot: 0, Step: 1, Slots: 1, Count: maxMetrics},
}

func journalOf(bucket string, d Data) (*bytes.Buffer, *journal) {
	var b bytes.Buffer
	j := newJournal(&Config{Journal: &b, Bucket: bucket, Data: d})
	for _, f := range flushes {
		j.add(f)
	}
	return &b, j
}

func TestJournalSurvives(t *testing.T) {
	bucket := "a \"b\"\n\xff" + strings.Repeat("\x00", 248)
	want := Data{Seed: 1<<64 - 1, Walk: true}
	b, j := journalOf(bucket, want)
	if err := j.sync(); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	got, err := ReadJournal(bytes.NewReader(whole))
	if err != nil || got.Bucket != bucket || got.Data != want || !slices.Equal(got.Flushes, flushes) {
		t.Errorf("got %+v, %v", got, err)
	}
	head := bytes.IndexByte(whole, '\n') + 1
	for n := head; n < len(whole); n++ {
		got, err := ReadJournal(bytes.NewReader(whole[:n]))
		lines := bytes.Count(whole[:n], []byte{'\n'}) - 1
		if err != nil || !slices.Equal(got.Flushes, flushes[:lines]) {
			t.Fatalf("the first %d bytes: %+v, %v, want %d flushes", n, got, err, lines)
		}
	}
}

func TestWrongJournals(t *testing.T) {
	f := func(text, mention string) {
		t.Helper()
		if j, err := ReadJournal(strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), mention) {
			t.Errorf("%q: %+v, %v, want an error that mentions %q", text, j, err, mention)
		}
	}
	head := fmt.Sprintf(journalHead, "b", 1, false, "")
	preset := fmt.Sprintf(journalHead, "tachyon", 1, false, Published)
	line := func(state string, agent, step, slots, first, count int) string {
		return fmt.Sprintf(journalLine, state, agent, 1, 1, step, slots, first, count, 0)
	}
	f("", "line 1")
	f("haggar-journal 2\n", "line 1")
	f(fmt.Sprintf(journalHead, "b", 1, false, "x"), "preset")
	f(head+"nonsense\n", "line 2")
	f(head+line("lost", 0, 1, 1, 0, 1), "lost")
	f(head+line("sent", -1, 1, 1, 0, 1), "agent -1")
	f(head+line("sent", 0, 1, 1, 1, maxMetrics), "10000000")
	f(head+line("sent", 0, 0, 1, 0, 1), "slots")
	f(head+line("sent", 0, 1, 1<<40, 0, 1), "65536")
	f(preset+line("sent", 0, 1, 1, 0, 9), "there are 8")
	f(head+strings.Repeat("x", maxLine+1), "4096")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestJournalThatCannotBeWritten(t *testing.T) {
	s := listen(t, newStore())
	c := base(s)
	c.Journal, c.Steps = brokenWriter{}, 1
	if _, err := Run(t.Context(), c); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v, want %v", err, io.ErrClosedPipe)
	}
}

func TestLatencies(t *testing.T) {
	var l latencies
	if got := l.quantile(0.5); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
	for us := range 10_000 {
		l.add(time.Duration(us) * time.Microsecond)
	}
	for _, q := range []float64{0.001, 0.5, 0.99, 0.9999} {
		exact := time.Duration(q*10_000) * time.Microsecond
		if got := l.quantile(q); got < exact || got > exact+exact/subBuckets {
			t.Errorf("quantile %v is %v, want %v to 1/16 more", q, got, exact)
		}
	}
}

func FuzzJournal(f *testing.F) {
	b, j := journalOf("b", Data{Preset: ""})
	if err := j.sync(); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(fmt.Sprintf(journalHead, "tachyon", 1, false, Published) +
		fmt.Sprintf(journalLine, "sent", 0, 1, 1, 1, 1, 0, 8, 0)))
	f.Fuzz(func(t *testing.T, text []byte) {
		j, err := ReadJournal(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, fl := range j.Flushes {
			// What a verifier does with it must not panic.
			j.AppendKey(nil, fl.Agent, fl.First+fl.Count-1)
			it := j.Series(fl.Agent, fl.First)
			it.At(fl.Slot)
			if fl.Points() < 1 {
				t.Errorf("%+v has %d points", fl, fl.Points())
			}
		}
	})
}

package loglimit

import (
	"bytes"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

type fixture struct {
	*Logger
	text bytes.Buffer
	now  time.Time
}

func newFixture() *fixture {
	f := &fixture{now: time.Unix(1_500_000_000, 0)}
	f.Logger = New(slog.New(slog.NewTextHandler(&f.text, nil)), func() time.Time { return f.now })
	return f
}

// expect checks how many lines there are since the last call, and what they hold.
func (f *fixture) expect(t *testing.T, lines int, holds ...string) {
	t.Helper()
	got := f.text.String()
	f.text.Reset()
	if strings.Count(got, "\n") != lines {
		t.Errorf("want %d lines, got\n%s", lines, got)
	}
	for _, text := range holds {
		if !strings.Contains(got, text) {
			t.Errorf("no %q in\n%s", text, got)
		}
	}
}

func TestALineASecondForEachCause(t *testing.T) {
	f := newFixture()
	if !f.Log(slog.LevelWarn, "a", "first", "peer", 1) ||
		f.Log(slog.LevelWarn, "a", "second", "peer", 2) {
		t.Error("the first line is written, the second one left out")
	}
	f.expect(t, 1, `level=WARN msg=first peer=1`)
	f.Log(slog.LevelInfo, "b", "another cause")
	f.expect(t, 1, "another cause")
	f.now = f.now.Add(every - 1)
	f.Log(slog.LevelWarn, "a", "third")
	f.expect(t, 0)
	f.now = f.now.Add(1)
	f.Log(slog.LevelWarn, "a", "fourth", "peer", 4)
	f.expect(t, 1, "msg=fourth peer=4 left_out=2")
	f.now = f.now.Add(-time.Hour) // a clock that was set back
	f.Log(slog.LevelWarn, "a", "fifth")
	f.expect(t, 1, "msg=fifth")
	f.Log(slog.LevelWarn, "a", "sixth")
	f.Close()
	f.expect(t, 1, "cause=a", "line=sixth", "left_out=1")
	f.Close()
	f.expect(t, 0)
}

// Every line is written or counted as left out, whatever the times.
func TestNoLineIsForgotten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	f := newFixture()
	logged, written, sum := 0, 0, 0
	add := func() {
		for line := range strings.Lines(f.text.String()) {
			written++
			if strings.Contains(line, "log lines were left out") {
				written--
			}
			if _, n, ok := strings.Cut(strings.TrimSpace(line), "left_out="); ok {
				var k int
				if _, err := fmt.Sscan(n, &k); err != nil {
					t.Fatal(err)
				}
				sum += k
			}
		}
		f.text.Reset()
	}
	for range 5000 {
		f.now = f.now.Add(time.Duration(r.IntN(600)) * time.Millisecond)
		f.Log(slog.LevelInfo, string(rune('a'+r.IntN(3))), "x")
		logged++
		add()
	}
	f.Close()
	add()
	if written+sum != logged || sum == 0 {
		t.Errorf("%d lines: %d written, %d left out", logged, written, sum)
	}
}

func TestCausesAreBounded(t *testing.T) {
	f := newFixture()
	for i := range 10 * maxCauses {
		f.Log(slog.LevelInfo, fmt.Sprint("cause ", i), "x")
	}
	f.expect(t, maxCauses+1) // and one for all others
	if len(f.causes) > maxCauses+1 {
		t.Errorf("%d causes are kept", len(f.causes))
	}
}

func TestWriterAndConcurrentUse(t *testing.T) {
	f := newFixture()
	old := log.New(f.Writer(slog.LevelWarn, "server"), "", 0)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				old.Print("http: something")
			}
		})
	}
	all.Wait()
	f.expect(t, 1, `level=WARN msg="http: something"`)
	f.Close()
	f.expect(t, 1, "left_out=799")
}

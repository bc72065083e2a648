package node

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestRecentLogKeepsTheLastLines(t *testing.T) {
	var out bytes.Buffer
	recent, logger := keepRecent(slog.New(slog.NewTextHandler(&out, nil)))
	if got := recent.list(); got == nil || len(got) != 0 {
		t.Errorf("before the first line: %v", got)
	}
	logger.Debug("not in the log")
	for i := range recentLines + 10 {
		logger.Info(fmt.Sprintf("line %d", i), "i", i)
		got := recent.list()
		if n := min(i+1, recentLines); len(got) != n || got[n-1].Number != uint64(i+1) ||
			got[0].Number != uint64(i+2-n) {
			t.Fatalf("after %d lines: %d of them, %d to %d", i+1, len(got), got[0].Number,
				got[len(got)-1].Number)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != recentLines+10 {
		t.Errorf("the log itself has %d lines", n)
	}
}

func TestRecentLogShowsFields(t *testing.T) {
	if _, silent := keepRecent(slog.New(slog.DiscardHandler)); silent.Enabled(t.Context(),
		slog.LevelError) {
		t.Error("lines are kept that the log drops")
	}
	var out bytes.Buffer
	recent, logger := keepRecent(slog.New(slog.NewTextHandler(&out, nil)))
	logger.With("a", 1).WithGroup("g").Warn("two words", "text", "b c", "time", "kept")
	logger.Error(strings.Repeat("é", maxLogText))
	got := recent.list()
	if len(got) != 2 || got[0].Level != "WARN" || got[0].Message != "two words" ||
		got[0].Fields != `a=1 g.text="b c" g.time=kept` {
		t.Errorf("got %+v", got)
	}
	if n := len(got[1].Message); n > maxLogText+3 || !strings.HasSuffix(got[1].Message, "é…") {
		t.Errorf("a long line is kept with %d bytes", n)
	}
}

package compaction

import (
	"context"
	"testing"
	"time"
)

// A merge pauses where it has to yield, and not before its turn is over.
func TestPace(t *testing.T) {
	n := newNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&merging{c: n.c}).pace(ctx); err != nil {
		t.Errorf("a merge yields to nobody: %v", err)
	}
	n.c.o.Yields = func(bool) bool { return true }
	if err := (&merging{c: n.c}).pace(ctx); err == nil {
		t.Error("a merge does not yield")
	}
	if err := (&merging{c: n.c, turn: time.Now().Add(time.Hour)}).pace(ctx); err != nil {
		t.Errorf("a merge yields before its turn is over: %v", err)
	}
}

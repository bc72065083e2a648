package query_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"dalmatiner/internal/query"
	"dalmatiner/internal/query/source"
)

// leaving is a source whose client goes away in the middle of a round.
type leaving struct {
	*memory
	leave context.CancelFunc
	reads int
}

func (l *leaving) Read(ctx context.Context, b source.Info, key []byte, from int64,
	dst []uint64) (source.Cost, error) {
	if l.reads++; l.reads == 3 {
		l.leave()
	}
	return l.memory.Read(ctx, b, key, from, dst)
}

// A query of which nobody waits for the answer ends with the read under way,
// not with the round: that may have all series of a glob.
func TestAQueryEndsWithItsClient(t *testing.T) {
	m := newBucket(t)
	for i := range 1000 {
		m.load("b", key(t, "a", strconv.Itoa(i)), 100, ints(10, func(i int64) int64 { return i }))
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	source := &leaving{memory: m, leave: leave}
	e := &query.Engine{Source: sourceOf(source), Now: time.Now}
	_, err := e.Query(ctx, "SELECT sum(a.* BUCKET b) AFTER 100000 FOR 10s", query.Options{})
	if !errors.Is(err, context.Canceled) || source.reads != 3 {
		t.Errorf("%d reads, error %v; want 3 and the cancellation", source.reads, err)
	}
}

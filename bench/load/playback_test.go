package load

import (
	"testing"
	"time"

	"dalmatiner/bench/corpus"
)

// A recording lies at the beginning of a closed window, and keeps its jitter.
func TestReady(t *testing.T) {
	for _, interval := range []int64{1000, 15_000} {
		c := &corpus.Corpus{Interval: interval, Series: []corpus.Series{{
			Labels: []corpus.Label{{Name: "__name__", Value: "x"}},
			Times:  []int64{1_700_000_000_123, 1_700_000_000_123 + interval, 1_700_000_000_124 + interval},
			Values: []string{"1", "2", "3"},
		}}}
		if n := Ready(c); n != 1 {
			t.Errorf("%d samples are left out, want 1", n)
		}
		first, last := c.Span()
		if slot := first / interval; slot%LargeWindow != 0 || last != first+interval ||
			first%1000 != 123 {
			t.Errorf("at %d ms it is from %d to %d", interval, first, last)
		}
		now := time.Now().UnixMilli()
		if end := Beyond(c); end%1000 != 0 || end/interval < first/interval+LargeWindow+SmallWindow ||
			end >= now {
			t.Errorf("at %d ms the point beyond it is at %d, now is %d", interval, end, now)
		}
	}
}

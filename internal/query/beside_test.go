package query_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"dalmatiner/internal/query"
	"dalmatiner/internal/query/resultcache"
)

// Many ask for ranges of the same hour at once, while all that is kept is dropped now and then:
// each gets the answer of an engine without a cache.
func TestCacheSideBySide(t *testing.T) {
	m := newBucket(t)
	for i := range 7 {
		m.load("b", key(t, "m", fmt.Sprint(i)), 0, ints(8000, func(n int64) int64 {
			return n * int64(i+1) % 1009
		}))
	}
	e := &query.Engine{Source: sourceOf(newHistoried(m)), Now: func() time.Time {
		return time.Unix(9000, 0)
	},
		Cache: query.NewCache(400_000), Readers: query.NewReaders(2)}
	text := func(i int) string {
		return fmt.Sprintf("SELECT avg(avg(m.* BUCKET b, 1m)) AFTER %d FOR 1h", i*60_000)
	}
	var want [40]string
	for i := range want {
		want[i] = dump(e.Query(t.Context(), text(i+1), query.Options{NoCache: true}))
	}
	var all sync.WaitGroup
	for seed := range uint64(8) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 0))
			at := 0
			for range 200 {
				switch at += r.IntN(3); {
				case at >= len(want):
					at = 0
				case r.IntN(30) == 0:
					e.Cache.Drop()
				}
				if got := dump(e.Query(t.Context(), text(at+1), query.Options{})); got != want[at] {
					t.Errorf("%s:\n%s\nwant\n%s", text(at+1), got, want[at])
				}
			}
		})
	}
	all.Wait()
	for _, o := range []resultcache.Outcome{resultcache.HitWhole, resultcache.HitSteps,
		resultcache.Missed, resultcache.Dropped} {
		if e.Cache.Counted(o) == 0 {
			t.Errorf("outcome %d did not come", o)
		}
	}
	if held, limit := e.Cache.Bytes(), e.Cache.Limit(); held < 0 || held > limit {
		t.Errorf("%d bytes are held, the limit is %d", held, limit)
	}
}

package node

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/resultcache"
	"dalmatiner/internal/store/deletion"
)

// keptTrial asks an engine with a cache and one without over a store that is in use.
type keptTrial struct {
	*rapid.T
	node          *pairNode
	cached, plain *query.Engine
	bucket        string
	now           int64 // slot up to which points have come on time
	asked         []string
	starts        []int64
}

// keptFields are what is asked, over a bucket.
var keptFields = []string{
	"'m'.'0' BUCKET %s", "'m'.'3' BUCKET %s", "avg('m'.* BUCKET %s, 60s)",
	"sum(avg('m'.* BUCKET %s, 30s))", "max('m'.'1' BUCKET %s, 20s)",
	"count('m'.* BUCKET %s, 60s)", "first('m'.* BUCKET %s, 20s)", "last('m'.'0' BUCKET %s, 60s)",
	"max(sum('m'.* BUCKET %s, 60s))",
	"rate('m'.* BUCKET %s)", "sum('m'.* BUCKET %s)", "empty('m'.'2' BUCKET %s, 20s)",
	"avg('m'.* BUCKET %s SHIFT BY 100s, 60s)",
	"percentile('m'.* BUCKET %s, 0.9, 60s)", "sum(rate('m'.* BUCKET %s, 60s))",
	"avg(derivate('m'.* BUCKET %s), 20s)", "avg('m'.* BUCKET %s, 5s)",
	"increase('m'.'1' BUCKET %s, 30s)", "avg('m'.*.'sub' BUCKET %s, 60s)",
}

// TestKeptResultsEqualComputed: over a real store, with points on time, late and long ago, series
// that come and go, lifetimes, deleted buckets, flushes and merges, an engine with a cache answers
// as one without.
func TestKeptResultsEqualComputed(t *testing.T) {
	p := newPairNode(t)
	p.setClock(t, pairFrom+2000)
	n, hits := 0, make([]int64, 4)
	rapid.Check(t, func(rt *rapid.T) {
		n++
		engine := func(cache *query.Cache) *query.Engine {
			return &query.Engine{Source: p.source(), Now: func() time.Time {
				return time.Unix(p.now.Load(), 0)
			}, Cache: cache}
		}
		k := &keptTrial{T: rt, node: p, cached: engine(query.NewCache(4 << 20)), plain: engine(nil),
			bucket: fmt.Sprintf("b%d", n), now: pairFrom + 2000}
		k.begin()
		k.dashboard()
		for range rapid.IntRange(5, 60).Draw(rt, "steps") {
			k.step()
		}
		for i := range hits {
			hits[i] += k.cached.Cache.Counted(resultcache.Outcome(i))
		}
	})
	t.Logf("whole %d, steps %d, missed %d, changed %d", hits[0], hits[1], hits[2], hits[3])
	for i, what := range []string{"whole results", "steps", "misses", "changes"} {
		if hits[i] == 0 {
			t.Errorf("no question met %s", what)
		}
	}
}

// setClock sets the clock, and waits until the store has seen it: slots ahead of its clock are live
// to it.
func (n *pairNode) setClock(t *testing.T, now int64) {
	t.Helper()
	n.now.Store(now)
	for began := time.Now(); n.store.Now().Unix() < now; runtime.Gosched() {
		if time.Since(began) > time.Minute {
			t.Fatal("the coarse clock stands still")
		}
	}
}

func (k *keptTrial) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

func (k *keptTrial) int(name string, most int) int {
	return rapid.IntRange(0, most).Draw(k.T, name)
}

// begin makes the bucket with some series, and draws what is asked.
func (k *keptTrial) begin() {
	_, err := k.node.store.CreateBucket(buckets.Info{Name: k.bucket, Resolution: 1000, PPF: 1000})
	k.must(err)
	for series := range 1 + k.int("series", 4) {
		k.send(series, pairFrom+int64(k.int("first", 300)), 1000+k.int("length", 900))
	}
	for range 1 + k.int("questions", 3) {
		field := fmt.Sprintf(rapid.SampledFrom(keptFields).Draw(k.T, "field"), k.bucket)
		k.asked = append(k.asked, field)
		k.starts = append(k.starts, int64(60*k.int("start", 20)))
	}
}

// dashboard asks the same again, a step later, and behind a change, so that whole results and steps
// are met whatever is drawn.
func (k *keptTrial) dashboard() {
	field := fmt.Sprintf("avg('m'.* BUCKET %s, 60s)", k.bucket)
	for _, start := range []int64{0, 0, 60} {
		k.compare(field, start)
	}
	k.send(0, pairFrom+400, 1)
	k.send(0, pairFrom+401, 1) // one of the two may be unset in this test
	k.compare(field, 60)
}

// send sends slots of a series, most of them.
func (k *keptTrial) send(series int, from int64, slots int) {
	info, err := k.node.store.EnsureBucket(k.bucket)
	k.must(err)
	x, err := k.node.store.NewSession(info)
	k.must(err)
	key, err := metric.Key("m", fmt.Sprint(series))
	k.must(err)
	r := rand.New(rand.NewPCG(uint64(from), uint64(slots)))
	for slot := from; slot < from+int64(slots); slot++ {
		switch r.IntN(20) {
		case 0:
		case 1:
			x.Point(key, uint64(slot), point.FromFloat(r.NormFloat64()))
		default:
			x.Point(key, uint64(slot), point.FromInt(r.Int64N(100)))
		}
	}
	k.must(x.Close())
}

// step does one of what may happen.
func (k *keptTrial) step() {
	s, ctx := k.node.store, k.Context()
	switch what := k.int("what", 30); {
	case what < 16:
		k.ask()
	case what < 20:
		k.now += int64(1 + k.int("seconds", 70))
		k.send(k.int("series", 4), k.now-int64(k.int("behind", 5)), 1+k.int("points", 3))
	case what < 22:
		k.send(k.int("series", 4), k.now-int64(k.int("late", 600)), 1+k.int("points", 40))
	case what < 24:
		k.send(k.int("series", 4), pairFrom-5000+int64(k.int("long ago", 6000)), 1+k.int("points", 100))
	case what == 24:
		k.send(5+k.int("series", 1), k.now, 1)
	case what == 25:
		choice := deletion.Choice{Prefix: k.int("all", 9) == 0}
		name := []string{"m", fmt.Sprint(k.int("series", 6))}
		if choice.Prefix {
			name = name[:1]
		}
		var err error
		choice.Key, err = metric.Key(name...)
		k.must(err)
		_, _ = s.DeleteSeries(ctx, k.bucket, choice, false) // there may be none
	case what == 26:
		k.must(s.SetTTL(k.bucket, rapid.SampledFrom([]int64{0, 0, 500, 1500, 5000}).Draw(k.T, "ttl")))
	case what == 27:
		_, err := s.Merge(ctx)
		k.must(err)
	case what < 30:
		_, err := s.Flush(ctx)
		k.must(err)
	default:
		k.must(s.DeleteBucket(k.bucket))
		_, err := s.CreateBucket(buckets.Info{Name: k.bucket, Resolution: 1000, PPF: 1000})
		k.must(err)
		k.send(k.int("series", 4), k.now-1000, 900)
	}
}

// ask asks both engines the same, at the same or at later times.
func (k *keptTrial) ask() {
	i := k.int("which", len(k.asked)-1)
	switch k.int("when", 5) {
	case 0, 1, 2:
		k.starts[i] += 60 * int64(1+k.int("steps later", 2))
	case 3:
		k.starts[i] = int64(60 * k.int("start", 40))
	}
	k.compare(k.asked[i], k.starts[i])
}

// compare asks both engines for ten minutes from a start on.
func (k *keptTrial) compare(field string, start int64) {
	text := fmt.Sprintf("SELECT %s AFTER %d FOR 600s", field, 1000*(pairFrom/60*60+start))
	got, want := answerOf(k.cached.Query(k.Context(), text, query.Options{})),
		answerOf(k.plain.Query(k.Context(), text, query.Options{}))
	if got != want {
		k.Fatalf("%s:\n%s\nwant\n%s", text, got, want)
	}
}

// answerOf writes out what of an answer does not depend on how it was found.
func answerOf(r *query.Result, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	out := fmt.Sprint(r.Start, r.Missing, r.Stats.Slots, r.Stats.Set, "\n")
	for _, s := range r.Series {
		out += fmt.Sprintf("%+v\n", s)
	}
	return out
}

// TestStepsHoldBesideSenders: a dashboard that asks every minute for the last hour finds the steps
// of before. It does so beside senders who are on time and one who is always a day late.
func TestStepsHoldBesideSenders(t *testing.T) {
	p := newPairNode(t)
	cache := query.NewCache(1 << 20)
	e := &query.Engine{Source: p.source(), Now: func() time.Time {
		return time.Unix(p.now.Load(), 0)
	}, Cache: cache}
	const minutes, first = 20, pairFrom / 60 * 60
	write := func(name string, from, past int64) {
		p.write("b", name, from-pairFrom, past-pairFrom, func(int64) uint64 { return point.FromInt(1) })
	}
	for series := range 3 {
		write(fmt.Sprint("s.", series), first-3600, first)
	}
	write("s.behind", first-90_000, first-86_000)
	for n := range int64(minutes) {
		now := first + 60*(n+1)
		p.setClock(t, now)
		text := fmt.Sprintf("SELECT avg(s.* BUCKET b, 60s) AFTER %d FOR 3600s", 1000*(now-3600))
		if _, err := e.Query(t.Context(), text, query.Options{}); err != nil {
			t.Fatal(err)
		}
		for series := range 3 {
			write(fmt.Sprint("s.", series), now-3, now+50)
		}
		write("s.behind", now-86_400, now-86_340)
	}
	if hits, most := cache.Counted(resultcache.HitSteps), int64(minutes-2); hits < most {
		t.Errorf("%d of %d questions found steps", hits, most)
	}
}

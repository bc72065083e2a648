package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/intake"
)

// churn is a store and the naive truth beside it: batches of series that begin,
// fall silent and come back, in more groups than one.
type churn struct {
	t     fataler
	r     *rand.Rand
	clock *testClock
	fs    *vfs.MemFS
	o     Options
	s     *Store
	xs    []*intake.Session // that live as long as the store: what they predict grows old

	batches []churnBatch
	sent    []churnPoint
	acked   int          // of sent
	deleted map[int]int  // by series: the points before this one of sent are gone
	named   map[int]bool // was sent since it was deleted
	gone    map[int]bool // expired, which is on disk, and was not sent since
	ttl     int64        // points; 0 = for ever
}

type churnBatch struct {
	first, past int // series
	live        bool
}

type churnPoint struct {
	series int
	slot   int64
	word   uint64
}

func newChurn(t fataler, r *rand.Rand, timestamps bool, ttl int64) *churn {
	c := &churn{t: t, r: r, ttl: ttl, deleted: map[int]int{}, named: map[int]bool{},
		gone: map[int]bool{}, clock: newTestClock(), fs: vfs.NewCrashableMem()}
	c.o = testOptions(c.fs, c.clock)
	s := mustOpen(t, c.o)
	if _, err := s.CreateBucket(buckets.Info{Name: "b", Resolution: 1000, PPF: 1000, TTL: ttl,
		HPTS: timestamps}); err != nil {
		t.Fatalf("bucket: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	c.open()
	return c
}

func (c *churn) open() {
	c.t.Helper()
	c.o.FS = c.fs
	c.s = mustOpen(c.t, c.o)
	c.xs = nil
	for range 3 {
		c.xs = append(c.xs, mustSession(c.t, c.s, "b"))
	}
}

// born begins a batch of n series.
func (c *churn) born(n int) {
	first := 0
	if k := len(c.batches); k > 0 {
		first = c.batches[k-1].past
	}
	c.batches = append(c.batches, churnBatch{first, first + n, true})
}

// turn makes live batches silent or silent ones live.
func (c *churn) turn(live bool) {
	for range 4 {
		if b := &c.batches[c.r.IntN(len(c.batches))]; b.live != live {
			b.live = live
			return
		}
	}
}

// round sends a point of every live series, some of them late or in pairs.
func (c *churn) round() {
	x, now := c.xs[c.r.IntN(len(c.xs))], c.clock.Now().Unix()
	for _, b := range c.batches {
		if !b.live {
			continue
		}
		slot := now
		if c.r.IntN(8) == 0 {
			slot -= int64(c.r.IntN(900))
		}
		for i := b.first; i < b.past; i++ {
			if c.r.IntN(50) == 0 {
				c.points(x, i, slot-3, 3)
			}
			p := churnPoint{i, slot, point.FromInt(int64(c.r.IntN(1000)))}
			x.Point(key(i), uint64(slot), p.word)
			c.add(p)
		}
	}
	if _, err := x.Commit(); err != nil {
		c.t.Fatalf("commit: %v", err)
	}
}

func (c *churn) add(p churnPoint) {
	c.sent = append(c.sent, p)
	c.named[p.series] = true
	delete(c.gone, p.series)
}

func (c *churn) points(x *intake.Session, series int, slot int64, n int) {
	var data []byte
	for i := range n {
		p := churnPoint{series, slot + int64(i), point.FromInt(int64(c.r.IntN(9)))}
		c.add(p)
		data = point.Append(data, p.word)
	}
	x.Points(key(series), uint64(slot), data)
}

func (c *churn) pass(d time.Duration) {
	c.clock.Advance(d)
	c.s.clock.Advance()
	c.s.upkeep.EverySecond()
}

func (c *churn) flush() {
	c.t.Helper()
	c.durable(func() error {
		_, err := c.s.Flush(context.Background())
		return err
	})
}

// durable is for what makes all that was sent durable, and all expiries.
func (c *churn) durable(do func() error) {
	c.t.Helper()
	names, gone := c.names(), []int(nil)
	for i, sent := range c.named {
		if sent && names[string(key(i))] == 0 {
			gone = append(gone, i)
		}
	}
	if err := do(); err != nil {
		c.t.Fatalf("%v", err)
	}
	c.acked = len(c.sent)
	for _, i := range gone {
		c.gone[i] = true
	}
}

// names are those that the bucket lists.
func (c *churn) names() map[string]int {
	c.t.Helper()
	info, err := c.s.BucketByName("b")
	if err != nil {
		c.t.Fatalf("%v", err)
	}
	names := make(map[string]int)
	if err := c.s.Metrics(context.Background(), info, nil, func(k []byte) bool {
		names[string(k)]++
		return true
	}); err != nil {
		c.t.Fatalf("names: %v", err)
	}
	return names
}

func (c *churn) crash(percent int) {
	c.t.Helper()
	clone := c.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.r})
	c.s.Crash()
	c.fs = clone
	c.open()
	c.check()
	c.acked = len(c.sent)
}

// delete deletes some neighbours, or all series. One that has expired is not known
// and not deleted.
func (c *churn) delete() {
	c.t.Helper()
	all := c.batches[len(c.batches)-1].past
	first := c.r.IntN(all)
	past := min(first+1+c.r.IntN(60), all)
	names := c.names()
	one := func(choice deletion.Choice) {
		_, err := c.s.DeleteSeries(context.Background(), "b", choice, false)
		if err != nil && !errors.Is(err, deletion.ErrUnknownSeries) {
			c.t.Fatalf("delete: %v", err)
		}
	}
	if c.r.IntN(6) == 0 {
		first, past = 0, all
		one(deletion.Choice{Key: key(0)[:len("series")+1], Prefix: true})
	}
	for i := first; i < past; i++ {
		if past < all || first > 0 {
			one(deletion.Choice{Key: key(i)})
		}
		if names[string(key(i))] != 0 {
			c.deleted[i], c.named[i] = len(c.sent), false
		}
	}
	if err := c.s.disk.Log.Sync(); err != nil {
		c.t.Fatalf("%v", err)
	}
	c.acked = len(c.sent)
}

// crashInFlush goes on from what a crash at a step of a flush leaves.
func (c *churn) crashInFlush() {
	c.t.Helper()
	c.durable(c.s.disk.Log.Sync)
	step := flush.StepCaptured + c.r.IntN(flush.StepLogTrimmed-flush.StepCaptured+1)
	var clone *vfs.MemFS
	atSteps(c.s, func(n int) {
		if n == step && clone == nil {
			clone = c.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.r.IntN(101), RNG: c.r})
		}
	})
	c.flush()
	if clone == nil { // a flush without a segment
		clone = c.fs.CrashClone(vfs.CrashCloneCfg{})
	}
	c.s.Crash()
	c.fs = clone
	c.open()
	c.check()
}

// received returns how many points the account has: all that was durable, and
// others that were sent (I1, I3).
func (c *churn) received() int {
	c.t.Helper()
	info, err := c.s.BucketByName("b")
	if err != nil {
		c.t.Fatalf("%v", err)
	}
	counts := c.s.Account().Total(info.ID)
	n := int(counts.ReceivedPoints())
	if n > len(c.sent) || n < c.acked {
		c.t.Fatalf("the account holds %d points of %d, of which %d were durable", n, len(c.sent), c.acked)
	}
	return n
}

// check compares every slot of every series, and the list of names. After a crash
// there is what was durable, and of the points behind that the first ones of each
// place: more is not promised of points in random order. They are as many as the
// account says, and sent is without the others from then on.
func (c *churn) check() {
	c.t.Helper()
	lo := int64(epoch - 1000)
	if c.ttl > 0 {
		lo = max(lo, c.clock.Now().Unix()-c.ttl)
	}
	n := c.received() - c.acked
	is := make([][]uint64, c.batches[len(c.batches)-1].past)
	for i := range is {
		is[i] = readAll(c.t, c.s, "b", i, lo, int(c.clock.Now().Unix()-lo)+1)
	}
	left, ok := survivors(c.sent[c.acked:], n, c.state(c.acked, lo), func(p place) (uint64, bool) {
		if p.slot < lo {
			return 0, false
		}
		return is[p.series][p.slot-lo], true
	})
	if !ok {
		c.t.Fatalf("no crash leaves what is there of %d points, %d of them durable, when the account "+
			"has %d more", len(c.sent), c.acked, n)
	}
	there := c.sent[:c.acked:c.acked]
	for i, p := range c.sent[c.acked:] {
		if left[i] {
			there = append(there, p)
		}
	}
	c.sent = there
	want := c.state(len(c.sent), lo)
	names := make(map[int]bool)
	for i := range is {
		for k, w := range is[i] {
			at := place{i, lo + int64(k)}
			if w != want[at] {
				c.t.Fatalf("series %d slot epoch%+d holds %x, want %x after %d points", i, at.slot-epoch, w,
					want[at], len(c.sent))
			}
			names[i] = names[i] || w != 0
		}
	}
	c.checkNames(names)
	if names, damaged := c.s.Damage(); damaged != 0 {
		c.t.Fatalf("damage: %v", names)
	}
	if lost := c.s.Account().Losses(); len(lost) > 0 {
		c.t.Fatalf("lost: %v", lost)
	}
}

// state is what the first n points that were sent, and not deleted since, leave from
// slot lo on.
func (c *churn) state(n int, lo int64) map[place]uint64 {
	state := make(map[place]uint64)
	for i, p := range c.sent[:n] {
		if i >= c.deleted[p.series] && p.slot >= lo {
			state[place{p.series, p.slot}] = p.word
		}
	}
	return state
}

// checkNames checks that every series with points is listed once. Series that were never sent,
// were deleted, or have expired and were not sent again must not be listed.
func (c *churn) checkNames(want map[int]bool) {
	c.t.Helper()
	names := c.names()
	for i := range c.gone {
		if names[string(key(i))] != 0 {
			c.t.Fatalf("series %d is listed: it had expired, and was not sent since", i)
		}
	}
	for i, has := range want {
		if has && names[string(key(i))] != 1 {
			c.t.Fatalf("series %d is listed %d times", i, names[string(key(i))])
		}
	}
	sent := make(map[string]bool)
	for i, ok := range c.named {
		sent[string(key(i))] = ok
	}
	for name := range names {
		if !sent[name] {
			c.t.Fatalf("%q is listed and was never sent, or is deleted", name)
		}
	}
	if st := c.s.Stats(); st.Series != int64(len(names)) {
		c.t.Fatalf("%d series are counted, %d listed", st.Series, len(names))
	}
}

var churnSteps = []string{"round", "round", "turnover", "turnover", "return", "delete", "delete",
	"wait", "flush", "merge", "sync",
	"crash", "crash in flush", "lose catalogue", "reopen", "end of all"}

// endOfAll lets all series fall silent until none is left, where they expire.
func (c *churn) endOfAll() {
	c.t.Helper()
	for i := range c.batches {
		c.batches[i].live = false
	}
	c.flush()
	if c.ttl > 0 {
		c.pass(24 * time.Hour)
	}
	for range 2 {
		if _, err := c.s.Merge(context.Background()); err != nil {
			c.t.Fatalf("merge: %v", err)
		}
	}
	if st := c.s.Stats(); c.ttl > 0 && st.Series != 0 {
		c.t.Fatalf("%d series are left when all have expired", st.Series)
	}
	c.flush()
}

// However series begin, fall silent, come back, are deleted and expire beside flushes, merges,
// restarts and crashes, every point is read under the name it was sent with, and
// the account and the list of names are those of what was sent.
func TestChurnKeepsEveryPointWithItsName(t *testing.T) {
	t.Parallel()
	reused, forgotten := int64(0), int64(0)
	rapid.Check(t, func(t *rapid.T) {
		c := newChurn(t, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3)),
			rapid.Bool().Draw(t, "timestamps"), rapid.SampledFrom([]int64{0, 0, 9_000}).Draw(t, "ttl"))
		defer func() { c.s.Crash() }()
		c.born(200)
		c.born(56)
		c.round()
		for range rapid.IntRange(1, 16).Draw(t, "steps") {
			switch rapid.SampledFrom(churnSteps).Draw(t, "step") {
			case "round":
				c.pass(time.Duration(1+c.r.IntN(200)) * time.Second)
				c.round()
			case "turnover":
				c.turn(false)
				c.pass(3 * time.Minute)
				c.flush()
				c.born(40 + c.r.IntN(40))
				c.round()
			case "return":
				c.turn(true)
				c.round()
			case "flush":
				c.flush()
			case "merge":
				if _, err := c.s.Merge(context.Background()); err != nil {
					t.Fatal(err)
				}
			case "sync":
				c.durable(c.s.disk.Log.Sync)
			case "delete":
				c.delete()
			case "wait":
				if c.ttl > 0 {
					c.pass(2 * time.Hour)
				}
			case "end of all":
				c.endOfAll()
			case "crash":
				c.crash(c.r.IntN(101))
			case "crash in flush":
				c.crashInFlush()
			case "lose catalogue":
				c.loseCatalogue()
			case "reopen":
				c.durable(func() error { return c.s.Close() })
				c.open()
				c.checkNames(nil)
			}
			st := c.s.Stats()
			reused, forgotten = max(reused, st.Inactive.Deactivations),
				max(forgotten, st.Deleted.Series+st.Deleted.Expired)
		}
		report, err := NewOperations(c.s).Check(context.Background(), fsck.Options{})
		if err != nil || report.Damaged > 0 {
			t.Fatalf("check: %v, %v", report.Damages, err)
		}
		c.check()
		c.crash(c.r.IntN(101))
	})
	if reused == 0 || forgotten == 0 {
		t.Errorf("%d series lost their columns to others, %d were deleted or expired", reused, forgotten)
	}
}

// Series that are replaced leave their columns to those that follow them: the
// number of groups stays what the live ones need.
func TestChurnLeavesTheNumberOfGroups(t *testing.T) {
	t.Parallel()
	c := newChurn(t, rand.New(rand.NewPCG(1, 1)), false, 0)
	defer func() { c.s.Crash() }()
	const live, rounds = 8, 20 // batches of an eighth of two groups
	for range live {
		c.born(head.Width * 2 / live)
	}
	for i := range rounds {
		c.round()
		c.pass(3 * time.Minute)
		c.flush()
		c.batches[i].live = false
		c.born(head.Width * 2 / live)
	}
	c.round()
	st := c.s.Stats()
	if st.Groups > 4 || st.Inactive.Series < (rounds-live)*head.Width*2/live/2 {
		t.Errorf("%d groups for %d series at a time; %d of %d series have no column", st.Groups,
			2*head.Width, st.Inactive.Series, st.Series)
	}
	c.check()
	c.crash(0)
	for _, b := range []int{0, 3, rounds - 1} { // and they come back
		c.batches[b].live = true
	}
	c.round()
	c.check()
}

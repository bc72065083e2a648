package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/tags"
)

func tagOptions(fs vfs.FS, clock *testClock) Options {
	o := testOptions(fs, clock)
	byHand(&o)
	o.mergeTags = 1 << 40
	return o
}

// TestTagsAfterCrashes: whatever is done, and however often the node crashes or ends, the tags are
// those after a prefix of the changes, which has all that were durable.
func TestTagsAfterCrashes(t *testing.T) {
	t.Parallel()
	for range 30 {
		seed := rand.Uint64()
		testTagsAfterCrashes(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// tagRun is a store under random changes, and the states that it may have behind a crash.
type tagRun struct {
	t      *testing.T
	seed   uint64
	r      *rand.Rand
	clock  *testClock
	mem    *vfs.MemFS
	s      *Store
	states []drivetest.TagModel // after each change that may not be durable, the first one is
}

func testTagsAfterCrashes(t *testing.T, seed uint64) {
	x := &tagRun{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 2)), clock: newTestClock(),
		mem: vfs.NewCrashableMem(), states: []drivetest.TagModel{{}}}
	x.s = mustOpen(t, tagOptions(x.mem, x.clock))
	for range 120 {
		x.clock.Advance(time.Duration(x.r.IntN(3)) * time.Second) // the clock may stand still
		x.step()
		x.last().Same(t, x.s, fmt.Sprint("seed ", seed))
	}
	x.s.Crash()
}

func (x *tagRun) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatalf("seed %d: %v", x.seed, err)
	}
}

func (x *tagRun) last() drivetest.TagModel { return x.states[len(x.states)-1] }

// durable notes that all that was done is.
func (x *tagRun) durable() { x.states = []drivetest.TagModel{x.last()} }

func (x *tagRun) step() {
	ctx, b := context.Background(), drivetest.Bucket(x.t, x.s, string(rune('a'+x.r.IntN(2))))
	next := x.last().Clone()
	switch n := x.r.IntN(20); {
	case n < 10:
		x.change(b, next)
		x.states = append(x.states, next)
	case n < 12:
		_, err := x.s.Flush(ctx)
		x.must(err)
		x.durable()
	case n < 13:
		x.must(x.s.tags.Merge(ctx, true))
	case n < 14:
		w := mustSession(x.t, x.s, b.Name)
		w.Point(key(x.r.IntN(4)), uint64(x.clock.Now().Unix()), point.FromInt(1))
		x.must(w.Close())
	case n < 15:
		k := key(x.r.IntN(4))
		// it has points
		if _, err := x.s.DeleteSeries(ctx, b.Name, deletion.Choice{Key: k}, false); err == nil {
			next.Drop(b.Name, k)
			x.states = []drivetest.TagModel{next}
		}
	case n < 16 && x.r.IntN(3) == 0:
		x.must(x.s.DeleteBucket(b.Name))
		next.Drop(b.Name, nil)
		x.states = []drivetest.TagModel{next}
	case n < 18:
		x.must(x.s.disk.Log.Sync())
		x.durable()
	default:
		x.restart()
	}
}

// change makes some changes of a bucket, which are one record.
func (x *tagRun) change(b buckets.Info, next drivetest.TagModel) {
	var list []tags.Change
	for range 1 + x.r.IntN(3) {
		c := drivetest.SetTag(b, x.r.IntN(4), string(rune('p'+x.r.IntN(3))), fmt.Sprint(x.r.IntN(100)))
		switch x.r.IntN(4) {
		case 0:
			c.Removed, c.Set = []tags.TagName{c.Set[0].TagName}, nil
		case 1:
			c.Replace = true
		}
		list = append(list, c)
		next.Apply(b.Name, &c)
	}
	drivetest.Tag(x.t, x.s, list...)
}

// restart ends the node, or kills it, and looks what the next start finds.
func (x *tagRun) restart() {
	if x.r.IntN(3) == 0 {
		x.must(x.s.Close())
		x.durable()
	} else {
		after := x.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: x.r.IntN(101),
			RNG: rand.New(rand.NewPCG(x.r.Uint64(), 3))})
		x.s.Crash()
		x.mem = after
	}
	x.s = mustOpen(x.t, tagOptions(x.mem, x.clock))
	got := drivetest.TagsOf(x.t, x.s)
	if !slices.ContainsFunc(x.states, got.Equal) {
		x.t.Fatalf("seed %d: after a start there is\n%v\nwhich is none of %d states, the last\n%v",
			x.seed, got, len(x.states), x.last())
	}
	if names, n := x.s.Damage(); n > 0 {
		x.t.Fatalf("seed %d: a crash is named as damage: %q", x.seed, names)
	}
	x.states = []drivetest.TagModel{got}
}

// TestCrashInAFlushOfTags: all tags that were durable are there behind a crash after every step of
// a flush, and after a merge.
func TestCrashInAFlushOfTags(t *testing.T) {
	t.Parallel()
	steps := []int{flush.StepCaptured, flush.StepLogSynced, flush.StepSegmentSynced,
		flush.StepSidesSynced, flush.StepCatalogue, flush.StepCommitted, flush.StepLogTrimmed}
	for _, step := range steps {
		clock, mem := newTestClock(), vfs.NewCrashableMem()
		s := mustOpen(t, tagOptions(mem, clock))
		b, want := drivetest.Bucket(t, s, "b"), drivetest.TagModel{}
		var after *vfs.MemFS
		for round := range 3 {
			c := drivetest.SetTag(b, round, "host", fmt.Sprint("web", round))
			drivetest.Tag(t, s, c)
			want.Apply("b", &c)
			x := mustSession(t, s, "b")
			x.Point(key(round), uint64(clock.Now().Unix()), point.FromInt(1))
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			if err := s.disk.Log.Sync(); err != nil {
				t.Fatal(err)
			}
			atSteps(s, func(n int) {
				if n == step {
					after = mem.CrashClone(vfs.CrashCloneCfg{})
				}
			})
			if _, err := s.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
			if after == nil {
				t.Fatalf("step %d did not come", step)
			}
			again := mustOpen(t, tagOptions(after, clock))
			want.Same(t, again, fmt.Sprintf("step %d of flush %d", step, round))
			if names, n := again.Damage(); n > 0 {
				t.Errorf("step %d: damage %q", step, names)
			}
			again.Crash()
			after = nil
		}
		s.Crash()
	}
}

package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/tags"
)

// tagModel is the naive truth: the value of each tag, by bucket, series and name.
type tagModel map[[3]string]string

func (m tagModel) clone() tagModel {
	c := make(tagModel, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

func (m tagModel) equal(o tagModel) bool {
	if len(m) != len(o) {
		return false
	}
	for k, v := range m {
		if w, ok := o[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// apply does what a change says, which is newer than all before.
func (m tagModel) apply(bucket string, c *tags.Change) {
	gone := func(k [3]string) bool { return k[0] == bucket && k[1] == string(c.Key) }
	if c.Replace {
		for k := range m {
			if gone(k) {
				delete(m, k)
			}
		}
	}
	for _, t := range c.Removed {
		delete(m, [3]string{bucket, string(c.Key), string(t.Name)})
	}
	for _, t := range c.Set {
		m[[3]string{bucket, string(c.Key), string(t.Name)}] = string(t.Value)
	}
}

func (m tagModel) drop(bucket string, key []byte) {
	for k := range m {
		if k[0] == bucket && (key == nil || k[1] == string(key)) {
			delete(m, k)
		}
	}
}

// tagsOf returns what the store has.
func tagsOf(t fataler, s *Store) tagModel {
	t.Helper()
	names := make(map[uint64]string)
	for _, b := range s.Buckets() {
		names[b.ID] = b.Name
	}
	m := make(tagModel)
	err := s.Tags().Index().Walk(func(c *tags.Change) error {
		for _, tag := range c.Set {
			m[[3]string{names[c.Bucket], string(c.Key), string(tag.Name)}] = string(tag.Value)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("walk: %v", err)
	}
	return m
}

func (m tagModel) String() string {
	var lines []string
	for k, v := range m {
		lines = append(lines, fmt.Sprintf("%s %x %s=%s", k[0], k[1], k[2], v))
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

func setTag(b buckets.Info, series int, name, value string) tags.Change {
	return tags.Change{Bucket: b.ID, Key: key(series), Collection: []byte("c"),
		Set: []tags.Tag{{TagName: tags.TagName{Name: []byte(name)}, Value: []byte(value)}}}
}

func mustTag(t fataler, s *Store, list ...tags.Change) {
	t.Helper()
	a, err := s.Tags().Apply(context.Background(), list)
	if err != nil || len(a.Refused) > 0 {
		t.Fatalf("apply: %+v, %v", a, err)
	}
}

func tagBucket(t fataler, s *Store, name string) buckets.Info {
	t.Helper()
	b, err := s.EnsureBucket(name)
	if err != nil {
		t.Fatalf("bucket: %v", err)
	}
	return b
}

func tagOptions(fs vfs.FS, clock *testClock) Options {
	o := testOptions(fs, clock)
	byHand(&o)
	o.mergeTags = 1 << 40
	return o
}

// same fails the test unless the store has the tags of a model.
func (m tagModel) same(t fataler, s *Store, when string) {
	t.Helper()
	if got := tagsOf(t, s); !got.equal(m) {
		t.Fatalf("%s:\nhas  %v\nwant %v", when, got, m)
	}
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
	states []tagModel // after each change that may not be durable, the first one is
}

func testTagsAfterCrashes(t *testing.T, seed uint64) {
	x := &tagRun{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 2)), clock: newTestClock(),
		mem: vfs.NewCrashableMem(), states: []tagModel{{}}}
	x.s = mustOpen(t, tagOptions(x.mem, x.clock))
	for range 120 {
		x.clock.Advance(time.Duration(x.r.IntN(3)) * time.Second) // the clock may stand still
		x.step()
		x.last().same(t, x.s, fmt.Sprint("seed ", seed))
	}
	x.s.Crash()
}

func (x *tagRun) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatalf("seed %d: %v", x.seed, err)
	}
}

func (x *tagRun) last() tagModel { return x.states[len(x.states)-1] }

// durable notes that all that was done is.
func (x *tagRun) durable() { x.states = []tagModel{x.last()} }

func (x *tagRun) step() {
	ctx, b := context.Background(), tagBucket(x.t, x.s, string(rune('a'+x.r.IntN(2))))
	next := x.last().clone()
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
			next.drop(b.Name, k)
			x.states = []tagModel{next}
		}
	case n < 16 && x.r.IntN(3) == 0:
		x.must(x.s.DeleteBucket(b.Name))
		next.drop(b.Name, nil)
		x.states = []tagModel{next}
	case n < 18:
		x.must(x.s.disk.Log.Sync())
		x.durable()
	default:
		x.restart()
	}
}

// change makes some changes of a bucket, which are one record.
func (x *tagRun) change(b buckets.Info, next tagModel) {
	var list []tags.Change
	for range 1 + x.r.IntN(3) {
		c := setTag(b, x.r.IntN(4), string(rune('p'+x.r.IntN(3))), fmt.Sprint(x.r.IntN(100)))
		switch x.r.IntN(4) {
		case 0:
			c.Removed, c.Set = []tags.TagName{c.Set[0].TagName}, nil
		case 1:
			c.Replace = true
		}
		list = append(list, c)
		next.apply(b.Name, &c)
	}
	mustTag(x.t, x.s, list...)
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
	got := tagsOf(x.t, x.s)
	if !slices.ContainsFunc(x.states, got.equal) {
		x.t.Fatalf("seed %d: after a start there is\n%v\nwhich is none of %d states, the last\n%v",
			x.seed, got, len(x.states), x.last())
	}
	if names, n := x.s.Damage(); n > 0 {
		x.t.Fatalf("seed %d: a crash is named as damage: %q", x.seed, names)
	}
	x.states = []tagModel{got}
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
		b, want := tagBucket(t, s, "b"), tagModel{}
		var after *vfs.MemFS
		for round := range 3 {
			c := setTag(b, round, "host", fmt.Sprint("web", round))
			mustTag(t, s, c)
			want.apply("b", &c)
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
			want.same(t, again, fmt.Sprintf("step %d of flush %d", step, round))
			if names, n := again.Damage(); n > 0 {
				t.Errorf("step %d: damage %q", step, names)
			}
			again.Crash()
			after = nil
		}
		s.Crash()
	}
}

// While memory is short, nothing new is tagged, by line with the figures and the remedy; what is
// known is tagged again, removed, and all comes when there is memory again.
func TestTagsWhileMemoryIsShort(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	used := int64(0)
	o := tagOptions(vfs.NewMem(), clock)
	o.Memory = memory.New(1<<30, clock.Now, nil)
	o.Memory.Add(memory.Pool{Name: "test", Use: func() int64 { return atomic.LoadInt64(&used) }})
	s := mustOpen(t, o)
	defer s.Crash()
	b := tagBucket(t, s, "b")
	mustTag(t, s, setTag(b, 1, "host", "a"))
	set := func(n int64) {
		atomic.StoreInt64(&used, n)
		clock.Advance(10 * time.Second)
		o.Memory.Look()
	}
	set(900 << 20)
	known, gone := setTag(b, 1, "host", "b"), setTag(b, 1, "host", "")
	gone.Set, gone.Removed = nil, []tags.TagName{known.Set[0].TagName}
	list := []tags.Change{setTag(b, 2, "host", "a"), setTag(b, 1, "dc", "eu"), known, gone}
	a, err := s.Tags().Apply(context.Background(), list)
	if err != nil || a.Changed != 2 || len(a.Refused) != 2 || a.Refused[0].At != 0 ||
		a.Refused[1].At != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	for _, r := range a.Refused {
		if text := r.Err.Error(); !errors.As(r.Err, new(*memory.Refusal)) ||
			!strings.Contains(text, "of 1024 MiB") || !strings.Contains(text, "memory.limit") {
			t.Errorf("refused as %q", text)
		}
	}
	if st := s.Tags().Stats(); st.NoMemory != 2 || st.Invalid != 0 {
		t.Errorf("%+v", st)
	}
	if _, err := (tagstore.Tagger{Of: s.Tags()}).Tag(context.Background(), list[:2],
		false); !errors.As(err, new(*memory.Refusal)) {
		t.Errorf("a protocol is told %v", err)
	}
	set(0)
	mustTag(t, s, list[:2]...)
}

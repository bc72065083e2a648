package buckets

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type liveBucket struct{ info Info }

func (b *liveBucket) Info() Info { return b.info }

// A registry equals a list of what was created and not deleted, and no id is given
// twice, however the clock goes.
func TestRegistryEqualsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, list := NewRegistry[*liveBucket](), []*liveBucket(nil)
		given := map[uint64]bool{}
		now := time.Unix(1000, 0)
		byName := func(name string) int {
			return slices.IndexFunc(list, func(b *liveBucket) bool { return b.info.Name == name })
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
			at := byName(name)
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				info := Info{Name: name, Resolution: rapid.Int64Range(1, 2).Draw(t, "resolution"), PPF: 1}
				info, err := r.Create(info, func(i Info) error {
					list = append(list, &liveBucket{i})
					r.Add(list[len(list)-1])
					return nil
				})
				if (at >= 0) != errors.Is(err, ErrExists) || at < 0 && (err != nil || given[info.ID]) {
					t.Fatalf("creating %s, which is there: %v: %+v, %v", name, at >= 0, info, err)
				}
				given[info.ID] = true
			case 1:
				if at < 0 {
					continue
				}
				now = now.Add(time.Duration(rapid.IntRange(-2, 2).Draw(t, "seconds")) * time.Second)
				r.Remove(list[at], r.Deletion(list[at], now))
				if !r.WasDeleted(list[at].info.ID) {
					t.Fatal("a deletion is not known")
				}
				list = slices.Delete(list, at, at+1)
			default:
				if b, err := r.ByName(name); (err == nil) != (at >= 0) || err == nil && b != list[at] ||
					err != nil && !errors.Is(err, ErrUnknown) {
					t.Fatalf("%s: %v, %v", name, b, err)
				}
			}
		}
		sort.Slice(list, func(i, j int) bool { return list[i].info.Name < list[j].info.Name })
		if got := r.All(); !slices.Equal(got, list) {
			t.Fatalf("%v, want %v", got, list)
		}
		for _, b := range list {
			if got, err := r.ByIdentity(b.info); err != nil || got != b {
				t.Fatalf("%+v: %v", b.info, err)
			}
			if _, err := r.ByIdentity(Info{ID: b.info.ID + 1,
				Name: b.info.Name}); !errors.Is(err, ErrUnknown) {
				t.Fatal(err)
			}
		}
	})
}

// Deletions of which nothing is known may have been of any name.
func TestLostDeletions(t *testing.T) {
	id := func(r *Registry[*liveBucket]) uint64 {
		info, err := r.Create(Info{Name: "a", Resolution: 1}, func(Info) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return info.ID
	}
	r, fresh := NewRegistry[*liveBucket](), id(NewRegistry[*liveBucket]())
	r.DeletionsLost(time.Unix(5, 0))
	if id(r) == fresh {
		t.Error("the id is that of a name that was never deleted")
	}
	again := NewRegistry[*liveBucket]()
	again.RaiseDeletionsFrom(r.DeletionsFrom())
	again.RaiseDeletionsFrom(1)
	if id(again) != id(r) {
		t.Error("the next start gives another id")
	}
}

func TestIDsThatAreEqualByChance(t *testing.T) {
	r := NewRegistry[*liveBucket]()
	r.Hash = func(string, int64, bool, uint64) uint64 { return 7 }
	add := func(i Info) error { r.Add(&liveBucket{i}); return nil }
	if _, err := r.Create(Info{Name: "a"}, add); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Create(Info{Name: "b"}, add); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "bucket 'a' has") {
		t.Error(err)
	}
	r.Remove(r.Get("a"), Deletion{ID: 7, Name: "a"})
	if _, err := r.Create(Info{Name: "b"}, add); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "deleted bucket") {
		t.Error(err)
	}
}

func TestValidate(t *testing.T) {
	f := func(change func(*Info), ok bool) {
		t.Helper()
		b := Info{Name: "b", Resolution: 1000, PPF: 1}
		change(&b)
		if err := b.Validate(); (err == nil) != ok || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", b, err)
		}
	}
	f(func(*Info) {}, true)
	for _, n := range []int{0, 1, 255, 256} {
		f(func(b *Info) { b.Name = strings.Repeat("x", n) }, n == 1 || n == 255)
	}
	for _, n := range []int64{math.MinInt64, -1, 0, 1, MaxPoints, MaxPoints + 1} {
		f(func(b *Info) { b.TTL = n }, n >= 0 && n <= MaxPoints)
		f(func(b *Info) { b.PPF = n }, n > 0 && n <= MaxPoints)
		f(func(b *Info) { b.Grace = n }, n >= 0)
		f(func(b *Info) { b.Resolution = n }, n == 1)
	}
	f(func(b *Info) { b.Resolution = MaxResolution }, true)
	f(func(b *Info) { b.Resolution = MaxResolution + 1 }, false)
}

// TestTimestampLimits: a timestamp may be as far behind its slot as ahead of it.
func TestTimestampLimits(t *testing.T) {
	b := Info{Resolution: 1000, HPTS: true}
	for _, slot := range []uint64{1_800_000_000, 40_000_000} {
		begin := b.SlotBegin(slot)
		for _, c := range []struct {
			from int64
			ok   bool
		}{
			{0, true}, {1, true}, {-1, true}, {1<<55 - 1, true}, {-1<<55 + 1, true}, {1 << 55, false},
			{-1 << 55, false},
			{1<<55 + 1, false}, {-1<<55 - 1, false}, {1 << 60, false}, {-1 << 60, false},
		} {
			w, ok := b.TimestampWord(slot, begin+uint64(c.from))
			if ok != c.ok || ok && b.Timestamp(slot, w) != begin+uint64(c.from) {
				t.Errorf("%d ns from slot %d: %v, %d", c.from, slot, ok, b.Timestamp(slot, w)-begin)
			}
		}
	}
}

func TestTimestamps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Info{Resolution: rapid.Int64Range(1, MaxResolution).Draw(t, "resolution")}
		slot, timestamp := rapid.Uint64Range(0, MaxSlot).Draw(t, "slot"),
			rapid.Uint64().Draw(t, "timestamp")
		off := int64(timestamp - b.SlotBegin(slot))
		w, ok := b.TimestampWord(slot, timestamp)
		if fits := off >= -1<<55 && off < 1<<55; ok != fits {
			t.Fatalf("%d ns from its slot: %v", off, ok)
		}
		if got := b.Timestamp(slot, w); ok && got != timestamp {
			t.Fatal(fmt.Sprint(got, " is not ", timestamp))
		}
	})
}

package events

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
)

// model is the naive store: a list of what was stored.
type model struct {
	events map[string][]Event
	counts map[string]*account.Counts
}

// write stores what is new, and says what became of each event. ids were given by the store under
// test where they had been zero.
func (m *model) write(b buckets.Info, list []Event, given, arrived []bool) (c account.Counts) {
	for i, e := range list {
		stored := m.events[b.Name]
		newest := int64(0)
		repeat := false
		for _, o := range stored {
			newest = max(newest, o.Time)
			repeat = repeat || o.Time == e.Time && o.ID == e.ID
		}
		switch {
		case e.Time < 1:
			c.Refused[account.BadTimestamp]++
			continue
		case len(e.Body) > MaxBody:
			c.Refused[account.TooLarge]++
			continue
		case b.TTL > 0 && e.Time < now-b.TTL*b.Resolution*1e6:
			c.Refused[account.Expired]++
			continue
		case repeat && !given[i]:
			c.Duplicate++
			continue
		case newest-e.Time > b.Grace && !arrived[i]:
			c.Late++
		default:
			c.Accepted++
		}
		m.events[b.Name] = append(stored, e)
	}
	return c
}

func (m *model) read(bucket string, start, end int64) (list []Event) {
	for _, e := range m.events[bucket] {
		if e.Time >= start && e.Time < end {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b Event) int { return eventfile.Compare(&a, &b) })
	return list
}

// times are few, so that events meet; some lie near the ends of what is allowed.
func drawTime(t *rapid.T) int64 {
	base := rapid.SampledFrom([]int64{now - 1e9, now - 1e12, now, 5, now + 3600e9, now - 101e9}).Draw(
		t, "base")
	return base + rapid.Int64Range(-5, 40).Draw(t, "offset")*rapid.SampledFrom([]int64{
		1, 1e6, 1e9}).Draw(t, "unit")
}

func drawList(t *rapid.T) (list []Event, zero []bool) {
	for range rapid.IntRange(0, 30).Draw(t, "events") {
		e := Event{Time: drawTime(t),
			Body: make([]byte, rapid.SampledFrom([]int{0, 1, 20, 3000}).Draw(t, "length"))}
		for i := range e.Body {
			e.Body[i] = byte(i * int(e.Time))
		}
		if rapid.Bool().Draw(t, "own id") {
			e.ID[rapid.IntRange(0, 15).Draw(t, "byte")] = byte(rapid.IntRange(1, 3).Draw(t, "value"))
		}
		list, zero = append(list, e), append(zero, e.ID == ID{})
	}
	return list, zero
}

// TestTheStoreIsTheModel writes, flushes, gives flushes up, merges, crashes and replays at any
// time, and compares reads, counts per step and the account with the naive model.
func TestTheStoreIsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		infos := []buckets.Info{{Name: "a", Grace: 5e9}, {Name: "b", TTL: 100}, {Name: "c"}}
		n := newNode(t, infos...)
		m := &model{events: make(map[string][]Event), counts: make(map[string]*account.Counts)}
		flushed := 0 // position of the log
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		write := func(t *rapid.T) {
			b := n.buckets[name.Draw(t, "bucket")]
			list, zero := drawList(t)
			arrived := make([]bool, len(list))
			for i := range list {
				arrived[i] = list[i].Time == 0 || list[i].Time > now+int64(time.Minute)
			}
			got := n.write(b.Name, list)
			if want := m.write(b, list, zero, arrived); got.Counts != want {
				t.Fatalf("counts %+v, want %+v", got.Counts, want)
			}
			if m.counts[b.Name] == nil {
				m.counts[b.Name] = new(account.Counts)
			}
			m.counts[b.Name].Add(&got.Counts)
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": write, "write more": write, "write again": write,
			"flush":         func(*rapid.T) { n.flush(false); flushed = len(n.log) },
			"flush in vain": func(*rapid.T) { n.flush(true) },
			"merge":         func(*rapid.T) { n.merge() },
			"crash": func(t *rapid.T) {
				from := rapid.IntRange(0, flushed).Draw(t, "from") // what files have may be replayed once more
				n.replay(from)
			},
			"account": func(t *rapid.T) {
				n.replay(0)
				for name, want := range m.counts {
					if got := n.account.Total(n.buckets[name].ID); got != *want {
						t.Fatalf("account of %s: %+v, want %+v", name, got, *want)
					}
				}
			},
			"": func(t *rapid.T) {
				b := name.Draw(t, "bucket")
				start, end := int64(math.MinInt64), int64(math.MaxInt64)
				if rapid.Bool().Draw(t, "part") {
					start, end = drawTime(t), drawTime(t)
				}
				got, gaps := n.read(b, start, end)
				if want := m.read(b, start, end); !same(got, want) || len(gaps) > 0 {
					t.Fatalf("%d events, want %d; gaps %v", len(got), len(want), gaps)
				}
				back, _ := n.readBack(b, start, end)
				if slices.Reverse(back); !same(back, got) {
					t.Fatalf("backwards %d events, want %d", len(back), len(got))
				}
				checkExtent(t, n, b, start, end, int64(len(got)))
				checkCount(t, n, m, b)
				if len(n.damage) > 0 {
					t.Fatal(n.damage)
				}
			},
		})
		n.flush(false)
		if n.pending != 0 {
			t.Fatalf("%d bytes wait after a flush of everything", n.pending)
		}
	})
}

// checkExtent demands that the extent of a range names no more in memory than the events that are
// in it, and all of them where it names no blocks.
func checkExtent(t *rapid.T, n *node, bucket string, start, end, events int64) {
	x, err := n.s.Extent(bucket, start, end)
	if err != nil || x.InMemory > events || x.Blocks == 0 && x.InMemory < events ||
		(x.Blocks > 0) != (x.Files > 0 && x.Bytes > 0) {
		t.Fatalf("extent %+v of %d events: %v", x, events, err)
	}
}

func checkCount(t *rapid.T, n *node, m *model, bucket string) {
	start := drawTime(t)
	step := rapid.SampledFrom([]int64{1, 7, 1e6, 1e9, 60e9}).Draw(t, "step")
	end := start + step*rapid.Int64Range(0, 50).Draw(t, "steps") - rapid.Int64Range(0, step-1).Draw(t,
		"cut")
	got, _, err := n.s.Count(context.Background(), bucket, start, end, step)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]int64, len(got))
	for _, e := range m.read(bucket, start, end) {
		want[(e.Time-start)/step]++
	}
	if !slices.Equal(got, want) {
		t.Fatalf("counts %v, want %v", got, want)
	}
}

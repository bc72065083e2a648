package replication

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// incarnationStore is a blank store that knows of deletions.
type incarnationStore struct {
	emptyStore
	incarnations map[metric.SeriesID]uint64
	lives        uint64
}

func (r *incarnationStore) Incarnation(id metric.SeriesID) uint64 { return r.incarnations[id] }
func (r *incarnationStore) Lives() uint64                         { return r.lives }

func (r *incarnationStore) raise(id metric.SeriesID) {
	r.lives++
	r.incarnations[id] = r.lives
}

// singleCore returns the protocol of the first of three nodes, of which it reaches the others.
func singleCore(tb fataler, copies int, s Store) *Core {
	config := ring.Config{Number: 1, Partitions: 16, Copies: copies}
	for n := range byte(3) {
		config.Members = append(config.Members, ring.Member{ID: copyID(n + 1), Name: fmt.Sprint(n),
			State:    ring.Active,
			Tokens:   []uint32{uint32(n) << 30, uint32(n)<<30 + 1<<29},
			Protocol: ring.Protocol{Min: 1, Max: 1}})
	}
	view, err := ring.New(config)
	if err != nil {
		tb.Fatal(err)
	}
	c := New(Config{Self: copyID(1), Boot: 1, W: 1, R: 1, Timeout: 1000, Resend: 100,
		CompareMS: 1 << 40}, s, view, Time{})
	c.Peer(Time{}, copyID(2), true)
	c.Peer(Time{}, copyID(3), true)
	c.asked = nil
	c.Take()
	return c
}

type fataler interface{ Fatal(args ...any) }

// writes returns the writes that are sent.
func writes(c *Core) (list []Write, to []ring.ID) {
	sends, _ := c.Take()
	for _, s := range sends {
		if w, ok := s.Message.(Write); ok {
			list, to = append(list, w), append(to, s.To)
		}
	}
	return list, to
}

// TestABatchIsDividedWhole: whatever the columns and rows of a batch are, each owner of a point
// gets it once, in the order of its series, and with the incarnation that is known; also when an
// owner goes down before it has answered.
func TestABatchIsDividedWhole(t *testing.T) {
	var series []metric.SeriesID
	for i := range 40 {
		series = append(series, metric.Series(1, fmt.Append(nil, i)))
	}
	rapid.Check(t, func(t *rapid.T) {
		store := &incarnationStore{incarnations: make(map[metric.SeriesID]uint64)}
		copies := rapid.IntRange(1, 3).Draw(t, "copies")
		c := singleCore(t, copies, store)
		groups := []*Group{{Series: series[:30]}, {Series: series[10:]}}
		for range rapid.IntRange(1, 6).Draw(t, "batches") {
			if rapid.IntRange(0, 2).Draw(t, "deleted") == 0 {
				store.raise(rapid.SampledFrom(series).Draw(t, "series"))
			}
			of := Batch{Bucket: 1}
			word := uint64(0)
			group := rapid.SampledFrom(groups).Draw(t, "group")
			for range rapid.IntRange(0, 5).Draw(t, "columns") {
				column := Column{Group: group, Slot: rapid.Uint64Range(1, 3).Draw(t, "slot")}
				n := len(group.Series)
				if rapid.Bool().Draw(t, "stretch") {
					column.From = rapid.IntRange(0, n-1).Draw(t, "from")
					n = rapid.IntRange(1, n-column.From).Draw(t, "words")
				}
				for range n {
					word++
					column.Words = append(column.Words, word)
				}
				of.Columns = append(of.Columns, column)
			}
			for range rapid.IntRange(0, 5).Draw(t, "rows") {
				word++
				of.Rows = append(of.Rows, Row{Series: rapid.SampledFrom(series).Draw(t, "row"), Slot: 1,
					Value: Value{Word: word}})
			}
			c.Submit(Time{}, 1, of)
			sent, to := writes(c)
			must(t, c, store, &of, sent, to)
			if rapid.Bool().Draw(t, "down") {
				down := copyID(3)
				c.Peer(Time{}, down, false)
				c.Peer(Time{}, copyID(2), false)
				again, here := writes(c)
				for i := range again {
					if len(again[i].Change.Further) > 0 && again[i].For != here[i] {
						t.Fatalf("a hint of several partitions: %+v", again[i].Key)
					}
				}
				mustBeKept(t, append(sent, again...), append(to, here...))
				c.Peer(Time{}, down, true)
				c.Peer(Time{}, copyID(2), true)
				c.Take()
			}
			c.Tick(Time{Steady: 1 << 40}) // its time is over
			c.Take()
			c.now = Time{}
		}
	})
}

// must fails unless writes bring each owner its points.
func must(t *rapid.T, c *Core, s Store, of *Batch, sent []Write, to []ring.ID) {
	type point struct {
		node ring.ID
		row  Row
	}
	var got, want []point
	for i, w := range sent {
		covered := append([]int{w.Change.Partition}, w.Change.Further...)
		if !slices.IsSorted(covered) || w.Key.Further != len(w.Change.Further) {
			t.Fatalf("partitions %v of %+v", covered, w.Key)
		}
		used := make(map[int]bool)
		for j, r := range w.Change.InRows().Rows {
			p := c.view.Partition(r.Series)
			used[p] = true
			if !slices.Contains(covered, p) || j < w.Change.Points()-len(w.Change.Rows) &&
				s.Incarnation(r.Series) > 0 {
				t.Fatalf("row %+v in partition %d, covered are %v", r, p, covered)
			}
			got = append(got, point{to[i], r})
		}
		if len(used) != len(covered) {
			t.Fatalf("%d of the partitions %v are used", len(used), covered)
		}
	}
	for _, r := range (Change{Columns: of.Columns, Rows: of.Rows}).InRows().Rows {
		r.Incarnation = s.Incarnation(r.Series)
		for _, id := range c.view.Owners(nil, c.view.Partition(r.Series), ring.Current, 0) {
			want = append(want, point{id, r})
		}
	}
	sort := func(list []point) { // by node and series; those of one stay in their order
		slices.SortStableFunc(list, func(a, b point) int {
			if n := slices.Compare(a.node[:], b.node[:]); n != 0 {
				return n
			}
			return slices.Compare(a.row.Series[:], b.row.Series[:])
		})
	}
	sort(got)
	sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("got %d points\n%v\nwant %d\n%v", len(got), got, len(want), want)
	}
}

// mustBeKept fails unless the first node, which alone is up, was sent all points that anybody was
// sent.
func mustBeKept(t *rapid.T, sent []Write, to []ring.ID) {
	have := make(map[Row]bool)
	for i, w := range sent {
		for _, r := range w.Change.InRows().Rows {
			have[r] = have[r] || to[i] == copyID(1)
		}
	}
	for r, kept := range have {
		if !kept {
			t.Fatalf("row %+v went only to nodes that are down", r)
		}
	}
}

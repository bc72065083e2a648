package tagging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
)

// world is some nodes, and a network that loses, delays and doubles what they say.
type world struct {
	t        *testing.T
	rng      *rand.Rand
	nodes    []*fake
	calm     bool          // the network does nothing wrong
	late     []lateMessage // pushes on their way
	acked    []tags.Change
	diskLost bool
}

type lateMessage struct {
	from, to int
	p        push
	change   *tags.Change // to be acknowledged when it has arrived
}

var errLost = errors.New("lost")

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 0))}
	for i := range 2 + w.rng.IntN(3) {
		f := newFake(byte(i+1), 1e18)
		f.known = i == 0 || w.rng.IntN(2) == 0
		f.x.o = f.options(w.ask)
		w.nodes = append(w.nodes, f)
	}
	return w
}

func (w *world) nodeAt(id ring.ID) *fake {
	return w.nodes[slices.IndexFunc(w.nodes, func(f *fake) bool { return f.id == id })]
}

// ask lets a request arrive, or not, or twice, and its reply come whole, cut, or not at all.
func (w *world) ask(to ring.ID, request []byte, part func([]byte) error) error {
	chance := func(n int) bool { return !w.calm && w.rng.IntN(n) == 0 }
	if chance(10) {
		return errLost
	}
	times := 1
	if chance(10) {
		times = 2
	}
	var parts [][]byte
	for range times {
		parts = nil
		err := w.nodeAt(to).x.serve(context.Background(), bytes.Clone(request), func(b []byte) error {
			for n := 0; n < len(b); { // parts are cut anywhere
				size := min(len(b)-n, 1+w.rng.IntN(200))
				parts = append(parts, bytes.Clone(b[n:n+size]))
				n += size
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, b := range parts {
		if chance(50) {
			return errLost
		}
		if err := part(b); err != nil {
			return err
		}
	}
	return nil
}

// change draws a change of one of a few series.
func (w *world) change() tags.Change {
	name := func() tags.TagName { return tags.TagName{Name: []byte{"abc"[w.rng.IntN(3)]}} }
	c := tags.Change{Bucket: bucket, Key: w.key(), Collection: []byte("c")}
	switch w.rng.IntN(8) {
	case 0:
		c.Leave = true
		return c
	case 1:
		c.Replace = true
	case 2, 3:
		c.Removed = []tags.TagName{name()}
		return c
	}
	c.Set = []tags.Tag{{TagName: name(), Value: fmt.Append(nil, w.rng.IntN(100))}}
	return c
}

func (w *world) key() []byte { return []byte{1, byte('a' + w.rng.IntN(6))} }

// step lets something happen.
func (w *world) step() {
	i := w.rng.IntN(len(w.nodes))
	f := w.nodes[i]
	switch w.rng.IntN(13) {
	case 0, 1, 2, 3:
		w.clientChanges(i)
	case 4:
		id := metric.Series(bucket, w.key())
		if f.known {
			f.delete(id, f.next())
			w.tellDeletions(i)
		}
	case 5, 6, 7:
		w.deliver()
	case 8:
		f.wall += uint64(w.rng.Int64N(7200e9)) - 3600e9 // a clock jumps
	case 9:
		f.crash()
		f.gone = nil
	case 10:
		if !w.diskLost && w.rng.IntN(4) == 0 {
			w.diskLost = true // W disks have what was acknowledged: one may go
			f.replay(nil)
			f.gone = nil
		}
	default:
		_ = w.compare(i, w.rng.IntN(len(w.nodes))) // it may fail at any point
	}
	for _, f := range w.nodes {
		f.wall += 1e9
	}
}

// clientChanges takes changes of a client, and tells the others of them.
func (w *world) clientChanges(i int) {
	f := w.nodes[i]
	if !f.known {
		return
	}
	list := []tags.Change{w.change()}
	a, _ := f.Apply(context.Background(), list) // it does not fail
	if w.rng.IntN(2) == 0 {
		_ = f.WaitDurable(context.Background(), a) // nor this
	}
	c, defined := copyOf(&list[0]), []byte("bucket")
	if w.rng.IntN(4) == 0 {
		defined = nil
	}
	for to := range w.nodes {
		if to != i {
			w.late = append(w.late,
				lateMessage{i, to, push{defined: defined, changes: tags.AppendChange(nil, &c)}, &c})
		}
	}
}

func (w *world) tellDeletions(i int) {
	f := w.nodes[i]
	for _, d := range f.gone {
		for to := range w.nodes {
			if to != i {
				w.late = append(w.late, lateMessage{i, to, push{deletions: []deletedSeries{d}}, nil})
			}
		}
	}
	f.gone = nil
}

// deliver delivers some message that is on its way, in any order; it may be lost, or stay for
// another time.
func (w *world) deliver() {
	if len(w.late) == 0 {
		return
	}
	n := w.rng.IntN(len(w.late))
	m := w.late[n]
	from := &w.nodes[m.from].x
	got, err := from.push(context.Background(), w.nodes[m.to].id, &m.p)
	if err == nil && m.change != nil && got.refused == 0 {
		_ = w.nodes[m.from].WaitDurable(context.Background(), applied) // it does not fail
		if slices.ContainsFunc(w.nodes[m.from].log, func(r logEntry) bool {
			return reflect.DeepEqual(r.change, *m.change)
		}) {
			w.acked = append(w.acked, *m.change) // two disks have it
		}
	}
	for i := range w.nodes {
		w.tellDeletions(i)
	}
	if w.rng.IntN(5) > 0 {
		w.late = slices.Delete(w.late, n, n+1)
	}
}

func (w *world) compare(i, j int) error {
	if i == j {
		return nil
	}
	_, err := w.nodes[i].x.compare(context.Background(), w.nodes[j].id)
	for i := range w.nodes {
		w.tellDeletions(i)
	}
	return err
}

// check compares all nodes with the model, behind a comparison of each pair.
func (w *world) check() {
	w.calm = true
	for range 2 { // what the last pair found out the first one has behind the second round
		for i := range w.nodes {
			for j := range w.nodes {
				if err := w.compare(i, j); err != nil {
					w.t.Fatal(err)
				}
			}
		}
	}
	var all []tags.Change
	incarnations := make(map[metric.SeriesID]uint64)
	for _, f := range w.nodes {
		for _, r := range f.log {
			if r.deleted.incarnation > 0 {
				incarnations[r.deleted.id] = max(incarnations[r.deleted.id], r.deleted.incarnation)
			} else {
				all = append(all, r.change)
			}
		}
	}
	want := rows(all, incarnations)
	if with := rows(append(slices.Clone(all), w.acked...), incarnations); !reflect.DeepEqual(with,
		want) {
		w.t.Fatalf("an acknowledged change is on no node: with it %v, without %v", with, want)
	}
	for _, f := range w.nodes {
		if got := f.shownTags(); !reflect.DeepEqual(got, want) {
			w.t.Fatalf("node %d shows %v, the model has %v; deletions %v", f.id[0], got, want, incarnations)
		}
		if (tags.Copies{Of: f.index}).Digests() != (tags.Copies{Of: w.nodes[0].index}).Digests() {
			w.t.Fatalf("node %d has other digests than node 1", f.id[0])
		}
	}
}

// Nodes change and delete, crash and come back, over a network that loses, delays and doubles
// messages, with clocks that jump. They end with the result of a naive map of all changes: every
// acknowledged change is there, and every removed tag stays removed.
func TestNodesAgreeWithTheModel(t *testing.T) {
	for seed := range uint64(1500) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 20 + w.rng.IntN(60) {
				w.step()
			}
			w.check()
		})
	}
}

// A deletion that one of two nodes missed is known to both behind one comparison, whoever asks.
// What the series was told since stays.
func TestAComparisonTellsOfDeletions(t *testing.T) {
	for _, way := range [][2]int{{0, 1}, {1, 0}} {
		w := newWorld(t, 1)
		w.calm = true
		key := []byte("\x01a")
		host := func(v string) tags.Change {
			return tags.Change{Bucket: bucket, Key: key, Collection: []byte("c"),
				Set: []tags.Tag{{TagName: tags.TagName{Name: []byte("host")}, Value: []byte(v)}}}
		}
		for _, f := range w.nodes {
			f.known = true
		}
		old := []tags.Change{host("old")}
		if _, err := w.nodes[0].Apply(context.Background(), old); err != nil {
			t.Fatal(err)
		}
		if err := w.compare(0, 1); err != nil {
			t.Fatal(err)
		}
		a, b := w.nodes[0], w.nodes[1]
		a.delete(metric.Series(bucket, key), a.next())
		b.clock = a.clock
		young := host("young")
		young.Set[0].Name = []byte("rack")
		if _, err := b.Apply(context.Background(), []tags.Change{young}); err != nil {
			t.Fatal(err)
		}
		a.gone = nil // nobody was told
		if err := w.compare(way[0], way[1]); err != nil {
			t.Fatal(err)
		}
		want := map[string]map[string]string{"\x01a in c": {"'rack'": "young"}}
		for i, f := range w.nodes[:2] {
			if got := f.shownTags(); !reflect.DeepEqual(got, want) {
				t.Errorf("asked by %d: node %d shows %v, not %v", way[0], i, got, want)
			}
		}
	}
}

// A node that has nothing gets everything, in pages, and two that have the same say so in a few
// bytes.
func TestAnEmptyNodeGetsAll(t *testing.T) {
	w := newWorld(t, 1)
	w.calm = true
	f := w.nodes[0]
	const series = 3 * pageSeries
	for i := range series {
		list := []tags.Change{
			{Bucket: bucket, Key: fmt.Appendf(nil, "\x05%05d", i), Collection: []byte("c"),
				Set: []tags.Tag{{TagName: tags.TagName{Name: []byte("host")}, Value: fmt.Append(nil, i)}}}}
		if _, err := f.Apply(context.Background(), list); err != nil {
			t.Fatal(err)
		}
	}
	for _, way := range [][2]int{{1, 0}, {0, 1}} {
		other := w.nodes[1]
		other.replay(nil)
		done, err := w.nodes[way[0]].x.compare(context.Background(), w.nodes[way[1]].id)
		if err != nil || done.moved != series || done.refused != 0 {
			t.Fatalf("%+v, %v", done, err)
		}
		if got := other.shownTags(); len(got) != series ||
			!maps.EqualFunc(got, f.shownTags(), maps.Equal[map[string]string]) {
			t.Fatalf("%d series came", len(got))
		}
		if done, err := w.nodes[way[0]].x.compare(context.Background(), w.nodes[way[1]].id); err != nil ||
			done.moved != 0 {
			t.Fatalf("equal nodes moved %d changes, %v", done.moved, err)
		}
	}
}

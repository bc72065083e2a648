package eventing

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/store/events"
)

// model is what was written: a naive list.
type model struct {
	w     *world
	all   []events.Event
	acked []bool // it was accepted, or late
	now   int64
}

// write writes some events at a node, of which some were written before.
func (m *model) write(n *node) {
	w := m.w
	var list []events.Event
	var at []int
	for range 1 + w.random.IntN(12) {
		i := len(m.all)
		if i > 0 && w.random.IntN(6) == 0 {
			i = w.random.IntN(i)
		} else {
			e := events.Event{Time: m.now - w.random.Int64N(4*events.DigestStep) - 10*second,
				Body: fmt.Append(nil, "body ", i)}
			copy(e.ID[:], fmt.Sprintf("event %010d", i))
			m.all, m.acked = append(m.all, e), append(m.acked, false)
		}
		e := m.all[i]
		e.Body = bytes.Clone(e.Body)
		list, at = append(list, e), append(at, i)
	}
	got, err := n.e.Write(bucketName, list)
	w.must(err)
	refused := make(map[int]bool)
	for _, r := range got.Refused {
		if refused[r.At] = true; r.Why != account.Unconfirmed {
			w.t.Errorf("event %v is refused: %v", list[r.At], r.Why)
		}
	}
	if c := got.Counts; c.Accepted+c.Late+c.Duplicate+c.Refused[account.Unconfirmed] != uint64(
		len(list)) || len(refused) != int(c.RefusedTotal()) {
		w.t.Errorf("%d events are counted as %+v", len(list), c)
	}
	for i, of := range at {
		m.acked[of] = m.acked[of] || !refused[i]
		for b := range list[i].Body {
			list[i].Body[b] = 'x' // the sender goes on using it
		}
	}
}

// read reads a range at a node and compares.
func (m *model) read(n *node) {
	w := m.w
	w.t.Helper()
	start := m.now - w.random.Int64N(5*events.DigestStep)
	end := start + w.random.Int64N(5*events.DigestStep)
	back, limit := w.random.IntN(2) == 0, 1+w.random.IntN(2000)
	m.check(n, start, end, back, limit)
	m.count(n, start, end)
}

// count counts a range at a node: each step has what was acknowledged, and no more than was
// written.
func (m *model) count(n *node, start, end int64) {
	w := m.w
	w.t.Helper()
	step := 1 + w.random.Int64N(2*events.DigestStep)
	if w.random.IntN(2) == 0 {
		step, start = events.DigestStep, start/events.DigestStep*events.DigestStep
	}
	if end <= start {
		return
	}
	counts, gaps, err := n.e.Count(w.t.Context(), bucketName, start, end, step)
	w.must(err)
	least, most := make([]int64, len(counts)), make([]int64, len(counts))
	for i, e := range m.all {
		if e.Time < start || e.Time >= end {
			continue
		}
		at := (e.Time - start) / step
		most[at]++
		if m.acked[i] && !slices.ContainsFunc(gaps, func(g events.Gap) bool {
			return e.Time >= g.Start && e.Time < g.End
		}) {
			least[at]++
		}
	}
	for i, got := range counts {
		if got < least[i] || got > most[i] {
			w.t.Errorf("%d events are counted in step %d of %d, from %d to %d were written, with gaps %v",
				got, i, step, least[i], most[i], gaps)
		}
	}
}

func (m *model) check(n *node, start, end int64, back bool, limit int) (gaps []events.Gap) {
	w := m.w
	w.t.Helper()
	got := make(map[events.ID]events.Event)
	var last *events.Event
	read := n.e.Read
	if back {
		read = n.e.ReadBack
	}
	gaps, err := read(w.t.Context(), bucketName, start, end, func(e *events.Event) error {
		if last != nil && (e.Time == last.Time || e.Time < last.Time != back) {
			w.t.Errorf("%d follows %d", e.Time, last.Time)
		}
		last = &events.Event{Time: e.Time, ID: e.ID, Body: bytes.Clone(e.Body)}
		got[e.ID] = *last
		if len(got) == limit {
			return events.Stop
		}
		return nil
	})
	w.must(err)
	if len(got) == limit && back {
		start = last.Time
	} else if len(got) == limit {
		end = last.Time + 1
	}
	for i := range m.all {
		e := &m.all[i]
		g, ok := got[e.ID]
		switch delete(got, e.ID); {
		case ok && (g.Time != e.Time || !bytes.Equal(g.Body, e.Body)):
			w.t.Errorf("%v was read, %v written", g, *e)
		case !ok && m.acked[i] && e.Time >= start && e.Time < end:
			if !slices.ContainsFunc(gaps, func(g events.Gap) bool {
				return e.Time >= g.Start && e.Time < g.End
			}) {
				w.t.Errorf("%s was acknowledged, and is not read from %d to %d, with gaps %v", e.Body, start,
					end, gaps)
			}
		}
	}
	if len(got) > 0 {
		w.t.Errorf("nobody has written %v", got)
	}
	return gaps
}

// step does something.
func (m *model) step() {
	w := m.w
	var up []*node
	for _, n := range w.nodes {
		if !n.gone && !n.down.Load() {
			up = append(up, n)
		}
	}
	n := up[w.random.IntN(len(up))]
	switch k := w.random.IntN(20); {
	case k < 9:
		m.write(n)
	case k < 16:
		m.read(n)
	case k == 16 && len(up) > 2:
		n.down.Store(true)
		w.members()
	case k == 17:
		w.reconnectAll()
	case k == 18:
		n.kill()
		w.members()
	case k == 19:
		_, err := n.store.Flush(w.t.Context())
		w.must(err)
	}
}

// change gives all nodes a ring, one after the other, while other things go on.
func (m *model) change(v *ring.View) {
	for _, at := range m.w.random.Perm(len(m.w.nodes)) {
		m.w.nodes[at].view.Store(v)
		m.w.members()
		for range 3 {
			m.step()
		}
	}
}

// awaitMoves waits until the nodes have fetched what a ring gives them.
func (m *model) awaitMoves(v *ring.View) {
	w := m.w
	w.t.Helper()
	w.faults.Store(false)
	w.reconnectAll()
	for _, n := range w.nodes {
		w.waitFor(fmt.Sprintf("node %v has no node left to fetch from", n.id), func() bool {
			return n.e.PendingFetches(v, nil) == 0
		})
	}
	w.faults.Store(true)
}

// TestTheClusterIsTheModel: what was acknowledged is read at every node, or said to be missing,
// while nodes are killed and unreachable, messages are lost, and members join and leave.
func TestTheClusterIsTheModel(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed, 5, 80*time.Millisecond)
			m := &model{w: w, now: time.Now().UnixNano()}
			const a, j, l = ring.Active, ring.Joining, ring.Leaving
			first := w.ring(1, a, a, a, a, 0)
			for _, n := range w.nodes {
				n.view.Store(first)
			}
			w.nodes[4].gone = true
			w.reconnectAll()
			w.faults.Store(true)
			for range 60 {
				m.step()
			}
			joining := w.ring(2, a, a, a, a, j)
			w.nodes[4].gone = false
			m.change(joining)
			m.awaitMoves(joining)
			m.change(w.ring(3, a, a, a, a, a))
			for range 20 {
				m.step()
			}
			leaving := w.ring(4, l, a, a, a, a)
			m.change(leaving)
			m.awaitMoves(leaving)
			w.nodes[0].gone = true
			w.nodes[0].down.Store(true)
			last := w.ring(5, 0, a, a, a, a)
			for _, n := range w.nodes {
				n.view.Store(last)
			}
			w.members()
			for range 20 {
				m.step()
			}
			m.checkConverged()
		})
	}
}

// checkConverged checks that after comparisons every owner has every event that was acknowledged,
// and all nodes say the same.
func (m *model) checkConverged() {
	w := m.w
	w.t.Helper()
	w.faults.Store(false)
	w.reconnectAll()
	for range 2 {
		for _, n := range w.nodes {
			for _, p := range n.e.peersNow() {
				if !n.gone {
					_, err := n.e.comparison(p, make(map[uint64]halves))
					w.must(err)
				}
			}
		}
	}
	var first []events.Digest
	for _, n := range w.nodes {
		if n.gone {
			continue
		}
		if gaps := m.check(n, 1, m.now, false, len(m.all)+1); len(gaps) > 0 {
			w.t.Errorf("with all nodes there are gaps: %v", gaps)
		}
		for range 5 {
			m.checkCount(n, 1+w.random.Int64N(2*events.DigestStep))
		}
		m.checkCount(n, events.DigestStep)
		if d := m.allOf(n); first == nil {
			first = d
		} else if !slices.Equal(d, first) {
			w.t.Errorf("node %v reads other events", n.id)
		}
		info, err := n.store.BucketByName(bucketName)
		w.must(err)
		for _, o := range w.nodes {
			if o == n || o.gone {
				continue
			}
			own, err := n.e.digests(w.t.Context(), n.id, &info, 0, maxTime, events.DigestStep)
			w.must(err)
			theirs, err := o.e.digests(w.t.Context(), n.id, &info, 0, maxTime, events.DigestStep)
			w.must(err)
			for _, start := range differingStarts(theirs, own) {
				if hour := start / events.DigestStep; o.e.owns(o.view.Load(), o.id, info.ID, hour) {
					w.t.Errorf("the copies of hour %d at %v and %v differ", hour, n.id, o.id)
				}
			}
		}
	}
}

// checkCount compares a count with a read.
func (m *model) checkCount(n *node, step int64) {
	m.w.t.Helper()
	start := m.now/events.DigestStep*events.DigestStep - 4*events.DigestStep
	counts, _, err := n.e.Count(m.w.t.Context(), bucketName, start, m.now, step)
	m.w.must(err)
	for _, d := range m.allOf(n) {
		if d.Start >= start {
			counts[(d.Start-start)/step]--
		}
	}
	if slices.ContainsFunc(counts, func(n int64) bool { return n != 0 }) {
		m.w.t.Errorf("in steps of %d Count has so many more than Read: %v", step, counts)
	}
}

// allOf returns what stands for all that a node reads.
func (m *model) allOf(n *node) (list []events.Digest) {
	m.w.t.Helper()
	_, err := n.e.Read(m.w.t.Context(), bucketName, 1, m.now, func(e *events.Event) error {
		list = append(list, events.Digest{Start: e.Time, Sum: uint64(e.ID[15])})
		return nil
	})
	m.w.must(err)
	return list
}

func (e *Eventing) peersNow() []*peer {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.peers))
}

package sim

import (
	"slices"
	"testing"

	"dalmatiner/internal/cluster/replication"
)

// newPagedCluster is a calm cluster with small pages.
func newPagedCluster(nodes, n, w int, p PageLimits) *Cluster {
	c := New(Options{Seed: 1, Nodes: nodes, Partitions: 4, N: n, W: w, R: 1, MaxHints: 100, Calm: true,
		Paging: p})
	c.Run(100)
	return c
}

// fillAll gives every series points in all slots.
func fillAll(t *testing.T, c *Cluster) {
	t.Helper()
	for s := range series {
		var rows []replication.Row
		for slot := range uint64(slots) {
			rows = append(rows, point(Series(s), slot, 7)...)
		}
		awaitReply(t, c, c.Write(0, rows), true)
	}
}

// Where copies are equal nothing but digests of windows travels.
func TestEqualCopiesCompareWindowsOnly(t *testing.T) {
	c := newPagedCluster(3, 3, 3, few)
	fillAll(t, c)
	awaitReply(t, c, c.Write(0, nil, Series(1), Series(2)), true)
	awaitSettled(t, c)
	c.Run(1000)
	compared := 0
	c.watch = func(_, _ *node, m replication.Message) {
		switch m.(type) {
		case replication.Compare:
			compared++
		case replication.CompareReply:
		default:
			t.Errorf("%T travels", m)
		}
	}
	c.Run(2000)
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// A node that was away learns all pages of deletions before it serves anything.
func TestRule2AllPagesOfDeletionsComeFirst(t *testing.T) {
	c := newPagedCluster(3, 3, 2, ones)
	fillAll(t, c)
	c.Run(200)
	c.Crash(2)
	c.Run(100)
	for s := range series {
		awaitReply(t, c, c.Write(0, nil, Series(s)), true)
	}
	pages := 0
	c.watch = func(from, to *node, m replication.Message) {
		if _, ok := m.(replication.LearnReply); ok && to.number == 2 {
			pages++
		}
	}
	c.Start(2)
	for s := range series {
		request := c.Read(2, Series(s), 1, 2)
		c.nodes[2].core.Receive(c.time(c.nodes[2]), c.nodes[2].id,
			replication.Fetch{Request: request, Version: c.view.Version(),
				Partition: c.view.Partition(Series(s)), Series: Series(s), From: 1, Past: 2})
		runUntil(t, c, "an answer", func() bool { _, ok := c.reads[request]; return ok })
		if got := c.reads[request]; !got.Done || got.Slots[0].Value.Word != 0 {
			t.Errorf("a deleted point of series %d is served behind %d pages: %+v", s, pages, got)
		}
	}
	if pages < series {
		t.Errorf("%d pages", pages)
	}
}

// Deletions that a node missed while it was cut off come in pages, too.
func TestRule2DeletionsAreSharedInPages(t *testing.T) {
	c := newPagedCluster(3, 3, 2, ones)
	fillAll(t, c)
	c.Split(2)
	c.Run(100)
	for s := range series {
		awaitReply(t, c, c.Write(0, nil, Series(s)), true)
	}
	awaitSettled(t, c)
	for s := range series {
		if got := c.word(2, Series(s), 1); got != 0 {
			t.Errorf("series %d holds %d", s, got)
		}
	}
}

// A pass whose peer goes away continues at the page where it was, and a member that joins says how
// far it is.
func TestAPassContinuesWhereItWas(t *testing.T) {
	one := ones
	one.ComparePoints = 4
	c := newPagedCluster(1, 1, 1, one)
	fillAll(t, c)
	if err := c.Join(-1); err != nil {
		t.Fatal(err)
	}
	joiner := c.nodes[1]
	c.Run(40)
	list := joiner.core.Progress()
	if len(list) == 0 || list[0].From != c.nodes[0].id || list[0].To != joiner.id {
		t.Fatalf("progress %+v", list)
	}
	under := func(p replication.Progress) bool { return p.Windows > 1 && !p.Done }
	runUntil(t, c, "a window is equal", func() bool {
		list = joiner.core.Progress()
		return slices.ContainsFunc(list, under)
	})
	half := list[slices.IndexFunc(list, under)]
	if half.Windows >= half.Of || half.Points == 0 || half.Bytes != rowBytes*half.Points ||
		half.Last < half.Started {
		t.Fatalf("half way: %+v", half)
	}
	var from []uint64
	c.watch = func(n, _ *node, m replication.Message) {
		if q, ok := m.(replication.Compare); ok && n == joiner && q.Partition == half.Partition {
			from = append(from, q.From)
		}
	}
	c.Crash(0)
	c.Run(4000)
	c.Start(0)
	runUntil(t, c, "the joiner has everything",
		func() bool { return joiner.core.PendingPartitions() == 0 })
	c.checkFetched()
	if len(from) == 0 || from[0] == 0 {
		t.Errorf("the pass asked for windows from %v on", from)
	}
	for _, p := range joiner.core.Progress() {
		if !p.Done || p.Windows != p.Of {
			t.Errorf("in the end %+v", p)
		}
	}
	if s := joiner.core.Stats(); s.Moved == 0 || s.Differences != 0 || s.Repaired != 0 {
		t.Errorf("counters %+v", s)
	}
}

// What three owners have of a partition comes to a new one once: from the first, and the others
// have nothing to add.
func TestAPartitionMovesOnce(t *testing.T) {
	c := newPagedCluster(3, 3, 3, few)
	fillAll(t, c)
	awaitSettled(t, c)
	if err := c.Join(-1); err != nil {
		t.Fatal(err)
	}
	joiner := c.nodes[3]
	runUntil(t, c, "the joiner has everything", func() bool {
		return joiner.core.PendingPartitions() == 0 && len(joiner.core.Progress()) > 0
	})
	c.checkFetched()
	var points uint64
	for _, s := range joiner.disk.series {
		points += uint64(len(s.slots))
	}
	if moved := joiner.core.Stats().Moved; points == 0 || moved != points {
		t.Errorf("%d points have moved to a node that has %d", moved, points)
	}
}

// Wherever a pass pauses, it leaves nothing out.
func TestAPassThatPausesIsWhole(t *testing.T) {
	for wait := range int64(40) {
		c := newPagedCluster(1, 1, 1, ones)
		fillAll(t, c)
		if err := c.Join(-1); err != nil {
			t.Fatal(err)
		}
		c.Run(40 + 15*wait)
		c.Crash(0)
		c.Run(100)
		c.Start(0)
		runUntil(t, c, "the joiner has everything",
			func() bool { return c.nodes[1].core.PendingPartitions() == 0 })
		c.checkFetched()
	}
}

// Comparisons and hints move no more rows in a tick than they may.
func TestRowsOfATickAreBounded(t *testing.T) {
	p := PageLimits{Limits: replication.Limits{Points: 2, Chunks: 2}, ComparePoints: 6, HintRows: 5}
	c := newPagedCluster(4, 3, 2, p)
	c.Crash(2)
	c.Run(100)
	fillAll(t, c)
	last := map[*node][2]int{}
	c.watch = func(from, to *node, m replication.Message) {
		sum := last[from]
		switch m := m.(type) {
		case replication.Fill:
			sum[0] += points(m.Chunks) + chunkSlots*len(m.Want)
		case replication.Deliver:
			sum[1] += len(m.Change.Rows)
		}
		last[from] = sum
	}
	c.Start(2)
	most := [2]int{}
	for range 200 {
		c.Run(tick)
		for _, sum := range last {
			most[0], most[1] = max(most[0], sum[0]), max(most[1], sum[1])
		}
		clear(last)
	}
	awaitSettled(t, c)
	// What was asked for before the budget ended still comes: two copies a message, of 4 comparisons.
	if limit := p.ComparePoints + 4*2*2*chunkSlots; most[0] > limit || most[0] == 0 {
		t.Errorf("%d rows in a tick were compared, the limit is %d", most[0], limit)
	}
	if limit := p.HintRows + slots; most[1] > limit || most[1] == 0 {
		t.Errorf("%d rows of hints in a tick, the limit is %d", most[1], limit)
	}
}

// What a node knows of its comparisons and hints.
func TestStats(t *testing.T) {
	c, s := calm(4, 3, 3), Series(1)
	own, others := owners(c, s)
	runUntil(t, c, "all is compared once", func() bool {
		passes := c.nodes[own[0]].core.Stats().Passes
		return len(passes) > 0 && !slices.ContainsFunc(passes, func(p replication.LastPass) bool {
			return p.Never
		})
	})
	stand := func() replication.Stats { return c.nodes[others[0]].core.Stats() }
	c.Crash(own[2])
	c.Run(100)
	awaitReply(t, c, c.Write(own[0], point(s, 1, 7)), true)
	if got := stand(); got.HintsKept != 1 || got.Hints != 1 || got.HintsDelivered != 0 {
		t.Errorf("with a hint: %+v", got)
	}
	c.Crash(others[0])
	c.Start(others[0])
	if got := stand(); got.Hints != 1 {
		t.Errorf("behind a restart: %+v", got)
	}
	c.Cut(others[0], own[2])
	before := c.nodes[own[0]].core.Stats()
	c.Start(own[2])
	runUntil(t, c, "the owner has it", func() bool { return c.word(own[2], s, 1) == 7 })
	c.Run(1000)
	differences, repaired := uint64(0), uint64(0)
	for _, i := range own {
		got := c.nodes[i].core.Stats()
		differences, repaired = differences+got.Differences, repaired+got.Repaired
	}
	if differences == 0 || repaired == 0 {
		t.Errorf("%d differences, %d rows repaired", differences, repaired)
	}
	after := c.nodes[own[0]].core.Stats()
	of := slices.IndexFunc(after.Passes, func(p replication.LastPass) bool {
		return p.Partition == c.view.Partition(s)
	})
	if after.Comparisons <= before.Comparisons || after.Windows <= before.Windows ||
		after.Passes[of].At < c.now-1000 {
		t.Errorf("counters %+v, then %+v at %d", before, after, c.now)
	}
	c.Heal()
	runUntil(t, c, "the hint is delivered", func() bool {
		return stand().HintsDelivered == 1 && stand().Hints == 0
	})
}

// Whoever submits sees what is open: batches that wait for a slow node count until their time is
// over.
func TestOpenBatchesAreCounted(t *testing.T) {
	c := calm(3, 3, 2)
	core := c.nodes[0].core
	c.nodes[2].stuck = true
	for range 3 {
		awaitReply(t, c, c.Write(0, append(point(Series(1), 1, 7), point(Series(2), 1, 7)...)), true)
	}
	if batches, rows := core.Open(); batches != 3 || rows != 6 {
		t.Errorf("%d batches with %d rows are open", batches, rows)
	}
	runUntil(t, c, "their time is over", func() bool {
		batches, rows := core.Open()
		return batches == 0 && rows == 0
	})
	c.nodes[2].stuck = false
	awaitReply(t, c, c.Write(0, point(Series(1), 2, 7)), true)
	runUntil(t, c, "all have answered", func() bool { batches, _ := core.Open(); return batches == 0 })
}

// A batch that deletes a series and has points of it leaves these points.
func TestRule2ABatchDeletesFirst(t *testing.T) {
	c, s := calm(3, 3, 3), Series(1)
	awaitReply(t, c, c.Write(0, point(s, 1, 99)), true)
	awaitReply(t, c, c.Write(0, point(s, 2, 5), s), true)
	awaitSettled(t, c)
	for i := range c.nodes {
		if a, b := c.word(i, s, 1), c.word(i, s, 2); a != 0 || b != 5 {
			t.Errorf("n%d holds %d and %d", i, a, b)
		}
	}
}

// What a message brings beyond the rows of a tick is taken off the next ones, also at a slower
// pace.
func TestRowsOverTimeAreBounded(t *testing.T) {
	for _, at := range []struct {
		points int
		pace   float64
	}{{1, 1}, {4, 0.25}} {
		p := PageLimits{Limits: replication.Limits{Points: 8, Windows: 8, Chunks: 8, Deletions: 8},
			Comparisons: 1, ComparePoints: at.points}
		c := newPagedCluster(3, 3, 2, p) // nobody keeps hints
		c.Crash(2)
		c.Run(100)
		fillAll(t, c)
		total := map[*node]int{}
		c.watch = func(from, to *node, m replication.Message) {
			switch m := m.(type) {
			case replication.Fill:
				total[from] += points(m.Chunks)
			case replication.FillReply:
				total[to] += points(m.Chunks)
			}
		}
		c.Start(2)
		for _, n := range c.nodes {
			n.core.Background().Pace(at.pace)
		}
		most := 0
		for n := range 400 {
			c.Run(tick)
			for _, rows := range total {
				// A message is asked for while there is a row of budget left, and brings as many as it holds,
				// both ways.
				if most = max(most, rows); rows > n+1+2*p.Limits.Points {
					t.Fatalf("%d rows in %d ticks at pace %v, 1 in each is allowed", rows, n+1, at.pace)
				}
			}
		}
		if most < 50 {
			t.Errorf("%d rows moved at pace %v: the test shows little", most, at.pace)
		}
	}
}

package ring

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func newRand() *rand.Rand { return rand.New(rand.NewPCG(7, 7)) }

func mustPlan(t *testing.T, v *View, s Sizes, changes ...Change) *Plan {
	t.Helper()
	p, err := v.Plan(changes, s, rand.New(rand.NewPCG(3, v.version.Number)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Refusals name what to do.
func TestRefusals(t *testing.T) {
	v := grownRing(64, 3, 3)
	with := func(change func(c *Candidate)) Candidate {
		c := joiner(4, 64)
		change(&c)
		return c
	}
	for says, c := range map[string]Change{
		"use replace":            {Action: Join, Member: with(func(c *Candidate) { c.Name = "n2" })},
		"a directory of its own": {Action: Join, Member: with(func(c *Candidate) { c.ID = testID(2) })},
		"is a member already":    {Action: Join, Member: joiner(2, 64)},
		"empty data directory":   {Action: Join, Member: with(func(c *Candidate) { c.HasData = true })},
		"set it in its config":   {Action: Join, Member: joiner(4, 128)},
		"upgrade in steps": {Action: Join, Member: with(func(c *Candidate) {
			c.Protocol = Protocol{2, 3}
		})},
		"larger disk":             {Action: Join, Member: with(func(c *Candidate) { c.Free = 1000 })},
		"no member is called n9":  {Action: Leave, Node: "n9"},
		"let another join":        {Action: Leave, Node: "n1"},
		"let others join first":   {Action: SetCopies, Copies: 4},
		"nothing needs to be":     {Action: Replace, Node: "n1", Member: joiner(1, 64)},
		"no member is called n10": {Action: Replace, Node: "n10", Member: joiner(4, 64)},
	} {
		sizes := Sizes{Partition: slices.Repeat([]Size{{Bytes: 1 << 20}}, 64)}
		if _, err := v.Plan([]Change{c}, sizes, newRand()); !errors.Is(err, ErrRefused) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v: error %v, want %q", c, err, says)
		}
	}
	if _, err := grownRing(4, 1, 1).Plan([]Change{{Action: Leave, Node: "n1"}}, Sizes{},
		newRand()); err == nil || !strings.Contains(err.Error(), "stop it instead") {
		t.Errorf("the last member leaves: %v", err)
	}
	if _, err := v.Plan(nil, Sizes{}, newRand()); !errors.Is(err, ErrRefused) {
		t.Errorf("nothing staged: %v", err)
	}
}

// Rule 3: a node with data cannot join, and its ring_size must be that of the cluster.
func TestRule3WhoCannotJoin(t *testing.T) {
	v := grownRing(64, 2, 2)
	full, other := joiner(3, 64), joiner(3, 32)
	full.HasData = true
	for _, c := range []Candidate{full, other} {
		for _, change := range []Change{{Action: Join, Member: c},
			{Action: Replace, Node: "n1", Member: c}} {
			if _, err := v.Plan([]Change{change}, Sizes{}, newRand()); !errors.Is(err, ErrRefused) {
				t.Errorf("%v: %v", change, err)
			}
		}
	}
}

// Rule 8: a member whose join was taken back joins again, with what it has fetched.
func TestRule8APendingMemberJoinsAgain(t *testing.T) {
	v, c := grownRing(64, 2, 2), joiner(3, 64)
	joining, err := v.Commit(mustPlan(t, v, Sizes{}, Change{Action: Join, Member: c}))
	if err != nil {
		t.Fatal(err)
	}
	back, err := joining.Undo()
	if err != nil {
		t.Fatal(err)
	}
	c.HasData = true
	if p := mustPlan(t, back, Sizes{}, Change{Action: Join, Member: c}); len(p.Moves) == 0 {
		t.Error("nothing moves to it")
	}
}

// Rule 9: another data directory under a known name must replace, and does with the same share.
func TestRule9AnotherDirectoryReplaces(t *testing.T) {
	v := grownRing(256, 3, 5)
	c := joiner(9, 256)
	c.Name = "n2"
	if _, err := v.Plan([]Change{{Action: Join, Member: c}}, Sizes{}, newRand()); !errors.Is(err,
		ErrRefused) {
		t.Fatalf("it joins: %v", err)
	}
	p := mustPlan(t, v, Sizes{}, Change{Action: Replace, Node: "n2", Member: c})
	owned := 0
	for partition := range 256 {
		want := v.Owners(nil, partition, Current, 0)
		if i := slices.Index(want, testID(2)); i >= 0 {
			want[i] = c.ID
			owned++
		}
		if got := p.Final.Owners(nil, partition, Current, 0); !slices.Equal(got, want) {
			t.Fatalf("partition %d: owners %v, want %v", partition, got, want)
		}
	}
	if len(p.Moves) != owned {
		t.Errorf("%d moves, the replaced member owned %d", len(p.Moves), owned)
	}
	if m, ok := p.Final.MemberNamed("n2"); !ok || m.ID != c.ID || m.State != Active ||
		m.Replaces != (ID{}) {
		t.Errorf("n2 is %+v in the end", m)
	}
	if m, ok := p.Next.MemberNamed("n2"); !ok || m.Replaces != testID(2) {
		t.Errorf("n2 is %+v after the commit", m)
	}
}

// Rule 9: a commit of a plan for another ring is refused, also if both have the same number.
func TestRule9AStaleCommitIsRefused(t *testing.T) {
	v := grownRing(64, 2, 3)
	a := mustPlan(t, v, Sizes{}, Change{Action: Join, Member: joiner(4, 64)})
	b := mustPlan(t, v, Sizes{}, Change{Action: Join, Member: joiner(5, 64)})
	here, err := v.Commit(a)
	if err != nil {
		t.Fatal(err)
	}
	there, err := v.Commit(b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := here.Commit(b); !errors.Is(err, ErrStale) {
		t.Errorf("a second commit: %v", err)
	}
	if here.Version().Number != there.Version().Number || here.Version() == there.Version() {
		t.Errorf("commits on two sides are %s and %s", here.Version(), there.Version())
	}
	onward := mustPlan(t, here, Sizes{}, Change{Action: ForceRemove, Node: "n1"})
	if _, err := there.Commit(onward); !errors.Is(err, ErrStale) {
		t.Errorf("a commit on the other side, of the same number: %v", err)
	}
	undone, err := here.Undo()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := undone.Commit(b); !errors.Is(err, ErrStale) {
		t.Errorf("a commit after an undo: %v", err)
	}
}

// Rule 9: members of a cluster without data are admitted at once.
func TestRule9AnEmptyClusterAdmitsAtOnce(t *testing.T) {
	v := mustNew(Config{Partitions: 64, Copies: 3})
	for i := range 3 {
		p := mustPlan(t, v, Sizes{Empty: true}, Change{Action: Join, Member: joiner(i+1, 64)})
		if len(p.Moves) != 0 || p.Next.IsChanging() {
			t.Fatalf("%d moves are left", len(p.Moves))
		}
		next, err := v.Commit(p)
		if err != nil || next.Version().Number != uint64(i+1) {
			t.Fatalf("version %v, %v", next.Version(), err)
		}
		v = next
	}
	if got := len(v.Owners(nil, 0, Current, 0)); got != 3 {
		t.Errorf("%d owners", got)
	}
}

// Rule 9: neighbours of one version work together, others do not.
func TestRule9Protocols(t *testing.T) {
	for _, c := range []struct {
		a, b Protocol
		want uint16
		ok   bool
	}{{Protocol{1, 1}, Protocol{1, 2}, 1, true}, {Protocol{1, 2}, Protocol{2, 3}, 2, true},
		{Protocol{1, 1}, Protocol{2, 3}, 1, false}} {
		if got, ok := c.a.Speaks(c.b); got != c.want || ok != c.ok {
			t.Errorf("%v with %v: %d %t", c.a, c.b, got, ok)
		}
	}
}

// What force-remove loses, and what it still copies.
func TestForceRemove(t *testing.T) {
	p := mustPlan(t, grownRing(64, 1, 3), Sizes{}, Change{Action: ForceRemove, Node: "n1"})
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "their points are lost") {
		t.Errorf("n = 1: %q", p.Warnings)
	}
	p = mustPlan(t, grownRing(64, 2, 3), Sizes{}, Change{Action: ForceRemove, Node: "n1"})
	if len(p.Warnings) != 0 || len(p.Moves) == 0 {
		t.Errorf("n = 2: %d moves, %q", len(p.Moves), p.Warnings)
	}
	for _, m := range p.Moves {
		if len(m.From) != 1 || m.From[0] == testID(1) {
			t.Errorf("n = 2: %+v", m)
		}
	}
	for partition := range 64 {
		for _, target := range p.Next.Targets(nil, partition, 0, func(ID) bool { return true }) {
			if target.Node == testID(1) {
				t.Errorf("partition %d is written to the removed member", partition)
			}
		}
	}
}

// A joining member that is removed again leaves no trace: it had nothing.
func TestAJoinerIsRemoved(t *testing.T) {
	v := grownRing(64, 2, 3)
	joined, err := v.Commit(mustPlan(t, v, Sizes{}, Change{Action: Join, Member: joiner(4, 64)}))
	if err != nil {
		t.Fatal(err)
	}
	p := mustPlan(t, joined, Sizes{}, Change{Action: ForceRemove, Node: "n4"})
	if len(p.Moves) != 0 || p.Next.IsChanging() || len(p.Warnings) != 0 || len(p.Next.Members()) != 3 {
		t.Errorf("%d moves, %d members, %q", len(p.Moves), len(p.Next.Members()), p.Warnings)
	}
}

// drawChange draws a change that may well be refused. Where owners go and nobody takes their place,
// a write may be on fewer of those that stay than a read counts on: these fetch what the others
// have.
func TestThoseThatStayFetch(t *testing.T) {
	v := grownRing(16, 3, 3)
	one, err := v.Commit(mustPlan(t, v, Sizes{}, Change{Action: SetCopies, Copies: 1}))
	if err != nil {
		t.Fatal(err)
	}
	fetches := one.Fetches(0)
	if len(one.Moves()) != 0 || len(fetches) != 16 {
		t.Fatalf("%d moves, %d fetches", len(one.Moves()), len(fetches))
	}
	for _, f := range fetches {
		if len(f.From) != 2 || slices.Contains(f.From, f.To) {
			t.Errorf("%+v", f)
		}
	}
	two, err := v.Commit(mustPlan(t, v, Sizes{}, Change{Action: SetCopies, Copies: 2}))
	if err != nil || len(two.Moves()) != 0 || len(two.Fetches(0)) != 32 {
		t.Errorf("one copy less: %d fetches, %v", len(two.Fetches(0)), err)
	}
}

func drawChange(rt *rapid.T, step, partitions int) Change {
	name := rapid.Map(rapid.IntRange(1, 12), func(n int) string {
		return fmt.Sprint("n", n)
	}).Draw(rt, "node")
	return Change{Action: Action(rapid.IntRange(0, int(SetCopies)).Draw(rt, "action")), Node: name,
		Member: joiner(rapid.IntRange(step+4, step+5).Draw(rt, "member"), partitions),
		Copies: rapid.IntRange(1, 4).Draw(rt, "n")}
}

// Schedules of changes, finished, undone or extended by a force-remove half way: at every moment
// partitions have as many owners as there can be, what moves is what the owners before and after
// differ by, and the owners in the end are those that were planned.
func TestSchedulesOfChanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := grownRing(32, rapid.IntRange(1, 3).Draw(rt, "n"), rapid.IntRange(1, 4).Draw(rt, "members"))
		for step := range rapid.IntRange(1, 6).Draw(rt, "steps") {
			var changes []Change
			for range rapid.IntRange(1, 2).Draw(rt, "changes") {
				changes = append(changes, drawChange(rt, step, 32))
			}
			p, err := v.Plan(changes, Sizes{}, rand.New(rand.NewPCG(uint64(step), 1)))
			if err != nil {
				if !errors.Is(err, ErrRefused) {
					rt.Fatal(err)
				}
				continue
			}
			checkPlan(rt, v, p)
			if v, err = v.Commit(p); err != nil {
				rt.Fatal(err)
			}
			switch rapid.IntRange(0, 3).Draw(rt, "then") {
			case 0: // still under way
			case 1:
				if v, err = v.Undo(); err != nil {
					rt.Fatal(err)
				}
			default:
				if v, err = v.Finish(); err != nil || v.IsChanging() || len(v.Moves()) > 0 {
					rt.Fatalf("finished with %d moves left: %v", len(v.Moves()), err)
				}
			}
		}
	})
}

func checkPlan(rt *rapid.T, v *View, p *Plan) {
	if p.Next.Version().Number != v.Version().Number+1 {
		rt.Fatalf("version %s follows %s", p.Next.Version(), v.Version())
	}
	var moves []Move
	for partition := range v.Partitions() {
		now, next := v.Owners(nil, partition, Current, 0), p.Next.Owners(nil, partition, Current, 0)
		if !slices.Equal(now, next) {
			rt.Fatalf("partition %d: a commit alone changes owners from %v to %v", partition, now, next)
		}
		final := p.Final.Owners(nil, partition, Current, 0)
		if future := p.Next.Owners(nil, partition, Future, 0); !slices.Equal(future, final) {
			rt.Fatalf("partition %d: owners will be %v, and are %v in the end", partition, future, final)
		}
		var living []ID
		for _, id := range now {
			if m, _ := p.Next.Member(id); m.State != Removed {
				living = append(living, id)
			}
		}
		for _, id := range final {
			if !slices.Contains(now, id) {
				moves = append(moves, Move{Partition: partition, From: living, To: id})
			}
		}
	}
	same := func(a, b Move) bool {
		return a.Partition == b.Partition && a.To == b.To && slices.Equal(a.From, b.From)
	}
	if !slices.EqualFunc(p.Moves, moves, same) {
		rt.Fatalf("moves %v, want %v", p.Moves, moves)
	}
	if diff := difference(v, p.Final); len(diff) != len(moves) {
		rt.Fatalf("%d partitions differ, %d move", len(diff), len(moves))
	}
}

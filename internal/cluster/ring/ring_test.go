package ring

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/metric"
)

// A partition is the top bits of the hash, and the same for both series of a metric with
// timestamps.
func TestRule4APartitionIsTheTopBits(t *testing.T) {
	id := metric.SeriesID{0xa5, 0xf0}
	for size, want := range map[int]int{1: 0, 2: 1, 16: 0xa, 256: 0xa5, 1 << 12: 0xa5f} {
		v := mustNew(Config{Partitions: size, Copies: 1})
		if got := v.Partition(id); got != want || v.Partition(id.Timestamp()) != want {
			t.Errorf("ring_size %d: partition %#x, want %#x", size, got, want)
		}
		if point := v.Point(want); uint64(point)*uint64(size)>>32 != uint64(want) || v.Point(0) != 0 {
			t.Errorf("ring_size %d: partition %d lies at %#x", size, want, point)
		}
	}
}

// A token does not own the point it lies on: the next one does. dskit's ring decides the same way.
func TestATokenOnThePoint(t *testing.T) {
	on, behind := Member{ID: testID(1), Name: "on", State: Active, Tokens: []uint32{1 << 31}},
		Member{ID: testID(2), Name: "behind", State: Active, Tokens: []uint32{1<<31 + 1}}
	v := mustNew(Config{Partitions: 2, Copies: 2, Members: []Member{on, behind}})
	if got := v.Owners(nil, 1, Current, 0); !slices.Equal(got, []ID{behind.ID, on.ID}) {
		t.Errorf("owners %v", got)
	}
}

func TestRule4OwnersEqualTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawConfig(rt)
		v := mustNew(c)
		for p := range c.Partitions {
			current := first(modelOrder(c.Members, v.Point(p), Active, Leaving, Removed), c.Copies)
			future := first(modelOrder(c.Members, v.Point(p), Active, Joining), c.NextCopies)
			if got := v.Owners(nil, p, Current, 0); !slices.Equal(got, current) {
				rt.Fatalf("partition %d: owners %v, want %v", p, got, current)
			}
			if got := v.Owners(nil, p, Future, 0); !slices.Equal(got, future) {
				rt.Fatalf("partition %d: future owners %v, want %v", p, got, future)
			}
			for _, m := range c.Members {
				if want := slices.Contains(current, m.ID) ||
					slices.Contains(future, m.ID); v.Owns(m.ID, p, 0) != want {
					rt.Fatalf("partition %d: %s owns it: %t", p, m.Name, !want)
				}
			}
		}
	})
}

// A reader that leaves needs a staying member among those who answer: an owner, or, where all
// owners leave, another member.
func TestRule8WhoLeavesNeedsOneThatStays(t *testing.T) {
	var members []Member
	for n, state := range []State{Leaving, Leaving, Active, Active} {
		members = append(members, Member{ID: testID(n + 1), Name: string(rune('a' + n)), State: state,
			Tokens: []uint32{uint32(n+1) << 28}})
	}
	v := mustNew(Config{Partitions: 1, Copies: 2, NextCopies: 2, Members: members})
	id := func(n int) ID { return members[n].ID }
	for _, c := range []struct {
		reader  int
		owners  []ID
		least   int
		besides []ID
	}{
		{2, []ID{id(0), id(1)}, 0, nil},
		{0, []ID{id(0), id(2), id(3)}, 2, nil},
		{0, []ID{id(0), id(1), id(2)}, 3, nil},
		{1, []ID{id(2), id(3)}, 1, nil},
		{0, []ID{id(0), id(1)}, 0, []ID{id(2), id(3)}},
	} {
		if least, besides := LeavingReadQuorum(v, id(c.reader), c.owners); least != c.least ||
			!slices.Equal(besides, c.besides) {
			t.Errorf("reader %d of %v: %d of them, one of %v; want %d, %v", c.reader, c.owners, least,
				besides, c.least, c.besides)
		}
	}
}

// Every live owner gets its copy, every dead one a stand-in of its own while there is one: an
// active member. A write has somewhere to go while any such member lives.
func TestRule5TargetsEqualTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawConfig(rt)
		v := mustNew(c)
		alive, stays := make(map[ID]bool), make(map[ID]bool)
		for _, m := range c.Members {
			if rapid.Bool().Draw(rt, "up") {
				alive[m.ID] = m.State != Removed
				stays[m.ID] = m.State == Active
			}
		}
		up := func(id ID) bool { return alive[id] }
		for p := range c.Partitions {
			current := v.Owners(nil, p, Current, 0)
			owners := slices.Clone(current)
			for _, id := range v.Owners(nil, p, Future, 0) {
				if !slices.Contains(owners, id) {
					owners = append(owners, id)
				}
			}
			targets, living := v.Targets(nil, p, 0, up), 0
			for id := range alive {
				if alive[id] && (stays[id] || slices.Contains(owners, id)) {
					living++
				}
			}
			if len(targets) != min(living, len(owners)) {
				rt.Fatalf("partition %d: %d targets, %d live, owners %v", p, len(targets), living, owners)
			}
			nodes, kept := make(map[ID]bool), make(map[ID]bool)
			for _, target := range targets {
				if nodes[target.Node] || kept[target.For] || !alive[target.Node] {
					rt.Fatalf("partition %d: %v is down or comes twice in %v", p, target, targets)
				}
				nodes[target.Node], kept[target.For] = true, true
				owner := slices.Index(owners, target.For)
				if owner < 0 || target.Joining != (owner >= len(current)) ||
					alive[target.For] == target.Hint() {
					rt.Fatalf("partition %d: %+v with owners %v", p, target, owners)
				}
			}
			for _, id := range owners {
				if alive[id] && !kept[id] {
					rt.Fatalf("partition %d: the live owner %v gets nothing", p, id)
				}
			}
		}
	})
}

// Copies lie in different zones while there are enough, and as evenly as can be where there are
// not.
func TestZones(t *testing.T) {
	for members, zones := range map[int][]string{9: {"a", "b", "c"}, 8: {"a", "b"}, 5: {"a"}} {
		v := grownRing(256, 3, members, zones...)
		for p := range 256 {
			in := make(map[string]int)
			for _, id := range v.Owners(nil, p, Current, 0) {
				m, _ := v.Member(id)
				in[m.Zone]++
			}
			if len(in) != len(zones) {
				t.Fatalf("%d zones: partition %d lies in %v", len(zones), p, in)
			}
		}
		if got := v.Shortage(Current).Zones; got != (len(zones) < 3) {
			t.Errorf("%d zones: shortage %t", len(zones), got)
		}
	}
	if got := grownRing(16, 3, 2).Shortage(Current); !got.Members || got.Zones {
		t.Errorf("two members without zones, three copies: %+v", got)
	}
}

// 512 random tokens make shares even, and a member that joins moves little more than its share.
func TestShares(t *testing.T) {
	for _, size := range []int{64, 1024} {
		v := grownRing(size, 3, 5)
		sum := Share{}
		for i, s := range v.Shares() {
			sum.Current += s.Current
			sum.Future += s.Future
			if s.Current < 0.14 || s.Current > 0.27 {
				t.Errorf("ring_size %d: member %d has %.1f %%", size, i, 100*s.Current)
			}
			t.Logf("ring_size %d: %.2f %%", size, 100*s.Current)
		}
		if min(sum.Current, sum.Future) < 0.9999 || max(sum.Current, sum.Future) > 1.0001 {
			t.Errorf("ring_size %d: shares add up to %v", size, sum)
		}
	}
	small, large := grownRing(1024, 3, 4), grownRing(1024, 3, 5)
	moved := float64(len(difference(small, withMembers(small, large)))) / (3 * 1024)
	if moved < 0.14 || moved > 0.26 {
		t.Errorf("a fifth member moves %.1f %% of the copies, ideal are 20", 100*moved)
	}
	t.Logf("a fifth member moves %.2f %%", 100*moved)
}

// difference returns how partitions move from the owners of one view to those of another, both of
// the same ring_size.
func difference(before, after *View) (moves []Move) {
	for p := range before.config.Partitions {
		from := before.Owners(nil, p, Current, 0)
		for _, id := range after.Owners(nil, p, Current, 0) {
			if !slices.Contains(from, id) {
				moves = append(moves, Move{Partition: p, From: from, To: id})
			}
		}
	}
	return moves
}

// withMembers adds the last member of another ring.
func withMembers(v, of *View) *View {
	c := v.config
	extra := of.config.Members[len(of.config.Members)-1]
	extra.State = Active
	c.Members = append(slices.Clone(c.Members), extra)
	return mustNew(c)
}

func TestVersions(t *testing.T) {
	v := grownRing(16, 2, 3)
	same := mustNew(v.config)
	if same.Version() != v.Version() {
		t.Error("the same ring has two versions")
	}
	changes := map[string]func(*Config){
		"n":     func(c *Config) { c.Copies++ },
		"state": func(c *Config) { c.Members[1].State = Leaving },
		"token": func(c *Config) { c.Members[1].Tokens = slices.Clone(c.Members[1].Tokens[1:]) },
		"zone":  func(c *Config) { c.Members[1].Zone = "x" },
		"size":  func(c *Config) { c.Partitions *= 2 },
	}
	for what, change := range changes {
		c := v.config
		c.Members = slices.Clone(c.Members)
		change(&c)
		if mustNew(c).Version().Sum == v.Version().Sum {
			t.Errorf("another %s has the same version", what)
		}
	}
	c := v.config
	c.Members = slices.Clone(c.Members)
	c.Members[0].Addresses = []string{"192.0.2.1:5556"}
	if mustNew(c).Version() != v.Version() {
		t.Error("an address is another ring")
	}
}

func TestRingsThatCannotBe(t *testing.T) {
	one := Member{ID: testID(1), Name: "n1", State: Active, Tokens: []uint32{1}}
	two := Member{ID: testID(2), Name: "n2", State: Active, Tokens: []uint32{2}}
	with := func(change func(m *Member)) Config {
		m := two
		change(&m)
		return Config{Partitions: 2, Copies: 1, Members: []Member{one, m}}
	}
	for says, c := range map[string]Config{
		"power of two":    {Partitions: 12, Copies: 1},
		"ring_size is 0":  {Copies: 1},
		"n is 0":          {Partitions: 1},
		"n is 16":         {Partitions: 1, Copies: 16},
		"no id":           with(func(m *Member) { m.ID = ID{} }),
		"id of another":   with(func(m *Member) { m.ID = one.ID }),
		"are called n1":   with(func(m *Member) { m.Name = "n1" }),
		"state 0":         with(func(m *Member) { m.State = 0 }),
		"without a token": with(func(m *Member) { m.Tokens = nil }),
	} {
		if _, err := New(c); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q", err, says)
		}
	}
}

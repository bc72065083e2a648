package ring

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"
)

// modelOrder is the naive model of who is asked for a point: every member by the distance to its
// nearest token, then by how many of its zone come before. It shares no code with View.
func modelOrder(members []Member, point uint32, states ...State) []ID {
	type entry struct {
		id       ID
		zone     string
		distance uint32
		round    int
	}
	var list []entry
	for _, m := range members {
		if slices.Contains(states, m.State) {
			nearest := uint32(1<<32 - 1)
			for _, t := range m.Tokens {
				nearest = min(nearest, t-point-1) // a token on the point is the farthest
			}
			list = append(list, entry{id: m.ID, zone: m.Zone, distance: nearest})
		}
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), slices.Compare(a.id[:], b.id[:]))
	})
	for i := range list {
		for j := range i {
			if list[i].zone != "" && list[j].zone == list[i].zone {
				list[i].round++
			}
		}
	}
	slices.SortStableFunc(list, func(a, b entry) int { return a.round - b.round })
	var ids []ID
	for _, e := range list {
		ids = append(ids, e.id)
	}
	return ids
}

func first(ids []ID, n int) []ID { return ids[:min(n, len(ids))] }

func testID(n int) ID { return ID{0: byte(n % 7), 15: byte(n)} }

// drawConfig draws a ring with few tokens, some of them on points of partitions or on each other.
func drawConfig(rt *rapid.T) Config {
	c := Config{Partitions: 1 << rapid.IntRange(0, 6).Draw(rt, "log ring_size"),
		Copies: rapid.IntRange(1, 4).Draw(rt, "n"), NextCopies: rapid.IntRange(1, 4).Draw(rt, "next n")}
	token := rapid.OneOf(rapid.Uint32(), rapid.Map(rapid.Uint32Range(0, 63), func(n uint32) uint32 {
		return n << 26
	}))
	for i := range rapid.IntRange(1, 8).Draw(rt, "members") {
		c.Members = append(c.Members, Member{ID: testID(i + 1), Name: fmt.Sprint("n", i+1),
			Zone:   rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(rt, "zone"),
			State:  State(rapid.IntRange(int(Pending), int(Removed)).Draw(rt, "state")),
			Tokens: rapid.SliceOfNDistinct(token, 1, 4, rapid.ID[uint32]).Draw(rt, "tokens")})
	}
	return c
}

// grownRing returns a ring of members with tokens of their own.
func grownRing(partitions, copies, members int, zones ...string) *View {
	rng := rand.New(rand.NewPCG(uint64(partitions), uint64(members)))
	c := Config{Partitions: partitions, Copies: copies}
	for i := range members {
		m := Member{ID: testID(i + 1), Name: fmt.Sprint("n", i+1), State: Active,
			Tokens: mustNew(c).Tokens(rng), Protocol: Protocol{1, 1}}
		if len(zones) > 0 {
			m.Zone = zones[i%len(zones)]
		}
		c.Members = append(c.Members, m)
	}
	return mustNew(c)
}

func mustNew(c Config) *View {
	v, err := New(c)
	if err != nil {
		panic(err)
	}
	return v
}

func joiner(n, partitions int) Candidate {
	return Candidate{ID: testID(n), Name: fmt.Sprint("n", n), Protocol: Protocol{1, 2},
		Partitions: partitions, Free: 1 << 40}
}

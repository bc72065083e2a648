package gossip

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/ring"
)

// drawState draws a state out of a few, so that many clash.
func drawState(t *rapid.T, origins int) *state {
	s := &state{nodes: make(map[ring.ID]*presence)}
	for range rapid.IntRange(0, 4).Draw(t, "nodes") {
		c := ring.Candidate{ID: ring.ID{rapid.ByteRange(1, 4).Draw(t, "id")}, Name: "n", Partitions: 64,
			Zone: rapid.SampledFrom([]string{"", "a"}).Draw(t, "zone")}
		s.nodes[c.ID] = &presence{node: c, beat: rapid.Uint64Range(0, 2).Draw(t, "beat"),
			ring: ring.Version{Number: rapid.Uint64Range(0, 2).Draw(t, "ring number"),
				Sum: rapid.Uint64Range(0, 1).Draw(t, "ring sum")}}
	}
	if rapid.Bool().Draw(t, "ring") {
		m := ring.Member{ID: ring.ID{1}, Name: "n", State: ring.Active,
			Tokens:    []uint32{rapid.Uint32Range(5, 7).Draw(t, "token")},
			Addresses: []string{rapid.SampledFrom([]string{"x", "y"}).Draw(t, "address")}}
		v, err := ring.New(ring.Config{Number: rapid.Uint64Range(0, 2).Draw(t, "number"), Partitions: 64,
			Copies: 2, Members: []ring.Member{m}})
		if err != nil {
			t.Fatal(err)
		}
		s.ring = &register{origin: ring.ID{byte(rapid.IntRange(1, origins).Draw(t, "origin"))},
			firm: rapid.Bool().Draw(t, "firm"), view: v}
	}
	return s
}

func mergeAll(t *rapid.T, of ...*state) []byte {
	s := &state{nodes: make(map[ring.ID]*presence)}
	for _, o := range of {
		if _, err := s.Merge(o.Clone(), false); err != nil {
			t.Fatal(err)
		}
	}
	return appendState(nil, s)
}

// Rule 9: whatever way changes take, all nodes of a cluster end with the same.
func TestRule9MergesAreTheSameEverywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawState(t, 1), drawState(t, 1), drawState(t, 1)
		want := mergeAll(t, a, b, c)
		bc := b.Clone().(*state)
		if _, err := bc.Merge(c, false); err != nil {
			t.Fatal(err)
		}
		for _, got := range [][]byte{mergeAll(t, c, b, a), mergeAll(t, b, a, c, a), mergeAll(t, a, bc),
			mergeAll(t, bc, a)} {
			if !bytes.Equal(got, want) {
				t.Fatalf("%x\n%x", got, want)
			}
		}
	})
}

// What a merge says it changed is enough for others who had the same.
func TestChangesAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawState(t, 2), drawState(t, 2)
		change, err := a.Clone().Merge(b, false)
		if err != nil {
			t.Fatal(err)
		}
		want := mergeAll(t, a, b)
		if change == nil {
			change = &state{}
		}
		if got := mergeAll(t, a, change.(*state)); !bytes.Equal(got, want) {
			t.Fatalf("%x\n%x", got, want)
		}
	})
}

// A node is ahead exactly when its ring would replace the one here. Where two rings have one
// version, they differ in addresses at most, which come with the exchanges of everything.
func TestAheadIsWhatFollows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawState(t, 2), drawState(t, 2)
		if a.ring == nil || b.ring == nil {
			return
		}
		p := &presence{node: ring.Candidate{Partitions: 64}, origin: a.ring.origin, firm: a.ring.firm,
			ring: a.ring.view.Version()}
		same := a.ring.firm == b.ring.firm && a.ring.view.Version() == b.ring.view.Version()
		if got, want := p.isAheadOf(b.ring), !same && a.ring.supersedes(b.ring); got != want {
			t.Fatalf("ahead: %v, want %v", got, want)
		}
	})
}

// Two clusters with data never become one, whoever made more changes.
func TestClustersWithDataStayApart(t *testing.T) {
	view := func(number uint64) *ring.View {
		empty, err := ring.New(ring.Config{Partitions: 64, Copies: 1})
		if err != nil {
			t.Fatal(err)
		}
		v, err := ring.New(ring.Config{Number: number, Partitions: 64, Copies: 1,
			Members: []ring.Member{{ID: ring.ID{1}, Name: "n",
				State: ring.Active, Tokens: empty.Tokens(rand.New(rand.NewPCG(1, number)))}}})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	a, b := &register{ring.ID{1}, true, view(1)}, &register{ring.ID{2}, true, view(9)}
	if a.supersedes(b) || b.supersedes(a) {
		t.Error("one gives way")
	}
	if empty := (&register{ring.ID{3}, false, view(20)}); empty.supersedes(a) || !a.supersedes(empty) {
		t.Error("a cluster with data gives way to an empty one")
	}
}

func FuzzParseState(f *testing.F) {
	f.Add([]byte{})
	f.Add(appendState(nil, rapid.Custom(func(t *rapid.T) *state {
		return drawState(t, 2)
	}).Example(3)))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := new(parser).state(b)
		if err != nil {
			return
		}
		plain := appendState(nil, s)
		again, err := new(parser).state(plain)
		if err != nil || !bytes.Equal(appendState(nil, again), plain) {
			t.Fatalf("%x is read as %x: %v", b, plain, err)
		}
	})
}

// A ring that comes again is not built again, and no other is taken for it.
func TestAParserRemembersItsLastRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p parser
		for range 6 {
			s := drawState(t, 2)
			b := appendState(nil, s)
			first, err := p.state(b)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.state(b[:len(b)-1]); err == nil {
				t.Fatal("a state without its end is read")
			}
			second, err := p.state(b)
			if err != nil || second.ring != first.ring || !bytes.Equal(appendState(nil, second), b) {
				t.Fatalf("%x comes back as %x: %v", b, appendState(nil, second), err)
			}
		}
	})
}

// Who lacks the cookie neither reads a value nor makes one, and no value passes for another.
func TestSealed(t *testing.T) {
	ours, err := newSecrets("a")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := newSecrets("b")
	if err != nil {
		t.Fatal(err)
	}
	v, w := &Value{Name: "v"}, &Value{Name: "w"}
	b, err := ours.valueCodec(v).Encode(&valueState{v, []byte("text")})
	if err != nil || bytes.Contains(b, []byte("text")) {
		t.Fatalf("%q, %v", b, err)
	}
	if got, err := ours.valueCodec(v).Decode(b); err != nil ||
		string(got.(*valueState).bytes) != "text" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := theirs.valueCodec(v).Decode(b); err == nil || ours.label == theirs.label {
		t.Error("another cookie opens it")
	}
	if _, err := ours.valueCodec(w).Decode(b); err == nil {
		t.Error("it passes for another value")
	}
	if _, err := newSecrets(""); err == nil {
		t.Error("no cookie is enough")
	}
}

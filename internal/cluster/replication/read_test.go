package replication

import (
	"testing"

	"dalmatiner/internal/cluster/ring"
)

func copyID(n byte) ring.ID { return ring.ID{15: n} }

// Rule 7: one owner aggregates when R − 1 others report equal digests and nothing newer.
func TestRule7OneAggregatesOnlyWhenOthersAgree(t *testing.T) {
	a, same := CopyState{Node: copyID(1), Digest: 5}, CopyState{Node: copyID(2), Digest: 5}
	other, newer, hole := same, same, same
	other.Digest, newer.Newer, hole.Unknown = 6, true, true
	for name, test := range map[string]struct {
		states []CopyState
		r      int
		want   ring.ID
		ok     bool
	}{
		"alone, R = 1":          {[]CopyState{a}, 1, a.Node, true},
		"alone, R = 2":          {[]CopyState{a}, 2, ring.ID{}, false},
		"two agree":             {[]CopyState{a, same}, 2, a.Node, true},
		"two differ":            {[]CopyState{a, other}, 2, ring.ID{}, false},
		"two differ, R = 1":     {[]CopyState{a, other}, 1, ring.ID{}, false},
		"one is ahead":          {[]CopyState{a, newer}, 1, ring.ID{}, false},
		"a hole does not count": {[]CopyState{a, hole}, 2, ring.ID{}, false},
		"the first has a hole":  {[]CopyState{hole, a}, 1, a.Node, true},
		"nobody answered":       {nil, 1, ring.ID{}, false},
		"a hole, and two who agree": {[]CopyState{a, hole, {Node: copyID(3), Digest: 5}}, 2, a.Node,
			true},
	} {
		if got, ok := OneAggregates(test.states, test.r); got != test.want || ok != test.ok {
			t.Errorf("%s: %v %t", name, got, ok)
		}
	}
}

// Rule 7: a hole is no unset slot and does not count for R; deleted copies do not show.
func TestRule7AHoleIsNotUnset(t *testing.T) {
	r := read{fetch: Fetch{From: 0, Past: 3}, answers: map[ring.ID]Fetched{
		copyID(1): {Incarnation: 2, Slots: []Slot{{Value: Value{Word: 3}}, {Unknown: true},
			{Unknown: true}}},
		copyID(2): {Incarnation: 2, Slots: []Slot{{Value: Value{Word: 5}}, {Value: Value{Word: 1}},
			{Unknown: true}}},
	}}
	slots, fewest := r.merge()
	want := []Slot{{Value: Value{Word: 5}}, {Value: Value{Word: 1}}, {Unknown: true}}
	for i := range want {
		if slots[i] != want[i] {
			t.Errorf("slot %d: %+v, want %+v", i, slots[i], want[i])
		}
	}
	if fewest != 0 {
		t.Errorf("a slot that nobody knows has %d copies", fewest)
	}
	r.answers[copyID(3)] = Fetched{
		Incarnation: 1, Slots: []Slot{{Value: Value{Word: 9}}, {Value: Value{Word: 9}},
			{Value: Value{Word: 9}}}}
	if slots, fewest = r.merge(); slots[0].Value.Word != 5 || slots[2].Value.Word != 0 || fewest != 1 {
		t.Errorf("with a copy from before a deletion: %+v, %d", slots, fewest)
	}
}

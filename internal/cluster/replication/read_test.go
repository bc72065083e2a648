package replication

import (
	"testing"

	"dalmatiner/internal/cluster/ring"
)

func copyID(n byte) ring.ID { return ring.ID{15: n} }

// Rule 7: a hole is no unset slot and does not count for R; deleted copies do not show.
func TestRule7AHoleIsNotUnset(t *testing.T) {
	r := read{fetch: Fetch{From: 0, Past: 3}, answers: map[ring.ID]FetchReply{
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
	r.answers[copyID(3)] = FetchReply{
		Incarnation: 1, Slots: []Slot{{Value: Value{Word: 9}}, {Value: Value{Word: 9}},
			{Value: Value{Word: 9}}}}
	if slots, fewest = r.merge(); slots[0].Value.Word != 5 || slots[2].Value.Word != 0 || fewest != 1 {
		t.Errorf("with a copy from before a deletion: %+v, %d", slots, fewest)
	}
}

package replication

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// Rule 3: whatever nodes do to buckets, and in whatever order they tell each other, they end with
// the same ones, and no bucket that was deleted with the knowledge of all is there.
func TestRule3BucketsConverge(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		nodes := []*Buckets{NewBuckets(), NewBuckets(), NewBuckets()}
		node := rapid.IntRange(0, len(nodes)-1)
		clock := rapid.Uint64Range(1, 20)
		name := rapid.SampledFrom([]string{"a", "b"})
		for range rapid.IntRange(0, 25).Draw(rt, "steps") {
			of := nodes[node.Draw(rt, "node")]
			switch rapid.IntRange(0, 4).Draw(rt, "step") {
			case 0, 1:
				of.Create(Bucket{Name: name.Draw(rt, "name"),
					Resolution: int64(1000 * rapid.IntRange(1, 2).Draw(rt, "resolution")),
					Timestamps: rapid.Bool().Draw(rt, "hpts"), PPF: rapid.Int64Range(1, 2).Draw(rt, "ppf"),
					Copies:   rapid.IntRange(0, 2).Draw(rt, "n"),
					Lifetime: rapid.Int64Range(0, 3).Draw(rt, "lifetime")}, clock.Draw(rt, "clock"))
			case 2:
				of.Delete(name.Draw(rt, "name"), clock.Draw(rt, "clock"))
			case 3:
				for _, k := range of.All() {
					of.SetQuorum(k.ID(), rapid.IntRange(0, 2).Draw(rt, "r"), rapid.IntRange(0, 2).Draw(rt, "w"),
						clock.Draw(rt, "clock"))
				}
			default:
				of.Merge(nodes[node.Draw(rt, "from")])
			}
		}
		var orders []map[string]Bucket
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0, 1}} {
			told := NewBuckets()
			for _, i := range order {
				told.Merge(nodes[i])
			}
			names, _ := told.Names()
			orders = append(orders, names)
			if !maps.Equal(names, orders[0]) {
				rt.Fatalf("in the order %v the buckets are %v, else %v", order, names, orders[0])
			}
		}
		for range 2 {
			for _, i := range rapid.Permutation([]int{0, 1, 2, 0, 1, 2, 0, 1, 2}).Draw(rt, "order") {
				for j := range nodes {
					nodes[i].Merge(nodes[j])
				}
			}
		}
		want, conflicts := nodes[0].Names()
		for i, of := range nodes {
			got, n := of.Names()
			if !maps.Equal(got, want) || n != conflicts {
				rt.Fatalf("node %d has %v, node 0 %v", i, got, want)
			}
		}
		for _, of := range []string{"a", "b"} {
			nodes[0].Delete(of, clock.Draw(rt, "clock"))
		}
		for _, from := range []int{1, 0, 2} {
			nodes[2].Merge(nodes[from])
		}
		if got, _ := nodes[2].Names(); len(got) != 0 {
			rt.Fatalf("deleted, and here again: %v", got)
		}
	})
}

// Rule 3: created on two sides with other properties, the earlier clock has the name.
func TestRule3TheEarlierClockHasTheName(t *testing.T) {
	a, b := NewBuckets(), NewBuckets()
	late := a.Create(Bucket{Name: "x", Resolution: 1000}, 20)
	early := b.Create(Bucket{Name: "x", Resolution: 5000}, 10)
	same := b.Create(Bucket{Name: "y", Resolution: 1000, Lifetime: 7}, 5)
	a.Create(Bucket{Name: "y", Resolution: 1000, Lifetime: 9}, 6)
	a.Merge(b)
	names, conflicts := a.Names()
	if names["x"] != early || names["x~conflict"] != late || conflicts != 1 || len(names) != 3 {
		t.Errorf("%v, %d conflicts", names, conflicts)
	}
	if y := names["y"]; y.ID() != same.ID() || y.Created != 5 || y.Lifetime != 9 {
		t.Errorf("y is %+v", y)
	}
	before := names["x"].ID()
	a.Delete("x", 1)
	if again := a.Create(Bucket{Name: "x", Resolution: 5000}, 2); again.ID() == before {
		t.Error("a bucket that was created again has the id of the deleted one")
	}
	a.Merge(b)
	if names, _ = a.Names(); len(names) != 2 {
		t.Errorf("a deleted bucket comes back: %v", names)
	}
}

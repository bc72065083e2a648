package postings

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Lists are maps, whatever their lengths; sets of them obey the laws of sets.
func TestListsAreTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Lists
		model := make([]map[uint32]bool, 5)
		for i := range model {
			model[i] = make(map[uint32]bool)
		}
		list := rapid.IntRange(0, len(model)-1)
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			n := list.Draw(t, "list")
			adds := rapid.Bool().Draw(t, "adds")
			from, step := rapid.Uint32Range(0, 200).Draw(t, "from"),
				rapid.Uint32Range(1, 70000).Draw(t, "step")
			for i := range rapid.Uint32Range(1, 100).Draw(t, "ids") {
				id := from + i*step
				if adds != model[n][id] {
					if adds {
						l.Add(uint32(n), id)
						model[n][id] = true
					} else {
						l.Remove(uint32(n), id)
						delete(model[n], id)
					}
				}
			}
			requireEqual(t, "list", l.Set(uint32(n)), model[n])
			if l.Len(uint32(n)) != len(model[n]) {
				t.Fatalf("%d ids, want %d", l.Len(uint32(n)), len(model[n]))
			}
		}
		a, b := list.Draw(t, "a"), list.Draw(t, "b")
		both, either, only := map[uint32]bool{}, maps.Clone(model[b]), map[uint32]bool{}
		for id := range model[a] {
			either[id] = true
			if model[b][id] {
				both[id] = true
			} else {
				only[id] = true
			}
		}
		x, y := l.Set(uint32(a)), l.Set(uint32(b))
		requireEqual(t, "and", x.And(y), both)
		requireEqual(t, "or", x.Or(y), either)
		requireEqual(t, "and not", x.AndNot(y), only)
		if n := l.CommonLen(uint32(a), y); n != len(both) {
			t.Fatalf("%d ids in common, want %d", n, len(both))
		}
		var u Union
		l.Collect(&u, uint32(a))
		l.Collect(&u, uint32(b))
		l.Collect(&u, 99)
		requireEqual(t, "union", u.Set(), either)
		for n := range model { // what is emptied is used again
			for id := range model[n] {
				l.Remove(uint32(n), id)
			}
		}
		checkAllFree(t, &l)
	})
}

// checkAllFree demands that lists without an id use no block and no bitmap.
func checkAllFree(t *rapid.T, l *Lists) {
	for i := range l.blocks {
		free := uint32(0)
		for at := l.blocks[i].free; at != 0; at = l.blocks[i].get(i, at-1)[0] {
			free++
		}
		if free != l.blocks[i].used {
			t.Fatalf("class %d: %d of %d blocks are free", i, free, l.blocks[i].used)
		}
	}
	if len(l.free) != len(l.long) {
		t.Fatalf("%d of %d places of bitmaps are free", len(l.free), len(l.long))
	}
}

func requireEqual(t *rapid.T, what string, s Set, want map[uint32]bool) {
	got := slices.Collect(s.All())
	if w := slices.Sorted(maps.Keys(want)); !slices.Equal(got, w) || s.Len() != len(w) {
		t.Fatalf("%s: %d, want %d", what, got, w)
	}
	for _, id := range got {
		if !s.Contains(id) {
			t.Fatalf("%s contains not %d", what, id)
		}
	}
	for range s.All() {
		break
	}
}

// A list of few ids takes little, one of many less than 3 bytes an id.
func TestListsAreSmall(t *testing.T) {
	f := func(lists, ids uint32, most float64) {
		t.Helper()
		var l Lists
		for id := range ids {
			for n := range lists {
				l.Add(n, id*lists+n)
			}
		}
		if got := float64(l.Bytes()) / float64(lists*ids); got > most {
			t.Errorf("%d lists of %d ids: %.1f bytes an id, the limit is %v", lists, ids, got, most)
		}
	}
	f(100_000, 1, 12)
	f(100_000, 10, 14) // they grow side by side: none of their shorter blocks is used again
	f(100, 10_000, 3)
}

package ring

import "testing"

// A majority is one of the members of now and one of those to come; removed and pending ones have
// no say.
func TestMajority(t *testing.T) {
	of := func(states ...State) *View {
		c := Config{Partitions: 1, Copies: 1}
		for i, s := range states {
			c.Members = append(c.Members, Member{ID: ID{byte(i + 1)}, Name: string(rune('a' + i)), State: s,
				Tokens: []uint32{uint32(i)}})
		}
		v, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		v        *View
		has      []byte // first bytes of ids
		counting int
		want     bool
	}{
		{of(Active), []byte{1}, 1, true},
		{of(Active, Active), []byte{1}, 2, false},
		{of(Active, Active), []byte{1, 2}, 2, true},
		{of(Active, Active, Active), []byte{1}, 3, false},
		{of(Active, Active, Active), []byte{1, 3}, 3, true},
		{of(Active, Active, Active, Active), []byte{1, 3}, 4, false},
		{of(Active, Removed, Removed, Pending), []byte{1}, 1, true},
		{of(Active, Joining, Joining), []byte{1}, 3, false},    // of those of now, and of none to come
		{of(Active, Joining, Joining), []byte{2, 3}, 3, false}, // of those to come only
		{of(Active, Joining, Joining), []byte{1, 2}, 3, true},  // of both
		{of(Active, Leaving, Leaving), []byte{1}, 3, false},    // of those to come only
		{of(Active, Leaving, Leaving), []byte{1, 2}, 3, true},  // of both
		{of(Active, Active, Leaving), []byte{1, 3}, 3, false},  // of those of now only
		{of(Active, Active, Leaving), []byte{1, 2}, 3, true},   // of both
		{of(Active, Active, Leaving), []byte{1, 2, 3}, 3, true},
	} {
		among := make(map[ID]bool)
		for _, b := range c.has {
			among[ID{b}] = true
		}
		if got := Majority(c.v, func(id ID) bool {
			return among[id]
		}); got != c.want || len(Counting(c.v)) != c.counting {
			t.Errorf("%v of %d: %v, %d count; want %v, %d", c.has, len(c.v.Members()), got,
				len(Counting(c.v)), c.want, c.counting)
		}
	}
}

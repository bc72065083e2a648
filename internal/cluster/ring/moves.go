package ring

import "slices"

// Move is a partition that gets a new owner.
type Move struct {
	Partition int
	From      []ID // owners that have it; the new owner must equal their union. None: it is lost
	To        ID
}

// Moves returns what the changes under way still have to move, by partition.
func (v *View) Moves() []Move {
	return v.moves(0, func(_, _ []ID, owner bool) bool { return !owner })
}

// Fetches returns who must have what others have before the changes under way are complete: Moves,
// and where there will be fewer owners also those that stay, since a write may be on fewer of these
// than it had copies. n is the number of copies of the buckets with one of their own, 0 that of the
// ring.
func (v *View) Fetches(n int) []Move {
	return v.moves(n, func(from, to []ID, owner bool) bool { return !owner || len(to) < len(from) })
}

func (v *View) moves(n int, fetches func(from, to []ID, owner bool) bool) (moves []Move) {
	for p := range v.config.Partitions {
		current, future := v.Owners(nil, p, Current, n), v.Owners(nil, p, Future, n)
		from := slices.DeleteFunc(slices.Clone(current), func(id ID) bool {
			m, _ := v.Member(id)
			return m.State == Removed
		})
		for _, id := range future {
			if !fetches(current, future, slices.Contains(current, id)) {
				continue
			}
			others := slices.DeleteFunc(slices.Clone(from), func(of ID) bool { return of == id })
			moves = append(moves, Move{Partition: p, From: others, To: id})
		}
	}
	return moves
}

// IsChanging reports whether members join or leave, or n changes.
func (v *View) IsChanging() bool {
	c := &v.config
	return c.Copies != c.NextCopies || slices.ContainsFunc(c.Members, func(m Member) bool {
		return m.State == Joining || m.State == Leaving || m.State == Removed
	})
}

// Share is how much of all copies a member has.
type Share struct{ Current, Future float64 }

// Shares returns the share of every member, in the order of Members. Each column adds up to 1,
// or to 0 where nobody owns anything.
func (v *View) Shares() []Share {
	shares := make([]Share, len(v.config.Members))
	for role := range roles {
		per := min(v.Copies(Role(role)), v.lengths[role])
		one := 1 / float64(max(per*v.config.Partitions, 1))
		for p := range v.config.Partitions {
			for _, m := range v.order(p, Role(role))[:per] {
				if Role(role) == Current {
					shares[m].Current += one
				} else {
					shares[m].Future += one
				}
			}
		}
	}
	return shares
}

// Finish returns the view after the changes under way: members that joined own their share, those
// that left are gone. Whoever calls it has seen that nothing is left to move.
func (v *View) Finish() (*View, error) {
	return v.withChange(func(c *Config) {
		c.Copies = c.NextCopies
		c.Members = slices.DeleteFunc(c.Members, func(m Member) bool {
			return m.State == Leaving || m.State == Removed
		})
		for i := range c.Members {
			if m := &c.Members[i]; m.State == Joining {
				m.State, m.Replaces = Active, ID{}
			}
		}
	})
}

// Undo returns the view as before the changes under way: members that were joining have no
// share, those that were leaving stay. A removed member does not come back: what it owned
// is still to be moved.
func (v *View) Undo() (*View, error) {
	return v.withChange(func(c *Config) {
		c.NextCopies = c.Copies
		for i := range c.Members {
			switch m := &c.Members[i]; {
			case m.State == Joining:
				m.State, m.Tokens, m.Replaces = Pending, nil, ID{}
			case m.State == Leaving:
				m.State = Active
			}
		}
	})
}

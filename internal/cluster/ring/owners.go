package ring

import (
	"slices"
	"sort"
)

// arrange computes for every partition in which order members are asked in a role. The order
// holds for every n: the owners are its first n.
func (v *View) arrange(role Role) {
	n := 0
	for i := range v.config.Members {
		if role.has(v.config.Members[i].State) {
			n++
		}
	}
	v.lengths[role] = n
	order := make([]uint16, 0, n*v.config.Partitions)
	if n > 0 {
		for p := range v.config.Partitions {
			order = append(order, v.clockwise(p, role, n)...)
		}
	}
	v.orders[role] = order
}

// clockwise returns the members of a role as they follow each other from the point of a
// partition. The first of every zone come before all second ones, so n copies lie in n zones
// where there are as many. A member without a zone is a zone of its own.
func (v *View) clockwise(partition int, role Role, n int) []uint16 {
	start, found := v.search(v.Point(partition)), make([]uint16, 0, n)
	seen := make([]bool, len(v.config.Members))
	for i := 0; len(found) < n; i++ {
		m := v.places[(start+i)%len(v.places)].member
		if !seen[m] && role.has(v.config.Members[m].State) {
			found = append(found, m)
		}
		seen[m] = true
	}
	rounds, inZone := make(map[uint16]int, n), make(map[string]int)
	for _, m := range found {
		if zone := v.config.Members[m].Zone; zone != "" {
			rounds[m] = inZone[zone]
			inZone[zone]++
		}
	}
	slices.SortStableFunc(found, func(a, b uint16) int { return rounds[a] - rounds[b] })
	return found
}

// search returns the first place strictly behind a point, as dskit's ring does: a token
// does not own the point it lies on.
func (v *View) search(point uint32) int {
	i := sort.Search(len(v.places), func(i int) bool { return v.places[i].token > point })
	return i % max(len(v.places), 1)
}

// order returns the members in the order in which they are asked for a partition.
func (v *View) order(partition int, role Role) []uint16 {
	n := v.lengths[role]
	return v.orders[role][partition*n : (partition+1)*n]
}

// Owners appends the owners of a partition in a role to dst, in ring order: n members, or all
// that can own something where there are fewer. n = 0 is the n of the ring.
func (v *View) Owners(dst []ID, partition int, role Role, n int) []ID {
	if n == 0 {
		n = v.Copies(role)
	}
	order := v.order(partition, role)
	for _, m := range order[:min(n, len(order))] {
		dst = append(dst, v.config.Members[m].ID)
	}
	return dst
}

// LeavingReadQuorum returns the answers that a read at a leaving member needs: least owners, and
// one of besides unless besides is empty. At a member that does not leave both are zero.
//
// The leaving member may be the last to hear that it has left, and nobody waits for it. The members
// that stay have heard by then and refuse reads under the older ring. So one of them has to answer.
func LeavingReadQuorum(v *View, reader ID, owners []ID) (least int, besides []ID) {
	leaves := func(id ID) bool {
		m, is := v.Member(id)
		return is && m.State == Leaving
	}
	if !leaves(reader) {
		return 0, nil
	}
	for _, id := range owners {
		if leaves(id) {
			least++
		}
	}
	if least < len(owners) {
		return least + 1, nil
	}
	for i := range v.config.Members {
		if m := &v.config.Members[i]; m.State == Active {
			besides = append(besides, m.ID)
		}
	}
	return 0, besides
}

// Owns reports whether a member is an owner of a partition now, or will be. Others refuse
// what they are sent for it, unless they stand in for an owner.
func (v *View) Owns(id ID, partition, n int) bool {
	var buf [2 * MaxCopies]ID
	owners := v.Owners(v.Owners(buf[:0], partition, Current, n), partition, Future, n)
	return slices.Contains(owners, id)
}

// Target is one of those who get a write.
type Target struct {
	Node    ID
	For     ID   // the owner it keeps a hint for; its own id if it is an owner
	Joining bool // For owns the partition only later: its acknowledgement counts for none of the W
}

// Hint reports whether the target stands in for an owner that is down.
func (t Target) Hint() bool { return t.Node != t.For }

// Targets appends to dst who gets a write to a partition: its current owners in ring order,
// then those who only will be. In place of each one that is down comes the next member that
// is up and gets nothing of this write yet. Where none is left, the copy is missing. Every
// target is another node. There is at least one while any active member is up.
func (v *View) Targets(dst []Target, partition, n int, up func(ID) bool) []Target {
	var buf [2 * MaxCopies]ID
	owners := v.Owners(buf[:0], partition, Current, n)
	current := len(owners)
	for _, id := range v.Owners(nil, partition, Future, n) {
		if !slices.Contains(owners, id) {
			owners = append(owners, id)
		}
	}
	spare := v.spares(partition, owners, up)
	for i, owner := range owners {
		t := Target{Node: owner, For: owner, Joining: i >= current}
		if !v.serves(owner, up) {
			if len(spare) == 0 {
				continue
			}
			t.Node, spare = spare[0], spare[1:]
		}
		dst = append(dst, t)
	}
	return dst
}

// serves reports whether a member can be asked at all.
func (v *View) serves(id ID, up func(ID) bool) bool {
	m, ok := v.Member(id)
	return ok && m.State != Removed && up(id)
}

// spares returns who stands in for owners that are down, in ring order. Only active members do. The
// last report of a leaving member says that it has no hints, and may be older than a hint that it
// takes. Such a hint would be gone with the member. One that joins can be gone at once.
func (v *View) spares(partition int, owners []ID, up func(ID) bool) (spare []ID) {
	for _, role := range []Role{Current, Future} {
		for _, m := range v.order(partition, role) {
			id, state := v.config.Members[m].ID, v.config.Members[m].State
			if state == Active && !slices.Contains(owners, id) && !slices.Contains(spare, id) &&
				v.serves(id, up) {
				spare = append(spare, id)
			}
		}
	}
	return spare
}

// Shortage says of what a cluster has too little for what n promises.
type Shortage struct {
	Members bool // fewer members than copies
	Zones   bool // zones are named, but fewer than copies: losing one takes two copies of something
}

// Shortage looks at the members of a role.
func (v *View) Shortage(role Role) Shortage {
	zones, unnamed := make(map[string]bool), 0
	for i := range v.config.Members {
		if m := &v.config.Members[i]; role.has(m.State) {
			if m.Zone == "" {
				unnamed++
			} else {
				zones[m.Zone] = true
			}
		}
	}
	n := v.Copies(role)
	return Shortage{Members: v.lengths[role] < n, Zones: len(zones)+unnamed < min(n, v.lengths[role])}
}

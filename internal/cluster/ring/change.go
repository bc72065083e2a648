package ring

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Action is a kind of change.
type Action uint8

// The actions that can be staged.
const (
	Join        Action = iota // Member takes a share
	Leave                     // Node gives its share to others, then it is gone
	Replace                   // Member takes the share of Node, which leaves
	ForceRemove               // Node is gone: others take its share from the other copies
	SetCopies                 // n becomes Copies
)

var actionNames = [...]string{
	Join:        "join",
	Leave:       "leave",
	Replace:     "replace",
	ForceRemove: "force-remove",
	SetCopies:   "set-n",
}

// String returns the name of the command that stages it.
func (a Action) String() string { return actionNames[a] }

// Change is what an operator asks for.
type Change struct {
	Action Action
	Node   string    // name of the member that leaves
	Member Candidate // that joins
	Copies int
}

// String returns the change as plans print it.
func (c Change) String() string {
	switch c.Action {
	case Join:
		return fmt.Sprintf("%-14s '%s'", c.Action, c.Member.Name)
	case Replace:
		return fmt.Sprintf("%-14s '%s' with '%s'", c.Action, c.Node, c.Member.Name)
	case SetCopies:
		return fmt.Sprintf("%-14s n = %d", c.Action, c.Copies)
	}
	return fmt.Sprintf("%-14s '%s'", c.Action, c.Node)
}

// Candidate is a node that wants to join, as it describes itself.
type Candidate struct {
	ID         ID
	Name       string
	Addresses  []string
	Zone       string
	Protocol   Protocol
	Partitions int   // its ring_size
	HasData    bool  // its data directory holds points, buckets or tags
	Free       int64 // bytes of its disk
}

// ErrRefused is wrapped by the error of a change that is not made.
var ErrRefused = errors.New("refused")

// ErrStale is wrapped by the error of a commit whose plan was made for another ring.
var ErrStale = errors.New("the ring has changed since the plan was made: look at the new plan, " +
	"then commit that")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// apply makes one change to the members of a view.
func (v *View) apply(c Change, rng *rand.Rand) (*View, error) {
	switch c.Action {
	case Join:
		if err := v.admits(&c.Member); err != nil {
			return nil, err
		}
		return v.add(c.Member, v.Tokens(rng), ID{})
	case Leave:
		return v.leave(c.Node, Leaving)
	case Replace:
		return v.replace(c)
	case ForceRemove:
		return v.leave(c.Node, Removed)
	case SetCopies:
		if n := v.lengths[Future]; c.Copies > n {
			return nil, refuse("n = %d needs as many members, there will be %d: let others join first",
				c.Copies, n)
		}
		return v.withChange(func(next *Config) { next.NextCopies = c.Copies })
	}
	return nil, refuse("unknown action %d", c.Action)
}

// admits says why a node cannot join, and what to do about it.
func (v *View) admits(c *Candidate) error {
	if m, ok := v.MemberNamed(c.Name); ok && m.ID != c.ID {
		return refuse("%s is known with another data directory, %s; this one is %s: use replace, or "+
			"start the node with the directory it had",
			c.Name, m.ID, c.ID)
	}
	if m, ok := v.Member(c.ID); ok && m.Name != c.Name {
		return refuse("the data directory %s belongs to %s: start %s with a directory of its own", c.ID,
			m.Name, c.Name)
	} else if ok && m.State != Pending {
		return refuse("%s is a member already, %s", c.Name, m.State)
	}
	return v.fits(c)
}

// fits says why a node cannot be a member under any name. What a pending member has is of this
// ring: its join was taken back.
func (v *View) fits(c *Candidate) error {
	if m, is := v.Member(c.ID); c.HasData && !(is && m.State == Pending) {
		return refuse("%s has data: start it with an empty data directory, or load its data as a "+
			"client would", c.Name)
	}
	if c.Partitions != v.Partitions() {
		return refuse("ring_size of %s is %d, that of the cluster %d: set it in its configuration",
			c.Name, c.Partitions, v.Partitions())
	}
	for i := range v.config.Members {
		m := &v.config.Members[i]
		if _, ok := c.Protocol.Speaks(m.Protocol); !ok && m.State != Removed {
			return refuse("%s speaks versions %d to %d of the protocol, %s %d to %d: upgrade in steps of "+
				"one minor version",
				c.Name, c.Protocol.Min, c.Protocol.Max, m.Name, m.Protocol.Min, m.Protocol.Max)
		}
	}
	return nil
}

// add makes a candidate a joining member. It may be a pending one already.
func (v *View) add(c Candidate, tokens []uint32, replaces ID) (*View, error) {
	return v.withChange(func(next *Config) {
		next.Members = slices.DeleteFunc(next.Members, func(m Member) bool { return m.ID == c.ID })
		next.Members = append(next.Members, Member{ID: c.ID, Name: c.Name, Addresses: c.Addresses,
			Zone:  c.Zone,
			State: Joining, Tokens: tokens, Protocol: c.Protocol, Replaces: replaces})
	})
}

// leave makes a member give up its share.
func (v *View) leave(name string, as State) (*View, error) {
	m, ok := v.MemberNamed(name)
	if !ok {
		return nil, refuse("no member is called %s", name)
	}
	owns := m.State == Active || m.State == Leaving && as == Removed
	switch {
	case m.State == Pending, m.State == Joining: // it has nothing that others lack
		return v.withChange(func(next *Config) {
			next.Members = slices.DeleteFunc(next.Members, func(o Member) bool { return o.ID == m.ID })
		})
	case !owns:
		return nil, refuse("%s is %s already", name, m.State)
	}
	left := v.lengths[Future]
	if m.State == Active {
		left--
	}
	if left < 1 {
		return nil, refuse("%s is the last member: stop it instead", name)
	}
	if n := v.Copies(Future); as == Leaving && left < n {
		return nil, refuse("without %s %d members are left for n = %d: let another join, or set n "+
			"lower first", name, left, n)
	}
	return v.withState(m.ID, as)
}

// withState gives a member another state.
func (v *View) withState(id ID, s State) (*View, error) {
	i := v.index[id]
	return v.withChange(func(next *Config) { next.Members[i].State = s })
}

// replace lets a new data directory take over the share of another. The new one may have the
// old one's name: then the old one is listed as NAME~replaced until it is gone.
func (v *View) replace(c Change) (*View, error) {
	old, ok := v.MemberNamed(c.Node)
	switch {
	case !ok:
		return nil, refuse("no member is called %s", c.Node)
	case old.State != Active && old.State != Removed:
		return nil, refuse("%s is %s: only an active or a removed member can be replaced", c.Node,
			old.State)
	case old.ID == c.Member.ID:
		return nil, refuse("%s has this data directory already: start it, nothing needs to be replaced",
			c.Node)
	}
	if err := v.fits(&c.Member); err != nil {
		return nil, err
	}
	tokens, id := v.adjacentTokens(old), old.ID
	next, err := v.withChange(func(next *Config) {
		m := &next.Members[v.index[id]]
		if m.State == Active {
			m.State = Leaving
		}
		if m.Name == c.Member.Name {
			m.Name += "~replaced"
		}
	})
	if err != nil {
		return nil, err
	}
	if err := next.admits(&c.Member); err != nil {
		return nil, err
	}
	return next.add(c.Member, tokens, id)
}

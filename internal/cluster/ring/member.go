package ring

import (
	"encoding/hex"
	"fmt"
)

// ID identifies a data directory, whatever its node is called and wherever it runs.
type ID [16]byte

// String returns the id as 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText returns the same, for JSON.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what String returns.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) != 2*len(id) {
		return fmt.Errorf("an id of a node has %d hexadecimal digits, this one has %d characters",
			2*len(id), len(text))
	}
	_, err := hex.Decode(id[:], text)
	return err
}

// State says what a member owns, and what it is about to own.
type State uint8

// The states of a member.
const (
	Pending State = iota + 1 // staged: it has no share, now or later, before the commit
	Joining                  // it fetches what it will own, and takes new writes of that
	Active                   // it owns its share
	Leaving                  // it owns its share until those who take it over have everything
	Removed                  // as Leaving, but its data are gone or given up: nothing is asked of it
)

var stateNames = [...]string{
	Pending: "pending",
	Joining: "joining",
	Active:  "active",
	Leaving: "leaving",
	Removed: "removed",
}

// String returns the name of the state in lower case.
func (s State) String() string {
	if s < Pending || s > Removed {
		return fmt.Sprintf("state %d", uint8(s))
	}
	return stateNames[s]
}

// Role says for which time an owner is asked.
type Role uint8

// The roles of owners. Where no member joins or leaves both have the same owners.
const (
	Current Role = iota // who answers reads, and whose acknowledgements count
	Future              // who does once every change under way is complete
	roles   = iota
)

// has reports whether members of a state can own something in a role.
func (r Role) has(s State) bool {
	switch s {
	case Active:
		return true
	case Leaving, Removed:
		return r == Current
	case Joining:
		return r == Future
	}
	return false
}

// Protocol is the range of versions of the protocol between nodes that a member speaks.
type Protocol struct{ Min, Max uint16 }

// Speaks returns the highest version that both sides speak.
func (p Protocol) Speaks(o Protocol) (version uint16, ok bool) {
	version = min(p.Max, o.Max)
	return version, version >= max(p.Min, o.Min)
}

// Member is a node of the cluster.
type Member struct {
	ID        ID
	Name      string   // of the node, which people use
	Addresses []string // where the others reach it
	Zone      string   // what fails together; members without one fail each on their own
	State     State
	Tokens    []uint32 // its places on the circle
	Protocol  Protocol
	Replaces  ID // whose share a joining member takes over, if it is another's
}

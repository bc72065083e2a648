// Package ring says which members of a cluster own which series. Everything here is plain
// values: a View never changes, and whoever has the same View gets the same answers.
//
// The circle has 2³² points. Every member has TokensPerMember tokens on it. A series belongs to
// one of ring_size partitions for all time, by the top bits of its hash; a partition has a point
// on the circle; its owners are the first n distinct members clockwise from there.
package ring

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/zeebo/xxh3"

	"dalmatiner/internal/model/metric"
)

// The bounds of a cluster.
const (
	MaxPartitions = 1 << 15
	MaxCopies     = 15
	MaxMembers    = 1000
)

// ErrInvalid is wrapped by the error of a cluster that cannot be.
var ErrInvalid = errors.New("not a valid ring")

// Version says which View was meant. Two views with the same Version have the same owners.
type Version struct {
	Number uint64 // of changes. Who has the lower one is behind
	// of everything that decides who owns what: commits on both sides of a partition differ here
	Sum uint64
}

// String returns the version as people compare it: 12-1f00c2a7.
func (v Version) String() string { return fmt.Sprintf("%d-%08x", v.Number, uint32(v.Sum)) }

// Config is what a View is made of.
type Config struct {
	Number     uint64 // of changes so far
	Partitions int    // ring_size, a power of two
	Copies     int    // n
	NextCopies int    // n after a change that is under way; 0: no such change
	Members    []Member
}

// View is who owns what at one time. It is immutable, and may be used concurrently.
type View struct {
	config  Config // members in the order of their ids
	version Version
	shift   int // from the top 64 bits of a hash to a partition
	index   map[ID]int
	places  []place // clockwise
	orders  [roles][]uint16
	lengths [roles]int // members in each order of the role
}

// place is a token and whose it is.
type place struct {
	token  uint32
	member uint16
}

// New makes a View. What it is given is copied.
func New(c Config) (*View, error) {
	if c.NextCopies == 0 {
		c.NextCopies = c.Copies
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	members := make([]Member, len(c.Members))
	for i, m := range c.Members {
		m.Tokens, m.Addresses = slices.Clone(m.Tokens), slices.Clone(m.Addresses)
		slices.Sort(m.Tokens)
		members[i] = m
	}
	slices.SortFunc(members, func(a, b Member) int { return slices.Compare(a.ID[:], b.ID[:]) })
	c.Members = members
	v := &View{
		config: c,
		shift:  64 - bits.TrailingZeros(uint(c.Partitions)),
		index:  make(map[ID]int, len(members)),
	}
	for i, m := range members {
		v.index[m.ID] = i
		for _, t := range m.Tokens {
			v.places = append(v.places, place{t, uint16(i)})
		}
	}
	// Two members with one token both have it: the lower id comes first, on every node.
	slices.SortFunc(v.places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.token, b.token), cmp.Compare(a.member, b.member))
	})
	for role := range roles {
		v.arrange(Role(role))
	}
	v.version = Version{Number: c.Number, Sum: v.sum()}
	return v, nil
}

func (c *Config) check() error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
	}
	switch {
	case c.Partitions < 1 || c.Partitions > MaxPartitions || c.Partitions&(c.Partitions-1) != 0:
		return invalid("ring_size is %d: use a power of two up to %d", c.Partitions, MaxPartitions)
	case min(c.Copies, c.NextCopies) < 1 || max(c.Copies, c.NextCopies) > MaxCopies:
		return invalid("n is %d and becomes %d: use 1 to %d", c.Copies, c.NextCopies, MaxCopies)
	case len(c.Members) > MaxMembers:
		return invalid("%d members, at most %d are possible", len(c.Members), MaxMembers)
	}
	ids, names := make(map[ID]bool), make(map[string]bool)
	for i := range c.Members {
		m := &c.Members[i]
		switch {
		case m.ID == ID{} || m.Name == "":
			return invalid("a member has no id or no name")
		case ids[m.ID]:
			return invalid("%s has the id of another member, %s", m.Name, m.ID)
		case names[m.Name]:
			return invalid("two members are called %s", m.Name)
		case m.State < Pending || m.State > Removed:
			return invalid("%s has %s", m.Name, m.State)
		case m.State != Pending && len(m.Tokens) == 0:
			return invalid("%s is %s without a token", m.Name, m.State)
		}
		ids[m.ID], names[m.Name] = true, true
	}
	return nil
}

// sum covers what decides who owns what, and nothing else: a new address is no new ring.
func (v *View) sum() uint64 {
	var b []byte
	for _, n := range []int{v.config.Partitions, v.config.Copies, v.config.NextCopies,
		len(v.config.Members)} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	for _, m := range v.config.Members {
		b = append(append(b, m.ID[:]...), byte(m.State))
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(m.Zone))), m.Zone...)
		b = binary.BigEndian.AppendUint32(b, uint32(len(m.Tokens)))
		for _, t := range m.Tokens {
			b = binary.BigEndian.AppendUint32(b, t)
		}
	}
	return xxh3.Hash(b)
}

// Version returns which View this is.
func (v *View) Version() Version { return v.version }

// Partitions returns ring_size.
func (v *View) Partitions() int { return v.config.Partitions }

// Copies returns n: how many owners a partition has in a role, if there are as many members.
func (v *View) Copies(role Role) int {
	if role == Future {
		return v.config.NextCopies
	}
	return v.config.Copies
}

// Members returns all members in the order of their ids. The slice must not be changed.
func (v *View) Members() []Member { return v.config.Members }

// Member returns the member with an id. It must not be changed.
func (v *View) Member(id ID) (*Member, bool) {
	i, ok := v.index[id]
	if !ok {
		return nil, false
	}
	return &v.config.Members[i], true
}

// MemberNamed returns the member that has a name. It must not be changed.
func (v *View) MemberNamed(name string) (*Member, bool) {
	for i := range v.config.Members {
		if m := &v.config.Members[i]; m.Name == name {
			return m, true
		}
	}
	return nil, false
}

// Partition returns the partition of a series. The values of a metric and their timestamps
// are in the same one.
func (v *View) Partition(series metric.SeriesID) int {
	// A shift by 64, of a ring with one partition, gives 0.
	return int(binary.BigEndian.Uint64(series[:8]) >> v.shift)
}

// Point returns the point of a partition on the circle.
func (v *View) Point(partition int) uint32 {
	return uint32(uint64(partition) << 32 / uint64(v.config.Partitions))
}

// withChange returns the next view, after a change of what it is made of.
func (v *View) withChange(change func(c *Config)) (*View, error) {
	c := v.config
	c.Members = slices.Clone(c.Members)
	c.Number++
	change(&c)
	return New(c)
}

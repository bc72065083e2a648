package ring

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"time"
)

// Sizes is what a plan needs to know of the data.
type Sizes struct {
	Partition []Size       // of one copy, by partition; shorter ones count as nothing behind their end
	Free      map[ID]int64 // of disks, by member; a member that is not in it is not looked at
	Rate      int64        // points a second that a member takes at most; 0 gives no estimate
	Empty     bool         // nobody has data: members that join need not fetch anything
}

// Size is what one copy of a partition has.
type Size struct {
	Bytes  int64
	Points int64
}

// Plan is what staged changes would do. Nothing has happened yet.
type Plan struct {
	Base     Version // the ring for which it was made
	Changes  []Change
	Next     *View // the ring after the commit
	Final    *View // the ring when everything has moved
	Moves    []Move
	Incoming map[ID]Size   // what a member fetches
	Free     map[ID]int64  // of the disks of members, as far as they are known
	Time     time.Duration // estimate; 0 where no rate was given
	Warnings []string      // what is worse afterwards, or lost
}

// Bytes returns how much is copied from member to member.
func (p *Plan) Bytes() (sum int64) {
	for _, n := range p.Incoming {
		sum += n.Bytes
	}
	return sum
}

// Partitions returns how many partitions each member fetches.
func (p *Plan) Partitions() map[ID]int {
	n := make(map[ID]int)
	for _, m := range p.Moves {
		n[m.To]++
	}
	return n
}

// Plan says what changes would do, or why they cannot be made and what to do instead. The
// tokens of new members come from rng: what is committed is this plan, not another one.
func (v *View) Plan(changes []Change, s Sizes, rng *rand.Rand) (*Plan, error) {
	if len(changes) == 0 {
		return nil, refuse("no changes are staged")
	}
	next := v
	for _, c := range changes {
		if c.Action != ForceRemove && v.IsChanging() {
			return nil, refuse("a change is under way, %d partitions are still to move: wait for them, or "+
				"undo it", len(v.Moves()))
		}
		after, err := next.apply(c, rng)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Action, err)
		}
		next = after
	}
	next, err := next.withChange(func(c *Config) { c.Number = v.version.Number + 1 })
	if err != nil {
		return nil, err
	}
	final, err := next.Finish()
	if err != nil {
		return nil, err
	}
	if s.Empty {
		// What has no data moves nothing: the cluster grows at once.
		next, err = final.withChange(func(c *Config) { c.Number = v.version.Number + 1 })
		if err != nil {
			return nil, err
		}
	}
	p := &Plan{
		Base:     v.version,
		Changes:  changes,
		Next:     next,
		Final:    final,
		Moves:    next.Moves(),
		Incoming: make(map[ID]Size),
	}
	for _, m := range p.Moves {
		if m.Partition < len(s.Partition) && len(m.From) > 0 {
			n, one := p.Incoming[m.To], s.Partition[m.Partition]
			p.Incoming[m.To] = Size{Bytes: n.Bytes + one.Bytes, Points: n.Points + one.Points}
		}
	}
	p.Free = p.disks(s.Free)
	if err := p.room(); err != nil {
		return nil, err
	}
	p.estimate(s.Rate)
	p.warn()
	return p, nil
}

// disks returns what is free of disks, those of members that join included.
func (p *Plan) disks(free map[ID]int64) map[ID]int64 {
	out := maps.Clone(free)
	if out == nil {
		out = make(map[ID]int64)
	}
	for _, c := range p.Changes {
		if _, known := out[c.Member.ID]; !known && (c.Action == Join || c.Action == Replace) {
			out[c.Member.ID] = c.Member.Free
		}
	}
	return out
}

// room refuses what does not fit on a disk.
func (p *Plan) room() error {
	for _, m := range p.Next.Members() { // in order, so that the same plan has the same answer
		has, known := p.Free[m.ID]
		if need := p.Incoming[m.ID].Bytes; known && need > has {
			return refuse("%s would fetch %d bytes and has %d free: give it a larger disk, or let more "+
				"nodes join in one plan", m.Name, need, has)
		}
	}
	return nil
}

// estimate says how long the slowest member takes. They fetch at the same time.
func (p *Plan) estimate(rate int64) {
	if rate <= 0 {
		return
	}
	for _, n := range p.Incoming {
		p.Time = max(p.Time, time.Duration(float64(n.Points)/float64(rate)*float64(time.Second)))
	}
}

// warn finds what an operator should know before the commit.
func (p *Plan) warn() {
	say := func(format string, args ...any) {
		p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
	}
	lost := make(map[int]bool)
	for _, m := range p.Moves {
		if len(m.From) == 0 {
			lost[m.Partition] = true
		}
	}
	if len(lost) > 0 {
		say("%d partitions have no copy left: their points are lost", len(lost))
	}
	short := p.Final.Shortage(Current)
	if short.Members {
		say("fewer members than copies: n = %d, members %d", p.Final.Copies(Current),
			p.Final.lengths[Current])
	}
	if short.Zones {
		say("fewer zones than copies: the loss of one zone takes two copies of some points")
	}
}

// Commit returns the ring after a plan, if the ring is still the one for which it was made.
func (v *View) Commit(p *Plan) (*View, error) {
	if v.version != p.Base {
		return nil, fmt.Errorf("%w: it is %s, the plan is for %s", ErrStale, v.version, p.Base)
	}
	return p.Next, nil
}

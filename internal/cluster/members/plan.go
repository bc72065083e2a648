package members

import (
	"context"
	"errors"
	"fmt"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/host/suggest"
)

// Plan is what the staged changes would do to a ring.
type Plan struct {
	*ring.Plan
	Staged uint64 // says which changes are meant: others may be staged since
	open   stagedEntries
}

// StagedChanges returns the changes that wait for a commit, in the order in which they were staged.
func (m *Members) StagedChanges() ([]Change, error) {
	s, err := m.stagedValue()
	if err != nil {
		return nil, err
	}
	var out []Change
	for _, e := range s.open() {
		out = append(out, e.Change)
	}
	return out, nil
}

func (m *Members) stagedValue() (stagedEntries, error) {
	b, err := m.o.Gossip.Get(stagedValue)
	if err != nil {
		return nil, err
	}
	return parseStaged(b)
}

// Stage adds a change to those that wait for a commit, if it can be made together with them. It
// replaces what was staged for the same member.
func (m *Members) Stage(ctx context.Context, c Change) error {
	s, err := m.stagedValue()
	if err != nil {
		return err
	}
	e := entry{Subject: c.subject(), Clock: s.clock(uint64(m.o.Now().UnixNano())), Change: c}
	if _, err := m.plan(m.o.Gossip.View(), s.withEntry(e)); err != nil {
		return err
	}
	return m.putStaged(ctx, stagedEntries{e})
}

func (m *Members) putStaged(ctx context.Context, s stagedEntries) error {
	b, err := s.encode()
	if err != nil {
		return err
	}
	return m.o.Gossip.Put(ctx, stagedValue, b)
}

// Plan returns what a commit would do; nil if nothing is staged.
func (m *Members) Plan() (*Plan, error) {
	s, err := m.stagedValue()
	if err != nil || len(s.open()) == 0 {
		return nil, err
	}
	return m.plan(m.o.Gossip.View(), s)
}

func (m *Members) plan(v *ring.View, s stagedEntries) (*Plan, error) {
	open := s.open()
	digest, err := open.digest()
	if err != nil {
		return nil, err
	}
	candidates := m.o.Gossip.Candidates()
	var changes []ring.Change
	for _, e := range open {
		c, err := resolve(e.Change, v, candidates)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	all, err := m.progress()
	if err != nil {
		return nil, err
	}
	for i := range changes {
		if r := all.reportOf(changes[i].Member.ID); r != nil {
			changes[i].Member.Free = r.Free
		}
	}
	data := sizes(v, all)
	data.Rate = m.o.Rate
	p, err := v.Plan(changes, data, seeded(v.Version(), digest))
	if err != nil {
		return nil, err
	}
	return &Plan{Plan: p, Staged: digest, open: open}, nil
}

// resolve finds the nodes that a change names.
func resolve(c Change, v *ring.View, candidates []ring.Candidate) (ring.Change, error) {
	out := ring.Change{Action: c.Action, Node: c.Node, Copies: c.Copies}
	known := suggest.NewCollector(c.Node)
	members := v.Members()
	for i := range members {
		known.Add(members[i].Name)
	}
	if _, ok := v.MemberNamed(c.Node); c.Node != "" && !ok {
		return out, fmt.Errorf("%s: %w: no member is called %s%s", c.Action, ring.ErrRefused, c.Node,
			suggest.Hint(known.Names()))
	}
	if c.New == "" {
		return out, nil
	}
	near := suggest.NewCollector(c.New)
	for i := range candidates {
		if out.Member = candidates[i]; out.Member.Name == c.New {
			return out, nil
		}
		near.Add(candidates[i].Name)
	}
	switch m, ok := v.MemberNamed(c.New); {
	case ok && m.State == ring.Pending:
		return out, fmt.Errorf("%s: %w: %s is not up: its join was taken back, and it joins again when "+
			"it runs", c.Action, ring.ErrRefused, c.New)
	case ok:
		return out, fmt.Errorf("%s: %w: %s is a member already", c.Action, ring.ErrRefused, c.New)
	}
	return out, fmt.Errorf("%s: %w: no node that is called %s is up and waits to join%s: start it "+
		"with cluster.join set to the address where a member gossips",
		c.Action, ring.ErrRefused, c.New, suggest.Hint(near.Names()))
}

// sizes estimates what a plan moves. A series is in any partition with the same chance, so a share
// of what a node has is about as large as any other.
func sizes(v *ring.View, all progress) ring.Sizes {
	s := ring.Sizes{Partition: make([]ring.Size, v.Partitions()), Free: make(map[ring.ID]int64)}
	owned := make(map[ring.ID]int64)
	owners := make([][]ring.ID, v.Partitions())
	for p := range owners {
		owners[p] = v.Owners(nil, p, ring.Current, 0)
		for _, id := range owners[p] {
			owned[id]++
		}
	}
	for i := range all {
		if _, is := v.Member(all[i].Node); is && all[i].Free > 0 {
			s.Free[all[i].Node] = all[i].Free
		}
	}
	for p, list := range owners {
		for _, id := range list {
			if r := all.reportOf(id); r != nil {
				most := &s.Partition[p]
				most.Bytes, most.Points = max(most.Bytes, r.Bytes/owned[id]),
					max(most.Points, r.Points/owned[id])
			}
		}
	}
	return s
}

// ErrNothing is wrapped by the error of a commit without staged changes.
var ErrNothing = errors.New("no changes are staged")

// ErrMinority is wrapped by the error of a change of the ring while fewer than half of the members
// are up.
var ErrMinority = errors.New("fewer than half of the members are up")

// refuseFew refuses a change of the ring while fewer than half of the members are up, unless it is
// meant for a minority: the others may change theirs at the same time, and only one of the two
// rings stays.
func (m *Members) refuseFew(minority bool) error {
	counting := ring.Counting(m.o.Gossip.View())
	up := 0
	for _, id := range counting {
		if m.o.Gossip.IsUp(id) {
			up++
		}
	}
	if minority || 2*up >= len(counting) {
		return nil
	}
	return fmt.Errorf("%w, %d of %d: the others may be up on their side of a split network, and "+
		"change the ring as well; "+
		"bring members back, or repeat it with --minority if they are gone for good", ErrMinority, up,
		len(counting))
}

// Commit makes the staged changes, if the ring is still the one of the plan that was looked at, and
// the staged changes are those. 0 stands for those that there are. While fewer than half of the
// members are up it is refused, unless minority says that they are gone for good.
func (m *Members) Commit(ctx context.Context, version string, which uint64, minority bool) error {
	if err := m.refuseFew(minority); err != nil {
		return err
	}
	s, err := m.stagedValue()
	if err != nil {
		return err
	}
	if len(s.open()) == 0 {
		return ErrNothing
	}
	var plan *Plan
	err = m.o.Gossip.Commit(ctx, func(v *ring.View) (*ring.View, error) {
		if got := v.Version().String(); got != version {
			return nil, fmt.Errorf("%w: it is %s, the plan is for %s", ring.ErrStale, got, version)
		}
		var err error
		if plan, err = m.plan(v, s); err != nil {
			return nil, err
		}
		if which != 0 && which != plan.Staged {
			return nil, fmt.Errorf("%w: other changes are staged since", ring.ErrStale)
		}
		return v.Commit(plan.Plan)
	})
	if err != nil {
		return err
	}
	m.o.Logger.Info("a plan was committed", "changes", len(plan.Changes), "ring",
		plan.Next.Version().String(), "moves", len(plan.Moves))
	if err := m.putStaged(ctx, plan.open.markGone()); err != nil {
		return err
	}
	return m.await(ctx, plan.Next.Version().Number)
}

// await waits until this node shows a ring of so many changes, so that who asks it next sees what
// was done.
func (m *Members) await(ctx context.Context, number uint64) error {
	for {
		changed := m.o.Gossip.ChangeSignal()
		if m.o.Gossip.View().Version().Number >= number {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Clear forgets what is staged.
func (m *Members) Clear(ctx context.Context) error {
	s, err := m.stagedValue()
	if err != nil || len(s.open()) == 0 {
		return err
	}
	return m.putStaged(ctx, s.open().markGone())
}

package clusterroutes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/cluster/members"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/cluster/status"
)

// seen returns the ring as this node sees it, and what the nodes said last.
func (o *Operator) seen() (status.NodeView, map[ring.ID]members.Report, error) {
	reports, err := o.Members.Reports()
	if err != nil {
		return status.NodeView{}, nil, err
	}
	s := status.NodeView{View: o.Node.View(), Self: o.Node.Self(), Up: o.Node.IsUp, Agree: true}
	if _, own := s.View.Member(s.Self); own && o.Node.JoinError() != nil {
		s.Agree, s.Alone = false, true
	}
	list := s.View.Members()
	for i := range list {
		if m := &list[i]; m.State != ring.Removed && s.Up(m.ID) &&
			reports[m.ID].Ring != s.View.Version() {
			s.Agree = false
		}
	}
	return s, reports, nil
}

// name returns the name of a node.
func name(v *ring.View, id ring.ID) string {
	if m, ok := v.Member(id); ok {
		return m.Name
	}
	return id.String()
}

// status returns the whole state with a text.
func (o *Operator) status(
	text func(status.NodeView, *admin.Cluster) string,
) (*admin.Cluster, error) {
	seen, reports, err := o.seen()
	if err != nil {
		return nil, err
	}
	v := seen.View
	out := &admin.Cluster{Node: name(v, seen.Self), Ring: v.Version().String(), Agree: seen.Agree,
		Copies: v.Copies(ring.Current), Next: v.Copies(ring.Future),
		Partitions: v.Partitions(), Changing: v.IsChanging(), Paused: o.Members.TransfersPaused(),
		Members: []admin.ClusterMember{}, Staged: []string{}, Waiting: []string{}, Refused: []string{}}
	out.Reads, out.Writes = o.Node.Quorums()
	shares, away := v.Shares(), o.Members.Maintenance()
	for i, m := range v.Members() {
		r := reports[m.ID]
		if seen.Alone {
			m.State, shares[i] = ring.Joining, ring.Share{}
		}
		out.Members = append(out.Members, admin.ClusterMember{Name: m.Name, ID: m.ID.String(),
			State: m.State.String(), Up: o.Node.IsUp(m.ID), Maintenance: away[m.ID],
			Addresses: m.Addresses, Zone: m.Zone, Share: shares[i].Current, Future: shares[i].Future,
			Bytes: r.Bytes, Free: r.Free, Hints: r.Hints})
	}
	slices.SortFunc(out.Members, func(a, b admin.ClusterMember) int {
		return strings.Compare(a.Name, b.Name)
	})
	waits, err := o.Members.PendingSteps()
	if err != nil {
		return nil, err
	}
	out.Waits = append([]string{}, waits...) // never null in JSON
	staged, err := o.Members.StagedChanges()
	if err != nil {
		return nil, err
	}
	for _, c := range staged {
		out.Staged = append(out.Staged, c.String())
	}
	for _, c := range o.Gossip.Candidates() {
		out.Waiting = append(out.Waiting, c.Name)
	}
	problems := o.Gossip.NotFound()
	if err := o.Node.JoinError(); err != nil {
		problems = []error{err} // it says the same
	}
	for _, err := range append(problems, o.Gossip.JoinErrors()...) {
		out.Refused = append(out.Refused, err.Error())
	}
	out.Text = text(seen, out)
	return out, nil
}

// statusText is the text of cluster status, with what else an operator should know.
func (o *Operator) statusText(seen status.NodeView, c *admin.Cluster) string {
	var b strings.Builder
	b.WriteString(seen.Cluster())
	fmt.Fprintf(&b, "\nRing %s, ring_size %d, n = %d, r = %d, w = %d\n", c.Ring, c.Partitions,
		c.Copies, c.Reads, c.Writes)
	if c.Changing {
		b.WriteString("A change is under way.\n")
	}
	lines := func(what string, list []string) {
		for _, line := range list {
			b.WriteString(what + line + "\n")
		}
	}
	lines("Waiting: ", c.Waits)
	if c.Paused {
		b.WriteString("Transfers are paused: ddb admin cluster resume lets them go on.\n")
	}
	for i := range c.Members {
		if m := &c.Members[i]; m.Maintenance {
			fmt.Fprintf(&b, "In maintenance: %s, until ddb admin cluster maintenance %s off\n", m.Name,
				m.Name)
		}
	}
	lines("Staged: ", c.Staged)
	lines("Not a member: ", c.Waiting)
	lines("WARNING: ", c.Refused)
	return b.String()
}

func (o *Operator) membersText(seen status.NodeView, _ *admin.Cluster) string {
	return seen.Members()
}

// ring answers what has to move.
func (o *Operator) ring() (any, error) {
	seen, _, err := o.seen()
	if err != nil {
		return nil, err
	}
	v := seen.View
	out := admin.ClusterRing{
		Text:  seen.Ring(),
		Ring:  v.Version().String(),
		Agree: seen.Agree,
		Moves: []admin.ClusterMove{},
		Down:  []string{},
	}
	for _, m := range v.Fetches(0) {
		move := admin.ClusterMove{Partition: m.Partition, From: []string{}, To: name(v, m.To)}
		for _, id := range m.From {
			move.From = append(move.From, name(v, id))
		}
		out.Moves = append(out.Moves, move)
	}
	for _, m := range v.Members() {
		if m.State != ring.Removed && !o.Node.IsUp(m.ID) {
			out.Down = append(out.Down, m.Name)
		}
	}
	return out, nil
}

// transfers answers what moves: what members fetch, and what they keep for others.
func (o *Operator) transfers() (any, error) {
	seen, reports, err := o.seen()
	if err != nil {
		return nil, err
	}
	out := admin.ClusterTransfers{Transfers: []admin.ClusterTransfer{},
		Paused: o.Members.TransfersPaused()}
	var list []status.Transfer
	moment := func(ms int64) time.Time {
		if ms == 0 {
			return time.Time{}
		}
		return time.UnixMilli(ms)
	}
	for id, r := range reports {
		if !o.Node.IsUp(id) {
			continue // what it said is old
		}
		for _, t := range r.Transfers {
			list = append(list, status.Transfer{Hints: t.Hints, Partition: t.Partition, From: t.From,
				To:      t.To,
				Started: moment(t.Started), Last: moment(t.Last), Points: t.Points, Bytes: t.Bytes,
				Size: t.Size})
			out.Transfers = append(out.Transfers,
				admin.ClusterTransfer{Hints: t.Hints, Partition: t.Partition, From: name(seen.View, t.From),
					To:     name(seen.View, t.To),
					Points: t.Points, Bytes: t.Bytes, Size: t.Size})
		}
	}
	slices.SortFunc(out.Transfers, func(a, b admin.ClusterTransfer) int {
		if a.Partition != b.Partition {
			return a.Partition - b.Partition
		}
		return strings.Compare(a.From+a.To, b.From+b.To)
	})
	out.Text = seen.Transfers(list, o.Now())
	if out.Paused {
		out.Text += "Transfers are paused\n"
	}
	return out, nil
}

// plan answers what a commit would do.
func (o *Operator) plan() (*admin.ClusterPlan, error) {
	seen, _, err := o.seen()
	if err != nil {
		return nil, err
	}
	plan, err := o.Members.Plan()
	if err != nil {
		return nil, err
	}
	out := &admin.ClusterPlan{
		Ring:     seen.View.Version().String(),
		Changes:  []string{},
		Fetches:  []admin.Fetch{},
		Warnings: []string{},
	}
	if plan == nil {
		out.Text = status.Plan(nil, seen)
		return out, nil
	}
	out.Text = status.Plan(plan.Plan, seen)
	out.Ring, out.Staged = plan.Base.String(), fmt.Sprintf("%016x", plan.Staged)
	for _, c := range plan.Changes {
		out.Changes = append(out.Changes, c.String())
	}
	out.Moves, out.Bytes, out.Warnings = len(plan.Moves), plan.Bytes(),
		append(out.Warnings, plan.Warnings...)
	out.Seconds = plan.Time.Seconds()
	partitions := plan.Partitions()
	for _, m := range plan.Next.Members() {
		if n := partitions[m.ID]; n > 0 {
			out.Fetches = append(out.Fetches, admin.Fetch{
				Node:       m.Name,
				Partitions: n,
				Bytes:      plan.Incoming[m.ID].Bytes,
				Free:       plan.Free[m.ID],
			})
		}
	}
	return out, nil
}

// audit answers how well copies agree.
func (o *Operator) audit() (any, error) {
	s, now := o.Node.Figures()
	of := o.Node.Events().ExchangeStats()
	out := admin.ClusterAudit{EventComparisons: of.Comparisons, EventsCopied: of.Fetched,
		Comparisons: s.Comparisons, Chunks: s.Chunks, Differences: s.Differences, Repaired: s.Repaired,
		Moved:     s.Moved,
		HintsKept: s.HintsKept, HintsDelivered: s.HintsDelivered, Hints: s.Hints,
		Partitions: []admin.AuditPass{}}
	oldest, never := 0.0, 0
	for _, p := range s.Passes {
		pass := admin.AuditPass{
			Partition: p.Partition,
			Never:     p.Never,
			AgoS:      float64(max(now-p.At, 0)) / 1000,
		}
		if pass.Never {
			pass.AgoS = 0
			never++
		}
		oldest = max(oldest, pass.AgoS)
		out.Partitions = append(out.Partitions, pass)
	}
	var b strings.Builder
	line := func(what string, n any) { fmt.Fprintf(&b, "%-48s %v\n", what, n) }
	line("partitions that this node compares", len(s.Passes))
	line("of these not yet compared with all copies", never)
	line("longest time since the last comparison", (time.Duration(oldest) * time.Second).String())
	line("comparisons of a partition with another member", s.Comparisons)
	line("chunks compared, each with one other copy", s.Chunks)
	line("chunks that differed", s.Differences)
	line("points copied because of that", s.Repaired)
	line("points moved with partitions", s.Moved)
	line("comparisons of events with another member", of.Comparisons)
	line("events copied because of that, or moved", of.Fetched)
	line("batches kept for members that were down", s.HintsKept)
	line("of these delivered", s.HintsDelivered)
	line("of these still here", s.Hints)
	out.Text = b.String()
	return out, nil
}

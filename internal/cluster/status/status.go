// Package status prints a ring in the layouts that operators know from the original's
// ddb-admin, so that what reads its output reads ours.
package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dalmatiner/internal/cluster/ring"
)

// width is that of the rules and headings.
const width = 79

var rule = strings.Repeat("-", width) + "\n"

// NodeView is a ring as one node sees it.
type NodeView struct {
	View *ring.View
	// the node that answers. It stands where the original names its claimant: we need none
	Self  ring.ID
	Up    func(ring.ID) bool // whether it reaches a member
	Agree bool               // all members that it reaches have the same ring
	Alone bool               // it has not found its cluster yet: its ring of one is nobody's
}

// heading is a line with a title in its middle.
func heading(left int, title string, right int) string {
	return strings.Repeat("=", left) + " " + title + " " + strings.Repeat("=", right) + "\n"
}

// members returns those of a ring with their shares, by name.
func (s NodeView) members() (list []member) {
	shares := s.View.Shares()
	for i, m := range s.View.Members() {
		if s.Alone {
			shares[i] = ring.Share{}
		}
		list = append(list, member{m, shares[i], s.word(m)})
	}
	slices.SortFunc(list, func(a, b member) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

type member struct {
	ring.Member
	share  ring.Share
	status string
}

// word is the original's for the state of a member.
func (s NodeView) word(m ring.Member) string {
	if s.Alone {
		return "joining"
	}
	switch m.State {
	case ring.Pending, ring.Joining:
		return "joining"
	case ring.Leaving:
		return "leaving"
	case ring.Removed:
		return "exiting"
	}
	if !s.Up(m.ID) {
		return "down"
	}
	return "valid"
}

// Members is the text of member-status: shares now and after the changes under way.
func (s NodeView) Members() string {
	var b strings.Builder
	b.WriteString(heading(33, "Membership", 34) + "Status     Ring    Pending    Node\n" + rule)
	count := make(map[string]int)
	for _, m := range s.members() {
		count[m.status]++
		pending := "  --  "
		if s.View.IsChanging() {
			pending = fmt.Sprintf("%5.1f%%", 100*m.share.Future)
		}
		fmt.Fprintf(&b, "%-8s  %5.1f%%    %s    '%s'\n", m.status, 100*m.share.Current, pending, m.Name)
	}
	fmt.Fprintf(&b, "%sValid:%d / Leaving:%d / Exiting:%d / Joining:%d / Down:%d\n",
		rule, count["valid"], count["leaving"], count["exiting"], count["joining"], count["down"])
	return b.String()
}

// Ring is the text of ring-status: who takes what over from whom, and the members out of reach.
func (s NodeView) Ring() string {
	var b strings.Builder
	b.WriteString(heading(34, "Claimant", 35))
	fmt.Fprintf(&b, "Claimant:  '%s'\nStatus:     up\nRing Ready: %t\n\n", s.name(s.Self), s.Agree)
	b.WriteString(heading(30, "Ownership Handoff", 30))
	s.handoff(&b)
	b.WriteString("\n" + heading(30, "Unreachable Nodes", 30))
	if down := s.unreachableNames(); len(down) > 0 {
		fmt.Fprintf(&b, "The following nodes are unreachable: [%s]\n\n", strings.Join(down, ","))
		b.WriteString("WARNING: Moves to and from these nodes wait until they are back. A node that\n" +
			"does not come back can be replaced or removed: ddb-admin cluster replace,\nddb-admin cluster " +
			"force-remove.\n")
	} else {
		b.WriteString("All nodes are up and reachable\n\n")
	}
	return b.String()
}

// handoff lists what members fetch by the pair of nodes. Of several owners the first is named: what
// it lacks comes from the others.
func (s NodeView) handoff(b *strings.Builder) {
	type pair struct{ from, to ring.ID }
	var order []pair
	waiting := make(map[pair][]int)
	for _, m := range s.View.Fetches(0) {
		p := pair{to: m.To}
		if len(m.From) > 0 {
			p.from = m.From[0]
		}
		if waiting[p] == nil {
			order = append(order, p)
		}
		waiting[p] = append(waiting[p], m.Partition)
	}
	if len(order) == 0 {
		b.WriteString("No pending changes.\n")
		return
	}
	for _, p := range order {
		fmt.Fprintf(b, "Owner:      %s\nNext Owner: %s\n\n", s.name(p.from), s.name(p.to))
		down := 0
		for _, id := range []ring.ID{p.from, p.to} {
			if (id != ring.ID{}) && !s.Up(id) {
				fmt.Fprintf(b, "!!! %s is DOWN !!!\n", s.name(id))
				down++
			}
		}
		if down > 0 {
			b.WriteString("\n")
		}
		for _, partition := range waiting[p] {
			fmt.Fprintf(b, "Index: %d\n", partition)
			if down == 0 {
				b.WriteString("  Waiting on: [points]\n")
			}
		}
		b.WriteString("\n" + rule)
	}
}

func (s NodeView) unreachableNames() (names []string) {
	for _, m := range s.members() {
		if m.State != ring.Removed && !s.Up(m.ID) {
			names = append(names, "'"+m.Name+"'")
		}
	}
	return names
}

func (s NodeView) name(id ring.ID) string {
	if m, ok := s.View.Member(id); ok {
		return m.Name
	}
	return "none: no copy is left"
}

// Cluster is the text of cluster status, a table.
func (s NodeView) Cluster() string {
	members := s.members()
	w := len("node")
	for _, m := range members {
		w = max(w, len(m.Name)+len(" (C)  "))
	}
	line := "+" + strings.Repeat("-", w) + "+-------+-------+-----+-------+\n"
	var b strings.Builder
	fmt.Fprintf(&b, "---- Cluster Status ----\nRing ready: %t\n\n%s|%s|status | avail |ring "+
		"|pending|\n%s",
		s.Agree, line, centre("node", w), line)
	for _, m := range members {
		mark, avail := "   ", "  up   "
		if m.ID == s.Self {
			mark = "(C)"
		}
		switch {
		case m.State == ring.Removed:
			avail = " down  "
		case !s.Up(m.ID):
			avail = " down! "
		}
		pending := "  --   "
		if s.View.IsChanging() {
			pending = fmt.Sprintf("%5.1f  ", 100*m.share.Future)
		}
		fmt.Fprintf(&b, "|%-*s|%-7s|%s|%5.1f|%s|\n", w, " "+mark+" "+m.Name, m.status, avail,
			100*m.share.Current, pending)
	}
	b.WriteString(line + "\nKey: (C) = Claimant; availability marked with '!' is unexpected\n")
	for _, warning := range warnings(s.View) {
		b.WriteString("WARNING: " + warning + "\n")
	}
	return b.String()
}

// warnings are what a ring lacks now.
func warnings(v *ring.View) (out []string) {
	short := v.Shortage(ring.Current)
	if short.Members {
		out = append(out, fmt.Sprintf("fewer members than copies: n is %d", v.Copies(ring.Current)))
	}
	if short.Zones {
		out = append(out, "fewer zones than copies: the loss of one zone takes two copies of some points")
	}
	return out
}

// centre puts a text that may be too wide into the middle of w columns.
func centre(s string, w int) string {
	left := max(0, w-len(s)) / 2
	return strings.Repeat(" ", left) + s + strings.Repeat(" ", max(0, w-len(s)-left))
}

// joins says whether a node becomes a member by a plan. Such a node is up: nodes that are not
// cannot be staged.
func joins(p *ring.Plan, id ring.ID) bool {
	return slices.ContainsFunc(p.Changes, func(c ring.Change) bool { return c.Member.ID == id })
}

// Plan is the text of cluster plan: staged changes, and the ring when they are complete.
func Plan(p *ring.Plan, s NodeView) string {
	if p == nil {
		return "There are no staged changes\n"
	}
	var b strings.Builder
	b.WriteString(heading(31, "Staged Changes", 32) + "Action         Details(s)\n" + rule)
	for _, c := range p.Changes {
		b.WriteString(c.String() + "\n")
	}
	b.WriteString(rule + "\n")
	for _, w := range p.Warnings {
		b.WriteString("WARNING: " + w + "\n")
	}
	hashes := strings.Repeat("#", width) + "\n"
	fmt.Fprintf(&b, "\nNOTE: The ring is %s; the commit is refused once it is another.\n\n%s%26s "+
		"After cluster transition\n%s\n",
		p.Base, hashes, "", hashes)
	s.View = p.Final
	members := s.Up
	s.Up = func(id ring.ID) bool { return joins(p, id) || members(id) }
	b.WriteString(s.Members() + "\n")
	fmt.Fprintf(&b, "Transfers resulting from cluster changes: %d\n", len(p.Moves))
	s.View = p.Next
	partitions := p.Partitions()
	for _, m := range s.members() {
		if n := partitions[m.ID]; n > 0 {
			fmt.Fprintf(&b, "  %d partitions, %d bytes to '%s'", n, p.Incoming[m.ID].Bytes, m.Name)
			if free, known := p.Free[m.ID]; known {
				fmt.Fprintf(&b, ", which has %d free", free)
			}
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, "All together: %d bytes\n", p.Bytes())
	if p.Time > 0 {
		fmt.Fprintf(&b, "Estimated time: %s\n", max(p.Time.Round(time.Second), time.Second))
	}
	return b.String()
}

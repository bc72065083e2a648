package eventing

import (
	"cmp"
	"maps"
	"slices"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/events"
)

// maxTold is how many gaps an answer names. Of more, those near each other become one.
const maxTold = 64

// cover says what nodes that have answered cannot vouch for: what fewer owners have given than a
// read needs.
type cover struct {
	e          *Eventing
	view       *ring.View
	info       buckets.Info
	start, end int64 // in which there may be events at all
}

func (e *Eventing) cover(info buckets.Info, start, end int64) cover {
	first, past := e.o.Own.Lives(&info)
	return cover{e, e.o.View(), info, max(start, first), min(end, past)}
}

// gaps returns what is missing where these nodes have answered, each with what damage took of it.
// At most so many are told; 0 stands for all.
func (c *cover) gaps(answered map[ring.ID][]events.Gap, most int) (out []events.Gap) {
	if c.start >= c.end || c.all(answered) {
		return nil
	}
	need := c.e.o.Quorum(c.view, c.info.ID).Reads
	copies := c.e.o.Copies(c.info.ID)
	replied := func(id ring.ID) bool { _, ok := answered[id]; return ok }
	short, any := make(map[int]bool), false // partitions
	owners := make(map[int][]ring.ID)
	for p := range c.view.Partitions() {
		of := c.view.Owners(nil, p, ring.Current, copies)
		got := 0
		for _, id := range of {
			if replied(id) {
				got++
			}
		}
		least, besides := ring.LeavingReadQuorum(c.view, c.e.o.Self, of)
		alone := len(besides) > 0 && !slices.ContainsFunc(besides, replied)
		short[p], owners[p] = got < min(max(need, least), len(of)) || alone, of
		any = any || short[p]
	}
	if any {
		c.hours(c.start, c.end, func(partition int, from, to int64) {
			if short[partition] {
				out = append(out, events.Gap{Start: from, End: to})
			}
		})
	}
	for id, gaps := range answered {
		for _, g := range gaps {
			lost := g.Events
			c.hours(max(g.Start, c.start), min(g.End, c.end), func(partition int, from, to int64) {
				if short[partition] || !c.isDamaged(answered, owners[partition], id, need, from, to) {
					return
				}
				out = append(out, events.Gap{Start: from, End: to, Events: lost})
				lost = 0
			})
		}
	}
	return mergeGaps(out, most)
}

// missingGaps returns what is missing. If the ring has changed meanwhile, what is whole is so under
// both.
func (e *Eventing) missingGaps(c *cover, answered map[ring.ID][]events.Gap) []events.Gap {
	gaps := c.gaps(answered, maxTold)
	if now := e.o.View(); now.Version() != c.view.Version() {
		c.view = now
		gaps = mergeGaps(append(gaps, c.gaps(answered, maxTold)...), maxTold)
	}
	return gaps
}

// all reports whether all members have answered, and none has lost anything.
func (c *cover) all(answered map[ring.ID][]events.Gap) bool {
	for _, m := range c.view.Members() {
		if gaps, ok := answered[m.ID]; !ok || len(gaps) > 0 {
			return false
		}
	}
	return true
}

// hours calls fn with the parts of a range that lie in one hour each, and their partitions.
func (c *cover) hours(start, end int64, fn func(partition int, from, to int64)) {
	for from := start; from < end; {
		hour := from / events.DigestStep
		to := end
		if hour < maxTime/events.DigestStep {
			to = min(end, (hour+1)*events.DigestStep)
		}
		fn(pieceOf(c.view, c.info.ID, hour), from, to)
		from = to
	}
}

// isDamaged reports whether damage of a node in a part of an hour leaves fewer whole owners than a
// read needs. What a node that is no owner has lost is no owner's.
func (c *cover) isDamaged(answered map[ring.ID][]events.Gap, owners []ring.ID, id ring.ID, need int,
	from, to int64) bool {
	if !slices.Contains(owners, id) {
		return false
	}
	whole := 0
	for _, o := range owners {
		gaps, ok := answered[o]
		if ok && !slices.ContainsFunc(gaps, func(g events.Gap) bool {
			return g.Start < to && g.End > from
		}) {
			whole++
		}
	}
	return whole < min(need, len(owners))
}

// mergeGaps orders gaps and makes one of those that touch; of more than most also of those near
// each other.
func mergeGaps(list []events.Gap, most int) []events.Gap {
	slices.SortFunc(list, func(a, b events.Gap) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	for near := int64(0); ; near = max(2*near, events.DigestStep) {
		out := list[:0]
		for _, g := range list {
			if n := len(out); n > 0 && g.Start-near <= out[n-1].End {
				out[n-1].End = max(out[n-1].End, g.End)
				out[n-1].Events += g.Events
			} else {
				out = append(out, g)
			}
		}
		if list = out; most == 0 || len(list) <= most {
			return list
		}
	}
}

// nodesToAsk returns the nodes that are asked for a range.
func (e *Eventing) nodesToAsk(c *cover) []ring.ID {
	nodes := append(e.otherNodes(false), e.o.Self)
	answered := make(map[ring.ID][]events.Gap, len(nodes))
	for _, id := range nodes {
		answered[id] = nil
	}
	if len(c.gaps(answered, 0)) > 0 {
		nodes = append(e.otherNodes(true), e.o.Self)
	}
	return nodes
}

// otherNodes returns the other members that are asked for their events: those that are up, and with
// all also those in maintenance.
func (e *Eventing) otherNodes(all bool) (list []ring.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(e.peers), func(a, b ring.ID) int {
		return slices.Compare(a[:], b[:])
	}) {
		if e.o.Up(id) || all && e.o.Reaches(id) {
			list = append(list, id)
		}
	}
	return list
}

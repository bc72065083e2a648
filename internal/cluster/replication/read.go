package replication

import (
	"slices"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// read is a question of a client that waits for copies.
type read struct {
	fetch    Fetch
	deadline int64
	sent     map[ring.ID]int64
	answers  map[ring.ID]FetchReply
}

// Query asks for slots of a series. Reply.Done says that R copies know each of them.
func (c *Core) Query(t Time, request uint64, series metric.SeriesID, from, past uint64) {
	c.now = t
	c.reads[request] = &read{deadline: t.Steady + c.config.Timeout, sent: make(map[ring.ID]int64),
		answers: make(map[ring.ID]FetchReply),
		fetch: Fetch{
			Request:   request,
			Partition: c.view.Partition(series),
			Series:    series,
			From:      from,
			Past:      past,
		}}
	c.resendReads()
}

// resendReads asks who has not answered, and ends what took too long.
func (c *Core) resendReads() {
	for _, n := range sortedKeys(c.reads) {
		r := c.reads[n]
		if c.now.Steady >= r.deadline {
			c.finishRead(n, r, false)
			continue
		}
		c.askReaders(n, r)
	}
}

// askReaders asks who keeps hints of the partition, and when all of these that are up have
// answered, the owners.
func (c *Core) askReaders(request uint64, r *read) {
	if !c.ready() {
		return // it may not have heard who keeps hints
	}
	of := Share{Partition: r.fetch.Partition}
	owners := c.readers(of)
	least, besides := ring.LeavingReadQuorum(c.view, c.config.Self, owners)
	holders := c.addWitness(except(c.Holders(nil, of.Partition), owners), besides)
	open := false
	ask := func(id ring.ID, up bool) {
		at, asked := r.sent[id]
		if _, answered := r.answers[id]; answered || !up {
			return
		}
		open = true
		if !asked || c.now.Steady >= at+c.config.Resend {
			r.sent[id] = c.now.Steady
			r.fetch.Version = c.view.Version()
			c.send(id, r.fetch)
		}
	}
	for _, id := range holders {
		ask(id, c.up[id])
	}
	if open {
		return
	}
	for id := range r.answers { // it kept hints a moment ago: its answer is none of the R
		if !slices.Contains(owners, id) && !slices.Contains(holders, id) {
			holders = append(holders, id)
		}
	}
	if _, copies := r.merge(); copies >= max(c.config.R, least)+len(holders) {
		c.finishRead(request, r, true)
		return
	}
	for _, id := range owners {
		ask(id, c.isUp(id))
	}
}

// addWitness adds one of some members to those who keep hints, if there is none of these among
// them.
func (c *Core) addWitness(holders, members []ring.ID) []ring.ID {
	if len(members) == 0 || slices.ContainsFunc(members, func(id ring.ID) bool {
		return slices.Contains(holders, id) && c.up[id]
	}) {
		return holders
	}
	return append(holders, members[max(slices.IndexFunc(members, func(id ring.ID) bool {
		return c.up[id]
	}), 0)])
}

// readers are the current owners. Who stands in for one that is down has no more than the hints
// since then.
func (c *Core) readers(of Share) []ring.ID {
	return c.view.Owners(nil, of.Partition, ring.Current, of.Copies)
}

// restartReads asks anew: under another ring others are owners.
func (c *Core) restartReads() {
	for _, r := range c.reads {
		clear(r.sent)
		clear(r.answers)
	}
	c.resendReads()
}

// answerFetch answers with what is here. No message asks for more than it may.
func (c *Core) answerFetch(from ring.ID, m Fetch) {
	answer := FetchReply{Request: m.Request, Ready: c.ready() && m.Version == c.view.Version() &&
		m.From <= m.Past && m.Past-m.From <= MaxRows}
	if answer.Ready {
		answer.Incarnation, answer.Slots = c.readOwn(m)
	}
	c.send(from, answer)
}

// readOwn returns what this node has of a series as an owner, with the hints that it keeps for
// others.
func (c *Core) readOwn(m Fetch) (uint64, []Slot) {
	incarnation, slots := c.store.Incarnation(m.Series), make([]Slot, m.Past-m.From)
	if slices.Contains(c.readers(Share{Partition: m.Partition}), c.config.Self) {
		slots = c.store.Read(m.Series, m.From, m.Past)
	}
	for _, r := range c.store.HintRows(m.Series, m.From, m.Past) {
		if r.Incarnation >= incarnation {
			s := &slots[r.Slot-m.From]
			s.Value = Larger(s.Value, r.Value)
		}
	}
	return incarnation, slots
}

func (c *Core) takeFetched(from ring.ID, m FetchReply) {
	r := c.reads[m.Request]
	if r == nil || !m.Ready {
		return
	}
	if _, asked := r.sent[from]; !asked {
		return
	}
	r.answers[from] = m
	c.askReaders(m.Request, r)
}

// merge lays the copies over each other by rule 1. Those of a lower incarnation were deleted. A
// slot that a copy does not know is no unset one: the copy does not count for it.
func (r *read) merge() (slots []Slot, fewest int) {
	highest := uint64(0)
	for _, a := range r.answers {
		highest = max(highest, a.Incarnation)
	}
	slots = make([]Slot, r.fetch.Past-r.fetch.From)
	fewest = len(r.answers)
	for i := range slots {
		known := 0
		for _, a := range r.answers {
			switch {
			case a.Incarnation < highest:
				known++
			case !a.Slots[i].Unknown:
				known++
				slots[i].Value = Larger(slots[i].Value, a.Slots[i].Value)
			}
		}
		slots[i].Unknown = known == 0
		fewest = min(fewest, known)
	}
	return slots, fewest
}

func (c *Core) finishRead(request uint64, r *read, done bool) {
	slots, copies := r.merge()
	c.replies = append(c.replies, Reply{Request: request, Done: done, Slots: slots, Copies: copies})
	delete(c.reads, request)
}

package plan

import (
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/source"
)

// maxStep is the longest step that events are counted by: times are in nanoseconds there.
const maxStep = 100 * 366 * 24 * 3600 * 1000

// countEvents plans the number of events per step as a read: a series whose slots are the steps.
// The first step begins with the range, as spans of aggregates do, and the last one ends with it.
func (p *planner) countEvents(a arguments) (value, error) {
	of, length := a.consts[0], max(1, a.consts[1].span)
	if p.opt.Events == nil {
		return value{}, p.unsupported(of.pos, "EVENTS")
	}
	if length > maxStep {
		return value{}, p.limit(a.consts[1].pos, "ms in a step", length, maxStep, "ask for shorter ones")
	}
	b, err := p.bucket(of.events.Bucket, of.pos)
	if err != nil {
		return value{}, err
	}
	p.found = true // that there was no event is an answer
	text := dql.Name(of.events, maxName)
	if len(text) > maxName { // two of them might be equal up to there
		return value{}, p.limit(of.pos, "bytes of conditions", int64(len(text)), maxName, "ask for fewer")
	}
	if err := p.Grow(int64(len(text))); err != nil {
		return value{}, err
	}
	n := p.intern(append(append(p.name("events").number(length, of.span), ' '), text...),
		func(n *Node) {
			err = p.readEvents(n, b, of, length)
		})
	p.describe(n, "count %s, %d ms earlier", text, of.span)
	return value{typ: function.TypeMetric, series: []Series{{Of: n}}}, err
}

// readEvents makes a node a read of numbers of events in steps of so many ms.
func (p *planner) readEvents(n *Node, b bucket, of value, length int64) error {
	start, end := p.out.Start-of.span, p.out.End-of.span
	slot := max(0, SlotOf(start, length)) // no read notes what is unknown below 0
	steps := source.Steps{Length: length, Offset: start - slot*length, Until: end}
	series, err := p.opt.Events.Counts(of.events, steps)
	if err != nil {
		return err
	}
	r := nextOf(&p.spare.reads, len(p.out.Reads))
	// Slot n of a read is of the time n × length + Shift in the result.
	*r = Read{Series: series, Bucket: b.Name, Events: true, Shift: of.span + steps.Offset,
		From: slot, Past: slot + (end-start+length-1)/length}
	if b.TTL > 0 { // of a step that has expired in part it is not known how many it had
		lives := (Oldest(&b.Info, p.opt.Now) + 1) * b.Resolution
		r.Oldest = max(0, SlotOf(lives-steps.Offset+length-1, length))
	}
	n.Op, n.Resolution, n.Values, n.First = r, length, r.Past-r.From, r.From*length+r.Shift
	n.Form = p.shape("read", length, r.Shift, r.From, r.Past)
	n.slotwise = true // nobody adds up what is counted
	p.out.Events = true
	return p.addRead(of.pos, n)
}

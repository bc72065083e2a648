package tagging

import (
	"context"
	"errors"
	"maps"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/tags"
)

// bucket is the one of the tests; other nodes may not know it yet.
const bucket = 7

// applied stands for something that was.
var applied = tagstore.Applied{Token: 1}

// logEntry is a record of the log of a node: a change, or a deletion.
type logEntry struct {
	change  tags.Change
	deleted deletedSeries
}

// fake is the tags of a node in memory: a log that a crash cuts at what was synced, and what
// follows from it.
type fake struct {
	id           ring.ID
	wall         uint64
	index        *tags.Index
	incarnations map[metric.SeriesID]uint64
	clock        uint64
	known        bool // the bucket
	log          []logEntry
	synced       int
	gone         []deletedSeries // deletions with tags, to be told
	x            exchange
}

func newFake(id byte, wall uint64) *fake {
	f := &fake{id: ring.ID{id}, wall: wall}
	f.replay(nil)
	return f
}

// replay makes what is known from a log.
func (f *fake) replay(log []logEntry) {
	f.index, f.incarnations, f.log, f.known = tags.New(), map[metric.SeriesID]uint64{}, nil, false
	(tags.Copies{Of: f.index}).KeepDigests()
	for _, r := range log {
		f.know(r)
	}
	f.synced = len(f.log)
}

func (f *fake) know(r logEntry) {
	f.known = true
	f.log = append(f.log, r)
	if d := r.deleted; d.incarnation > 0 {
		f.clock = max(f.clock, d.incarnation)
		f.incarnations[d.id] = max(f.incarnations[d.id], d.incarnation)
		f.index.Drop(d.bucket, d.id, d.incarnation)
		return
	}
	f.clock = max(f.clock, r.change.Clock)
	if r.change.Clock > f.incarnations[metric.Series(bucket, r.change.Key)] {
		f.index.Apply(&r.change)
	}
}

// crash takes what was not synced.
func (f *fake) crash() { f.replay(append([]logEntry(nil), f.log[:f.synced]...)) }

func (f *fake) next() uint64 {
	f.clock = max(f.clock+1, f.wall)
	return f.clock
}

func (f *fake) Index() *tags.Index { return f.index }
func (f *fake) Forget()            {}

func (f *fake) Apply(_ context.Context, list []tags.Change) (a tagstore.Applied, _ error) {
	for i := range list {
		list[i].Clock, list[i].Node = f.next(), NodeOf(f.id)
		f.know(logEntry{change: copyOf(&list[i])})
		a.Token = wal.LSN(len(f.log))
	}
	return a, nil
}

func (f *fake) Adopt(_ context.Context, list []tags.Change) (a tagstore.Applied, _ error) {
	for i := range list {
		n := f.incarnations[metric.Series(bucket, list[i].Key)]
		switch {
		case !f.known:
			a.Refused = append(a.Refused, tagstore.Refusal{At: i, Err: buckets.ErrUnknown})
		case list[i].Clock <= n:
			a.Refused = append(a.Refused,
				tagstore.Refusal{At: i, Err: &tagstore.DeletedError{Incarnation: n}})
		default:
			f.know(logEntry{change: copyOf(&list[i])})
			a.Token = wal.LSN(len(f.log))
		}
	}
	return a, nil
}

func (f *fake) WaitDurable(_ context.Context, a tagstore.Applied) error {
	if a.Token > 0 {
		f.synced = len(f.log)
	}
	return nil
}

// delete deletes a series with its tags; also those that are not here are remembered.
func (f *fake) delete(id metric.SeriesID, incarnation uint64) {
	if incarnation <= f.incarnations[id] {
		return
	}
	before := (tags.Copies{Of: f.index}).Digests()
	f.know(logEntry{deleted: deletedSeries{bucket, incarnation, id}})
	if (tags.Copies{Of: f.index}).Digests() != before && !f.x.noteMark(incarnation) {
		f.gone = append(f.gone, deletedSeries{bucket, incarnation, id})
	}
}

// options are those of a node whose questions go through ask.
func (f *fake) options(ask func(to ring.ID, request []byte,
	part func([]byte) error) error) *Options {
	return &Options{
		Self: f.id, Tags: f,
		Ask: func(_ context.Context, to ring.ID, request []byte, part func([]byte) error) error {
			return ask(to, request, part)
		},
		Define: func(list []uint64) []byte {
			if f.known && len(list) > 0 {
				return []byte("bucket")
			}
			return nil
		},
		Learn: func(b []byte) error {
			if string(b) != "bucket" {
				return errors.New("no definition")
			}
			f.known = true
			return nil
		},
		Delete: func(_ context.Context, _ uint64, list []deletion.At) error {
			for _, d := range list {
				f.delete(d.ID, d.Incarnation)
			}
			f.synced = len(f.log)
			return nil
		},
	}
}

func copyOf(c *tags.Change) (out tags.Change) {
	_, _ = tags.ParseChange(&out, tags.AppendChange(nil, c)) // it is valid
	return out
}

// order orders changes.
type order struct{ clock, node uint64 }

func (s order) isAbove(o order) bool {
	return s.clock > o.clock || s.clock == o.clock && s.node > o.node
}

// value is what the naive model knows of a tag.
type value struct {
	order
	removed bool
	text    string
}

// rows is the naive model: of each series in a collection that is visible its tags, from all
// changes.
func rows(changes []tags.Change,
	incarnations map[metric.SeriesID]uint64) map[string]map[string]string {
	of := make(map[string][]tags.Change)
	for _, c := range changes {
		if c.Clock > incarnations[metric.Series(bucket, c.Key)] {
			name := string(c.Key) + " in " + string(c.Collection)
			of[name] = append(of[name], c)
		}
	}
	out := make(map[string]map[string]string)
	for name, list := range of {
		var left, seen, cleared order
		for _, c := range list {
			s := order{c.Clock, c.Node}
			switch {
			case c.Leave && s.isAbove(left):
				left = s
			case !c.Leave && s.isAbove(seen):
				seen = s
			}
			if c.Replace && s.isAbove(cleared) {
				cleared = s
			}
		}
		if !seen.isAbove(left) {
			continue
		}
		values := make(map[string]value)
		put := func(n tags.TagName, v value) {
			at := n.String()
			if left.isAbove(v.order) || left == v.order || cleared.isAbove(v.order) {
				return
			}
			if old, ok := values[at]; !ok || v.isAbove(old.order) {
				values[at] = v
			}
		}
		for _, c := range list {
			for _, n := range c.Removed {
				put(n, value{order{c.Clock, c.Node}, true, ""})
			}
			for _, t := range c.Set {
				put(t.TagName, value{order{c.Clock, c.Node}, false, string(t.Value)})
			}
		}
		maps.DeleteFunc(values, func(_ string, v value) bool { return v.removed })
		out[name] = make(map[string]string)
		for n, v := range values {
			out[name][n] = v.text
		}
	}
	return out
}

// shownTags is what an index shows, by the naive model of its changes.
func (f *fake) shownTags() map[string]map[string]string {
	var changes []tags.Change
	_ = f.index.Walk(func(c *tags.Change) error { // nothing ends it
		changes = append(changes, copyOf(c))
		return nil
	})
	return rows(changes, nil)
}

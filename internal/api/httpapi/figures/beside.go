package figures

import (
	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/tagstore"
)

// Beside is a store of what is kept beside points.
type Beside interface {
	Buckets() []buckets.Info
	Events() *events.Local
	Tags() *tagstore.Store
}

// NewBeside returns a collector of the account and the state of events and tags.
func NewBeside(s Beside) prometheus.Collector { return beside{s} }

// happened are the columns of the account of events. A bucket without events has none.
var happened = []struct {
	desc *prometheus.Desc
	of   func(c *account.Counts) uint64
}{
	{newDesc("events_received_total", "Events received.", "bucket"), (*account.Counts).ReceivedPoints},
	{newDesc("events_accepted_total", "Events stored.", "bucket"), func(c *account.Counts) uint64 {
		return c.Accepted
	}},
	{newDesc("events_duplicate_total", "Repeats of events, dropped.", "bucket"),
		func(c *account.Counts) uint64 { return c.Duplicate }},
	{newDesc("events_late_total", "Events stored that are older than the newest of the bucket by "+
		"more than its grace.", "bucket"), func(c *account.Counts) uint64 { return c.Late }},
}

var (
	eventsRefusedDesc = newDesc("events_refused_total", "Events refused.", "bucket", "reason")
	eventsLostDesc    = newDesc("events_lost_total", "Events counted as stored and lost since.",
		"cause")
	eventsRecovered = newDesc("events_recovered_total",
		"Events counted as lost that are served again.", "cause")
)

var eventFigures = []figure[events.Stats]{
	gauge("event_files", "Files of events.", func(s *events.Stats) float64 {
		return float64(s.Files)
	}),
	gauge("event_file_bytes", "Size of all files of events.", func(s *events.Stats) float64 {
		return float64(s.FileBytes)
	}),
	gauge("event_file_events", "Events in files.", func(s *events.Stats) float64 {
		return float64(s.FileEvents)
	}),
	gauge("event_unflushed", "Events in memory that wait for a flush.", func(s *events.Stats) float64 {
		return float64(s.MemoryEvents)
	}),
	gauge("event_tails", "Live tails of events.", func(s *events.Stats) float64 {
		return float64(s.Followers)
	}),
	counter("events_ahead_total",
		"Events stored with the time of arrival, because theirs was too far ahead.",
		func(s *events.Stats) float64 { return float64(s.Ahead) }),
	counter("event_tail_missed_total",
		"Events that live tails did not get, as their readers were too slow.",
		func(s *events.Stats) float64 { return float64(s.Missed) }),
	counter("event_merges_total", "Merges of files of events.", func(s *events.Stats) float64 {
		return float64(s.Merges)
	}),
}

var tagFigures = []figure[tagstore.Stats]{
	counter("tag_changes_total", "Changes of tags that said something new.",
		func(s *tagstore.Stats) float64 { return float64(s.Changes) }),
	counter("tag_changes_invalid_total",
		"Changes of tags refused as beyond a limit, or of an unknown bucket.",
		func(s *tagstore.Stats) float64 { return float64(s.Invalid) }),
	counter("tag_changes_no_memory_total",
		"Changes refused that add a series or a tag, as memory was short.",
		func(s *tagstore.Stats) float64 { return float64(s.NoMemory) }),
	counter("tag_changes_lost_total",
		"Changes of tags, and series with all their tags, that both copies of a file lacked at the "+
			"start; at least.", func(s *tagstore.Stats) float64 { return float64(s.Lost) }),
	gauge("tag_unflushed_bytes", "Changes of tags in memory that wait for a flush.",
		func(s *tagstore.Stats) float64 { return float64(s.Unflushed) }),
	gauge("tag_files", "Files of tags, both copies.", func(s *tagstore.Stats) float64 {
		return float64(s.Files)
	}),
	gauge("tag_file_bytes", "Size of all files of tags, both copies.",
		func(s *tagstore.Stats) float64 { return float64(s.Bytes) }),
	counter("tag_copies_rewritten_total", "Damaged copies of files of tags that were written again.",
		func(s *tagstore.Stats) float64 { return float64(s.Rewritten) }),
	counter("tag_merges_total", "Merges of files of tags.", func(s *tagstore.Stats) float64 {
		return float64(s.Merges)
	}),
}

type beside struct{ store Beside }

// Describe sends the descriptions of all metrics.
func (b beside) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{eventsRefusedDesc, eventsLostDesc, eventsRecovered} {
		ch <- d
	}
	for _, h := range happened {
		ch <- h.desc
	}
	for _, f := range eventFigures {
		ch <- f.desc
	}
	for _, f := range tagFigures {
		ch <- f.desc
	}
}

// Collect sends the present values.
func (b beside) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	for _, t := range Totals(accountOfEvents{b.store}) {
		if t.ReceivedPoints() == 0 {
			continue
		}
		for _, h := range happened {
			send(h.desc, prometheus.CounterValue, float64(h.of(&t.Counts)), t.Bucket)
		}
		for _, reason := range account.Reasons() {
			if n := t.Refused[reason]; n > 0 {
				send(eventsRefusedDesc, prometheus.CounterValue, float64(n), t.Bucket, reason.String())
			}
		}
	}
	for _, l := range b.store.Events().Account().Losses() {
		send(eventsLostDesc, prometheus.CounterValue, float64(l.Points), l.Cause)
		send(eventsRecovered, prometheus.CounterValue, float64(l.Recovered), l.Cause)
	}
	ofEvents, ofTags := b.store.Events().Stats(), b.store.Tags().Stats()
	for _, f := range eventFigures {
		send(f.desc, f.kind, f.of(&ofEvents))
	}
	for _, f := range tagFigures {
		send(f.desc, f.kind, f.of(&ofTags))
	}
}

// accountOfEvents gives the account of events where that of points is asked for.
type accountOfEvents struct{ Beside }

func (a accountOfEvents) Account() *account.Account { return a.Events().Account() }

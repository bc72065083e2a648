package figures

import (
	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/account"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/events"
	"dalmatiner/internal/tagstore"
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
	{newDesc("events_received_total", "Events received.", "bucket"), (*account.Counts).Received},
	{newDesc("events_accepted_total", "Events stored.", "bucket"), func(c *account.Counts) uint64 { return c.Accepted }},
	{newDesc("events_duplicate_total", "Repeats of events, dropped.", "bucket"), func(c *account.Counts) uint64 { return c.Duplicate }},
	{newDesc("events_late_total", "Events stored that are older than the newest of the bucket by more than its grace.", "bucket"), func(c *account.Counts) uint64 { return c.Late }},
}

var (
	eventsRefusedDesc = newDesc("events_refused_total", "Events refused.", "bucket", "reason")
	eventsLostDesc    = newDesc("events_lost_total", "Events counted as stored and lost since.", "cause")
	eventsRecovered   = newDesc("events_recovered_total", "Events counted as lost that are served again.", "cause")
)

var eventFigures = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(s *events.Stats) int64
}{
	{newDesc("event_files", "Files of events."), prometheus.GaugeValue, func(s *events.Stats) int64 { return s.Files }},
	{newDesc("event_file_bytes", "Size of all files of events."), prometheus.GaugeValue, func(s *events.Stats) int64 { return s.FileBytes }},
	{newDesc("event_file_events", "Events in files."), prometheus.GaugeValue, func(s *events.Stats) int64 { return s.FileEvents }},
	{newDesc("event_unflushed", "Events in memory that wait for a flush."), prometheus.GaugeValue, func(s *events.Stats) int64 { return s.MemoryEvents }},
	{newDesc("event_tails", "Live tails of events."), prometheus.GaugeValue, func(s *events.Stats) int64 { return s.Followers }},
	{newDesc("event_merges_total", "Merges of files of events."), prometheus.CounterValue, func(s *events.Stats) int64 { return s.Merges }},
}

var tagFigures = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(s *tagstore.Stats) int64
}{
	{newDesc("tag_changes_total", "Changes of tags that said something new."), prometheus.CounterValue, func(s *tagstore.Stats) int64 { return s.Changes }},
	{newDesc("tag_changes_lost_total", "Changes of tags that both copies of a file lacked at the start."), prometheus.CounterValue, func(s *tagstore.Stats) int64 { return s.Lost }},
	{newDesc("tag_unflushed_bytes", "Changes of tags in memory that wait for a flush."), prometheus.GaugeValue, func(s *tagstore.Stats) int64 { return s.Unflushed }},
	{newDesc("tag_files", "Files of tags, both copies."), prometheus.GaugeValue, func(s *tagstore.Stats) int64 { return s.Files }},
	{newDesc("tag_file_bytes", "Size of all files of tags, both copies."), prometheus.GaugeValue, func(s *tagstore.Stats) int64 { return s.Bytes }},
	{newDesc("tag_merges_total", "Merges of files of tags."), prometheus.CounterValue, func(s *tagstore.Stats) int64 { return s.Merges }},
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
		if t.Received() == 0 {
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
	for _, l := range b.store.Events().Account().Lost() {
		send(eventsLostDesc, prometheus.CounterValue, float64(l.Points), l.Cause)
		send(eventsRecovered, prometheus.CounterValue, float64(l.Recovered), l.Cause)
	}
	ofEvents, ofTags := b.store.Events().Stats(), b.store.Tags().Stats()
	for _, f := range eventFigures {
		send(f.desc, f.kind, float64(f.of(&ofEvents)))
	}
	for _, f := range tagFigures {
		send(f.desc, f.kind, float64(f.of(&ofTags)))
	}
}

// accountOfEvents gives the account of events where that of points is asked for.
type accountOfEvents struct{ Beside }

func (a accountOfEvents) Account() *account.Account { return a.Events().Account() }

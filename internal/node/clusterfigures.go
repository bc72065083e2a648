package node

import (
	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/cluster/ring"
)

// clusterFigures are the figures of a node of a cluster in /metrics.
type clusterFigures struct{ p *clusterPart }

func clusterDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("dalmatiner_cluster_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector. Figures follow from the members: none are described.
func (clusterFigures) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (f clusterFigures) Collect(out chan<- prometheus.Metric) {
	send := func(kind prometheus.ValueType, value float64, d *prometheus.Desc, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	view := f.p.View()
	up := 0
	for _, m := range view.Members() {
		if f.p.IsUp(m.ID) {
			up++
		}
	}
	for _, g := range []struct {
		name, help string
		value      float64
	}{
		{"ring_number", "Changes of the ring so far.", float64(view.Version().Number)},
		{"members", "Members of the ring.", float64(len(view.Members()))},
		{"members_up", "Members of the ring that this node reaches, itself included.", float64(up)},
		{"copies", "n of the ring.", float64(view.Copies(ring.Current))},
		{"moves", "Partitions that are to get new owners.", float64(len(view.Moves()))},
	} {
		send(prometheus.GaugeValue, g.value, clusterDesc(g.name, g.help))
	}
	f.protocol(send)
	f.tags(send)
	f.events(send)
	f.peers(send)
}

// counter is a figure that grows.
type counter struct {
	name, help string
	value      uint64
}

func sendCounters(send func(prometheus.ValueType, float64, *prometheus.Desc, ...string),
	list []counter) {
	for _, c := range list {
		send(prometheus.CounterValue, float64(c.value), clusterDesc(c.name, c.help))
	}
}

// protocol sends the figures of copies.
func (f clusterFigures) protocol(send func(prometheus.ValueType, float64, *prometheus.Desc,
	...string)) {
	s, _ := f.p.Figures()
	send(prometheus.GaugeValue, float64(s.Hints),
		clusterDesc("hints", "Batches that this node keeps for members that were down."))
	send(prometheus.GaugeValue, s.Pace,
		clusterDesc("move_pace",
			"Part of cluster.move_rate that is used: less while reads take twice as long as when nothing "+
				"moves."))
	send(prometheus.GaugeValue, float64(s.Kept),
		clusterDesc("kept_partitions",
			"Partitions that this node gave up and keeps for cluster.drop_after, for each n of buckets."))
	sendCounters(send, []counter{
		{"hints_kept_total", "Batches that were kept for members that were down.", s.HintsKept},
		{"hints_delivered_total", "Of these, delivered.", s.HintsDelivered},
		{"comparisons_total", "Comparisons of a whole partition with another member.", s.Comparisons},
		{"compared_chunks_total", "Chunks that were compared one by one, each with one other copy.",
			s.Chunks},
		{"differences_total", "Chunks of which the copies differed.", s.Differences},
		{"repaired_points_total", "Points that were copied because of that.", s.Repaired},
		{"moved_points_total", "Points that moved with a partition.", s.Moved},
	})
}

// tags sends the figures of what nodes tell each other of tags.
func (f clusterFigures) tags(send func(prometheus.ValueType, float64, *prometheus.Desc,
	...string)) {
	s := f.p.Tags().ExchangeStats()
	send(prometheus.GaugeValue, float64(s.Queued),
		clusterDesc("tag_queued_bytes", "Bytes of changes of tags that wait to be sent to other nodes."))
	sendCounters(send, []counter{
		{"tag_changes_told_total",
			"Changes of tags that this node took from clients and told the others of.", s.Told},
		{"tag_changes_left_total", "Times that one of them was left to the next comparison with a node.",
			s.Lost},
		{"tag_comparisons_total", "Comparisons of all tags with another member.", s.Comparisons},
		{"tag_differences_total", "Of these, those in which something differed.", s.Differences},
		{"tag_compared_changes_total", "Changes of tags that went or came because of that.", s.Moved},
		{"tag_expired_series_total", "Series whose tags went with their last points.", s.Expired},
	})
}

// events sends the figures of what nodes tell each other of events.
func (f clusterFigures) events(send func(prometheus.ValueType, float64, *prometheus.Desc,
	...string)) {
	s := f.p.Events().ExchangeStats()
	sendCounters(send, []counter{
		{"event_unconfirmed_total", "Events that fewer owners than needed had on disk in time.",
			s.Unconfirmed},
		{"event_comparisons_total", "Comparisons of events with another member.", s.Comparisons},
		{"event_differences_total", "Of these, those that brought something.", s.Differences},
		{"event_compared_events_total", "Events that they brought.", s.Fetched},
		{"event_tails_missed_total", "Events that live tails at other nodes missed.", s.Missed},
	})
}

// peers sends the figures of connections.
func (f clusterFigures) peers(send func(prometheus.ValueType, float64, *prometheus.Desc,
	...string)) {
	view := f.p.View()
	for _, p := range f.p.Peers() {
		name := p.ID.String()
		if m, ok := view.Member(p.ID); ok {
			name = m.Name
		}
		connected := 0.0
		if p.Connected {
			connected = 1
		}
		send(prometheus.GaugeValue, connected,
			clusterDesc("peer_connected", "Whether frames can be sent to a node.", "node"), name)
		send(prometheus.GaugeValue, float64(p.Queued),
			clusterDesc("peer_queued_bytes", "Bytes that wait to be sent to a node.", "node"), name)
		send(prometheus.CounterValue, float64(p.SentBytes),
			clusterDesc("peer_sent_bytes_total", "Bytes sent to a node.", "node"), name)
		send(prometheus.CounterValue, float64(p.ReceivedBytes),
			clusterDesc("peer_received_bytes_total", "Bytes received from a node.", "node"), name)
		for cause, n := range map[string]uint64{"down": p.Dropped.Down, "full": p.Dropped.Full,
			"lost": p.Dropped.Lost, "version": p.Dropped.Version, "too_large": p.Dropped.TooLarge} {
			send(prometheus.CounterValue, float64(n),
				clusterDesc("peer_dropped_frames_total",
					"Frames to a node that were not sent, by cause. What was not answered is sent again.", "node",
					"cause"), name, cause)
		}
	}
}

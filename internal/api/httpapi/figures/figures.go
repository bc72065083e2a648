// Package figures shows the account and the state of a store as figures of Prometheus.
package figures

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
)

// Namespace starts the name of every figure of ours.
const Namespace = "dalmatiner_"

// Source is what the collector reads: nothing is counted per request of
// its own.
type Source interface {
	Buckets() []buckets.Info
	BucketStats(id uint64) store.BucketStats
	Stats() store.Stats
	Account() *account.Account
}

// NewRegistry returns a registry with the account and the state of a store,
// and the figures of the Go runtime and the process. The caller may register
// more.
func NewRegistry(s Source) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{s}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(Namespace+name, help, labels, nil)
}

// points are the columns of the account.
var points = []struct {
	desc *prometheus.Desc
	of   func(c *account.Counts) uint64
}{
	{newDesc("points_received_total", "Points received.", "bucket"), (*account.Counts).ReceivedPoints},
	{newDesc("points_accepted_total", "Points stored in an empty slot.", "bucket"),
		func(c *account.Counts) uint64 { return c.Accepted }},
	{newDesc("points_duplicate_total", "Points whose slot held the same value.", "bucket"),
		func(c *account.Counts) uint64 { return c.Duplicate }},
	{newDesc("points_conflicting_total", "Points stored over a different value.", "bucket"),
		func(c *account.Counts) uint64 { return c.Conflicting }},
	{newDesc("points_late_total", "Points stored behind the open blocks.", "bucket"),
		func(c *account.Counts) uint64 { return c.Late }},
	{newDesc("points_unset_total", "Explicit unset points, which erase nothing.", "bucket"),
		func(c *account.Counts) uint64 { return c.Unset }},
}

var (
	refusedDesc = newDesc("points_refused_total", "Points refused.", "bucket", "reason")
	lostDesc    = newDesc("points_lost_total", "Points counted as stored and lost since.", "cause")
	recoverDesc = newDesc("points_recovered_total", "Points counted as lost that are served again.",
		"cause")
	requestsDesc = newDesc("requests_refused_total", "Frames, requests and queries refused.", "reason")
	poolDesc     = newDesc("memory_bytes", "Memory in use.", "pool")
	poolLimit    = newDesc("memory_pool_limit_bytes", "Limit of a pool that has one of its own.",
		"pool")
	poolWaiting = newDesc("memory_pool_waiting",
		"Connections and requests that wait for memory of the pool.", "pool")
	poolRefused = newDesc("memory_pool_refused_total",
		"Requests for memory of the pool that were refused.", "pool")
	poolCut = newDesc("memory_pool_cut_total",
		"Clients cut off because they held memory of the pool and made no progress.", "pool", "reason")
	seriesDesc = newDesc("bucket_series", "Series of the bucket.", "bucket")
)

// figure is one field of Stats as a metric.
type figure[Stats any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(s *Stats) float64
}

var figures = []figure[store.Stats]{
	gauge("series", "Series in the catalogue.", func(s *store.Stats) float64 {
		return float64(s.Series)
	}),
	gauge("buckets", "Buckets.", func(s *store.Stats) float64 { return float64(s.Buckets) }),
	gauge("column_groups", "Column groups of the head.", func(s *store.Stats) float64 {
		return float64(s.Groups)
	}),
	gauge("inactive_series", "Series without a column in the head.", func(s *store.Stats) float64 {
		return float64(s.Inactive.Series)
	}),
	gauge("inactive_bytes", "Memory of the names of series without a column.",
		func(s *store.Stats) float64 { return float64(s.Inactive.Bytes) }),
	counter("series_deactivations_total", "Times a silent series lost its column to another.",
		func(s *store.Stats) float64 { return float64(s.Inactive.Deactivations) }),
	gauge("segments", "Segments on disk.", func(s *store.Stats) float64 {
		return float64(s.Segments.Count)
	}),
	gauge("segment_bytes", "Size of all segments.", func(s *store.Stats) float64 {
		return float64(s.Segments.Bytes)
	}),
	gauge("segment_points", "Points in all segments.", func(s *store.Stats) float64 {
		return float64(s.Segments.Points)
	}),
	gauge("segment_index_bytes", "Memory of loaded segment indexes.", func(s *store.Stats) float64 {
		return float64(s.Segments.IndexBytes)
	}),
	gauge("segment_pinned_bytes",
		"Bytes of segments that are merged away and that readers still have.",
		func(s *store.Stats) float64 { return float64(s.Segments.PinnedBytes) }),
	gauge("segment_files_open", "Files of segments that are open.", func(s *store.Stats) float64 {
		return float64(s.Segments.Files.Open)
	}),
	gauge("segment_files_limit", "storage.max_open_files.", func(s *store.Stats) float64 {
		return float64(s.Segments.Files.Limit)
	}),
	counter("segment_files_opened_total", "Times that the file of a segment was opened.",
		func(s *store.Stats) float64 { return float64(s.Segments.Files.Opened) }),
	counter("segment_block_hits_total", "Blocks of segments that a query found in memory.",
		func(s *store.Stats) float64 { return float64(s.Segments.Files.Hits) }),
	counter("segment_block_misses_total", "Blocks of segments that a query had to read.",
		func(s *store.Stats) float64 { return float64(s.Segments.Files.Misses) }),
	gauge("memory_limit_bytes", "memory.limit, 0 for none.", func(s *store.Stats) float64 {
		return float64(s.Memory.Limit)
	}),
	gauge("memory_used_bytes", "Memory that counts towards memory.limit.",
		func(s *store.Stats) float64 { return float64(s.Memory.Used) }),
	gauge("memory_level",
		"0 calm, 1 urgent, 2 large queries refused, 3 new series refused, 4 senders held back.",
		func(s *store.Stats) float64 { return float64(s.Memory.Level) }),
	gauge("senders_held", "Senders held back now.", func(s *store.Stats) float64 {
		return float64(s.Senders.Held)
	}),
	gauge("head_bytes", "Memory of blocks that hold points.", func(s *store.Stats) float64 {
		return float64(s.Head.Bytes)
	}),
	gauge("head_warm_bytes", "Memory of blocks kept for reuse.", func(s *store.Stats) float64 {
		return float64(s.Head.Warm)
	}),
	gauge("open_chunk_bytes", "Encoded points not yet in a segment.", func(s *store.Stats) float64 {
		return float64(s.Head.Sealed)
	}),
	gauge("late_bytes", "Memory of late points not yet in a segment.", func(s *store.Stats) float64 {
		return float64(s.Head.Late)
	}),
	gauge("seal_queue", "Closed blocks that wait to be encoded.", func(s *store.Stats) float64 {
		return float64(s.Head.SealQueue)
	}),
	gauge("wal_bytes", "Log that a restart would replay.", func(s *store.Stats) float64 {
		return float64(s.WALBytes)
	}),
	gauge("wal_files", "Files of the log.", func(s *store.Stats) float64 {
		return float64(s.WAL.Files)
	}),
	gauge("wal_unsynced_bytes", "Log that a power failure would take.", func(s *store.Stats) float64 {
		return float64(s.WAL.Unsynced)
	}),
	gauge("wal_queue_bytes", "Log that waits to be written.", func(s *store.Stats) float64 {
		return float64(s.WAL.Queue)
	}),
	gauge("wal_sync_max_seconds", "The longest sync of the log.", func(s *store.Stats) float64 {
		return s.WAL.SyncMax.Seconds()
	}),
	counter("wal_records_total", "Records appended to the log.", func(s *store.Stats) float64 {
		return float64(s.WAL.Records)
	}),
	counter("wal_appended_bytes_total", "Bytes appended to the log.", func(s *store.Stats) float64 {
		return float64(s.WAL.Bytes)
	}),
	counter("wal_writes_total", "Write calls of the log.", func(s *store.Stats) float64 {
		return float64(s.WAL.Writes)
	}),
	counter("wal_syncs_total", "Syncs of the log.", func(s *store.Stats) float64 {
		return float64(s.WAL.Syncs)
	}),
	counter("wal_sync_seconds_total", "Time spent in syncs of the log.", func(s *store.Stats) float64 {
		return s.WAL.SyncTime.Seconds()
	}),
	counter("wal_stalls_total", "Appends that found the log's buffer full.",
		func(s *store.Stats) float64 { return float64(s.WAL.Stalls) }),
	gauge("disk_free_bytes", "Free space of the data directory's disk.", func(s *store.Stats) float64 {
		return float64(s.FreeDisk)
	}),
	gauge("disk_full", "1 while points are refused for lack of disk.", func(s *store.Stats) float64 {
		return boolean(s.DiskFull)
	}),
	gauge("since_flush_seconds", "Time since the last flush, by a coarse clock.",
		func(s *store.Stats) float64 { return max(0, s.Flushes.Since.Seconds()) }),
	gauge("replayed_records", "Log records replayed by the last start.", func(s *store.Stats) float64 {
		return float64(s.Replay.Records)
	}),
	gauge("replay_left_bytes", "Log that the last start has not yet brought into memory.",
		func(s *store.Stats) float64 { return float64(s.Replay.Left) }),
	counter("sealed_blocks_total", "Blocks encoded.", func(s *store.Stats) float64 {
		return float64(s.Head.BlocksSealed)
	}),
	counter("sender_waits_total", "Times a sender was held back.", func(s *store.Stats) float64 {
		return float64(s.Senders.Waits)
	}),
	counter("flushes_total", "Flushes.", func(s *store.Stats) float64 {
		return float64(s.Flushes.Count)
	}),
	counter("flush_seconds_total", "Time spent flushing.", func(s *store.Stats) float64 {
		return s.Flushes.Seconds
	}),
	counter("flushed_bytes_total", "Bytes written by flushes.", func(s *store.Stats) float64 {
		return float64(s.Flushes.Bytes)
	}),
	counter("flushed_points_total", "Points written by flushes.", func(s *store.Stats) float64 {
		return float64(s.Flushes.Points)
	}),
	counter("merges_total", "Rounds of merging.", func(s *store.Stats) float64 {
		return float64(s.Merges.Count)
	}),
	counter("merged_bytes_total", "Bytes written by merging.", func(s *store.Stats) float64 {
		return float64(s.Merges.Bytes)
	}),
	counter("series_deleted_total", "Series deleted by command.", func(s *store.Stats) float64 {
		return float64(s.Deleted.Series)
	}),
	counter("series_expired_total", "Series that left because nothing of them was left.",
		func(s *store.Stats) float64 { return float64(s.Deleted.Expired) }),
	counter("points_deleted_total", "Points of deleted series that left memory and segments.",
		func(s *store.Stats) float64 { return float64(s.Deleted.Points) }),
	gauge("series_deleted_pending", "Deleted series that segments may still hold.",
		func(s *store.Stats) float64 { return float64(s.Deleted.Tombstones) }),
	gauge("series_deletions_remembered",
		"Deletions of series of which segments hold nothing more, kept for 30 days so that no old copy "+
			"brings them back.", func(s *store.Stats) float64 { return float64(s.Deleted.Remembered) }),
	counter("series_deletions_forgotten_total",
		"Deletions of series forgotten before 30 days had passed, because there were too many.",
		func(s *store.Stats) float64 { return float64(s.Deleted.Forgotten) }),
	gauge("series_incarnations",
		"Series that were deleted as far as is remembered, whether or not they were sent again.",
		func(s *store.Stats) float64 { return float64(s.Deleted.Incarnations) }),
	counter("read_errors_total",
		"Reads of segments that failed at the device; part of damaged_blocks_total.",
		func(s *store.Stats) float64 { return float64(s.ReadErrors) }),
	counter("damaged_blocks_total", "Damaged blocks found and not served since the start.",
		func(s *store.Stats) float64 { return float64(s.Damage) }),
}

func gauge[Stats any](name, help string, of func(*Stats) float64) figure[Stats] {
	return figure[Stats]{newDesc(name, help), prometheus.GaugeValue, of}
}

func counter[Stats any](name, help string, of func(*Stats) float64) figure[Stats] {
	return figure[Stats]{newDesc(name, help), prometheus.CounterValue, of}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// collector turns the account and the state of a store into metrics when it is
// asked for them.
type collector struct{ source Source }

// Describe sends the descriptions of all metrics.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, p := range points {
		ch <- p.desc
	}
	for _, f := range figures {
		ch <- f.desc
	}
	for _, d := range []*prometheus.Desc{refusedDesc, lostDesc, requestsDesc, seriesDesc, poolDesc,
		poolLimit, poolWaiting, poolRefused, poolCut} {
		ch <- d
	}
}

// Collect sends the present values. A bucket that points were refused for but
// that has no row is absent; reasons appear with their first point.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	for _, t := range Totals(c.source) {
		for _, p := range points {
			send(p.desc, prometheus.CounterValue, float64(p.of(&t.Counts)), t.Bucket)
		}
		for _, reason := range account.Reasons() {
			if n := t.Refused[reason]; n > 0 {
				send(refusedDesc, prometheus.CounterValue, float64(n), t.Bucket, reason.String())
			}
		}
	}
	acc := c.source.Account()
	for _, l := range acc.Losses() {
		send(lostDesc, prometheus.CounterValue, float64(l.Points), l.Cause)
		send(recoverDesc, prometheus.CounterValue, float64(l.Recovered), l.Cause)
	}
	for reason, n := range acc.Requests() {
		send(requestsDesc, prometheus.CounterValue, float64(n), reason)
	}
	for _, b := range c.source.Buckets() {
		send(seriesDesc, prometheus.GaugeValue, float64(c.source.BucketStats(b.ID).Series),
			metric.Escape(b.Name))
	}
	stats := c.source.Stats()
	for _, p := range stats.Memory.Pools {
		send(poolDesc, prometheus.GaugeValue, float64(p.Use), p.Name)
		if p.Limit > 0 {
			send(poolLimit, prometheus.GaugeValue, float64(p.Limit), p.Name)
		}
		if l := p.Leases; l != nil {
			send(poolWaiting, prometheus.GaugeValue, float64(l.Waiting), p.Name)
			send(poolRefused, prometheus.CounterValue, float64(l.Refused), p.Name)
			send(poolCut, prometheus.CounterValue, float64(l.CutStalled), p.Name, string(memory.CutStalled))
			send(poolCut, prometheus.CounterValue, float64(l.CutPressure), p.Name,
				string(memory.CutPressure))
		}
	}
	for _, f := range figures {
		send(f.desc, f.kind, f.of(&stats))
	}
}

// Total is what was counted of a bucket by its escaped name. The empty name stands
// for all buckets that are gone: no bucket has it.
type Total struct {
	Bucket string
	account.Counts
}

// Totals returns what was counted of all buckets in the order of their names, those
// that are gone summed up in the first.
func Totals(s interface {
	Buckets() []buckets.Info
	Account() *account.Account
}) []Total {
	// The account first: a bucket made in between is in the names then.
	counts := s.Account().Totals()
	names := map[uint64]string{}
	for _, b := range s.Buckets() {
		names[b.ID] = metric.Escape(b.Name)
		if _, ok := counts[b.ID]; !ok {
			counts[b.ID] = account.Counts{}
		}
	}
	byName := map[string]*Total{}
	for id, c := range counts {
		t := byName[names[id]]
		if t == nil {
			t = &Total{Bucket: names[id]}
			byName[names[id]] = t
		}
		t.Add(&c)
	}
	var out []Total
	for _, t := range byName {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Total) int { return strings.Compare(a.Bucket, b.Bucket) })
	return out
}

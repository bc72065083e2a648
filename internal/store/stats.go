package store

import (
	"sync/atomic"
	"time"

	"dalmatiner/internal/memory"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/wal"
)

// counters only grow.
type counters struct {
	flushes, flushNanos         atomic.Int64
	flushedBytes, flushedPoints atomic.Int64
	replayed                    atomic.Int64
	seriesDeleted, seriesGone   atomic.Int64
	pointsDeleted               atomic.Int64
	deletionsForgotten          atomic.Int64
}

// Stats is the state of the store at one moment.
type Stats struct {
	Series        int64
	Inactive      int64 // of them without a column
	Deactivations int64 // times a series lost its column to others, since the start
	Buckets       int64
	Groups        int64
	Segments      int64
	PinnedBytes   int64 // of segments that are merged away and stay for readers

	SegmentBytes  int64 // files
	SegmentPoints int64
	IndexBytes    int64 // loaded indexes, in memory
	Files         segment.FileStats

	Memory      []memory.Usage // by pool
	MemoryUsed  int64
	MemoryLimit int64 // 0 = none
	MemoryLevel memory.Level
	SendersHeld int64 // back, now

	HeadBytes     int64 // blocks that hold points
	HeadWarm      int64 // blocks, and room for encoded chunks, kept for reuse
	InactiveBytes int64 // names of series without a column
	SealedBytes   int64 // encoded, not yet flushed
	LateBytes     int64
	SealQueue     int64
	SealedTotal   int64
	WaitsTotal    int64 // times a sender was held back

	FlushesTotal       int64
	FlushSecondsTotal  float64
	FlushedBytesTotal  int64
	FlushedPointsTotal int64
	MergesTotal        int64
	MergedBytesTotal   int64
	SinceFlush         time.Duration
	ReplayedRecords    int64 // by the last start
	ReplayLeft         int64 // bytes of the log that it has not yet brought into memory

	SeriesDeleted int64 // by command
	SeriesExpired int64 // left because nothing of them was left
	PointsDeleted int64 // of deleted series that left memory and segments
	Tombstones    int64 // deleted series that segments may still hold
	Remembered    int64 // deletions of series of which segments hold nothing more
	Forgotten     int64 // of these that were forgotten before incarnation.TTL: there were too many
	Incarnations  int64 // series with an incarnation that is not 0, deleted or sent again

	WAL      wal.Stats
	WALBytes int64 // between the oldest record kept and the end

	FreeDisk int64
	DiskFull bool
	Damage   uint64

	ReadErrors int64 // part of Damage: what the device could not read
}

// BucketStats is what a bucket holds.
type BucketStats struct{ Series int64 }

// BucketStats returns what the bucket with the id holds; zero for an unknown
// one.
func (s *Store) BucketStats(id uint64) BucketStats {
	b := s.buckets.ID(id)
	if b == nil {
		return BucketStats{}
	}
	return BucketStats{Series: b.Counts().Series}
}

// Stats returns the state of the store.
func (s *Store) Stats() Stats {
	c, merged := &s.counters, s.merges.Counts()
	st := Stats{
		SealedBytes: s.pressure.Sealed(), LateBytes: s.pressure.Late(),
		SealQueue: int64(s.sealers.Queued()), SealedTotal: s.sealers.Sealed(), WaitsTotal: s.pressure.Waits(),
		FlushesTotal: c.flushes.Load(), FlushSecondsTotal: float64(c.flushNanos.Load()) / 1e9,
		FlushedBytesTotal: c.flushedBytes.Load(), FlushedPointsTotal: c.flushedPoints.Load(),
		MergesTotal: merged.Merges, MergedBytesTotal: merged.Bytes,
		SinceFlush: time.Duration(s.clock.Steady() - s.lastFlush.Load()), ReplayedRecords: c.replayed.Load(), ReplayLeft: s.replayLeft(),
		WAL: s.log.Stats(), WALBytes: s.log.Size(),
		SeriesDeleted: c.seriesDeleted.Load(), SeriesExpired: c.seriesGone.Load(), PointsDeleted: c.pointsDeleted.Load() + merged.PointsDeleted,
		Tombstones: s.tombstoneCount(), Remembered: s.manifest.Remembered(), Forgotten: c.deletionsForgotten.Load(),
		FreeDisk: s.pressure.FreeDisk(), DiskFull: s.pressure.DiskFull(),
	}
	st.ReadErrors = s.damage.ReadErrors()
	st.Deactivations = s.columns.Deactivated()
	_, st.Damage = s.Damage()
	for _, b := range s.buckets.All() {
		n := b.Counts()
		st.Series += n.Series
		st.Incarnations += n.Incarnations
		st.Inactive += n.Inactive
		st.InactiveBytes += n.InactiveBytes
		st.Groups += n.Groups
		st.Buckets++
	}
	rows, tables, warm := s.arenas.Bytes()
	st.HeadBytes, st.HeadWarm = rows+tables, warm
	st.Files = s.files.Stats()
	st.Memory, st.MemoryUsed = s.memory.Pools(), s.memory.Used()
	st.MemoryLimit, st.MemoryLevel, st.SendersHeld = s.memory.Limit(), s.memory.Level(), s.pressure.Waiting()
	segments := s.versions.Latest().Segments
	st.Segments, st.PinnedBytes = int64(len(segments)), s.versions.PinnedBytes()
	for _, seg := range segments {
		st.SegmentBytes += seg.Info.Size
		st.SegmentPoints += seg.Info.Points
		st.IndexBytes += seg.Reader.IndexBytes()
	}
	return st
}

package store

import (
	"time"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/memory"
)

// Stats is the state of the store at one moment. What grows counts since the start.
type Stats struct {
	Buckets  int64
	Groups   int64
	Series   int64
	Inactive InactiveStats
	Deleted  DeletedStats
	Head     HeadStats
	Senders  SenderStats
	Segments SegmentStats
	Flushes  FlushStats
	Merges   MergeStats
	Replay   ReplayStats
	Memory   MemoryStats

	WAL      wal.Stats
	WALBytes int64 // between the oldest record kept and the end

	FreeDisk int64 // bytes
	DiskFull bool

	Damage     uint64
	ReadErrors int64 // part of Damage: what the device could not read
}

// InactiveStats are of series without a column, which Stats.Series counts as well.
type InactiveStats struct {
	Series        int64
	Bytes         int64 // names
	Deactivations int64 // times a series lost its column to others
}

// DeletedStats are of series that were deleted or have expired.
type DeletedStats struct {
	Series       int64 // by command
	Expired      int64 // left because nothing of them was left
	Points       int64 // of deleted series that left memory and segments
	Tombstones   int64 // deleted series that segments may still hold
	Remembered   int64 // deletions of series of which segments hold nothing more
	Forgotten    int64 // of these that were forgotten before incarnation.TTL: there were too many
	Incarnations int64 // series with an incarnation that is not 0, deleted or sent again
}

// HeadStats are of points in memory. Sizes are in bytes.
type HeadStats struct {
	Bytes        int64 // blocks that hold points
	Warm         int64 // blocks, and room for encoded chunks, kept for reuse
	Sealed       int64 // encoded, not yet flushed
	Late         int64 // late points, not yet flushed
	SealQueue    int64 // blocks that wait to be encoded
	BlocksSealed int64 // encoded so far
}

// SenderStats are of senders that are held back.
type SenderStats struct {
	Held  int64 // now
	Waits int64 // times one was
}

// SegmentStats are of committed segments. Sizes are in bytes.
type SegmentStats struct {
	Count       int64
	Bytes       int64 // files
	Points      int64
	IndexBytes  int64 // loaded indexes, in memory
	PinnedBytes int64 // of segments that are merged away and stay for readers
	Files       segment.FileStats
}

// FlushStats are of flushes.
type FlushStats struct {
	Count   int64
	Seconds float64
	Bytes   int64
	Points  int64
	Since   time.Duration // the last one
}

// MergeStats are of merges.
type MergeStats struct {
	Count int64
	Bytes int64 // written
}

// ReplayStats are of the replay of the last start.
type ReplayStats struct {
	Records int64
	Left    int64 // bytes of the log that are not yet in memory
}

// MemoryStats are of the process's memory, in bytes.
type MemoryStats struct {
	Pools []memory.Usage
	Used  int64
	Limit int64 // 0 = none
	Level memory.Level
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
	merged, flushed, deleted := s.merges.Counts(), s.flusher.Stats(), s.deletions.Stats()
	rows, tables, warm := s.arenas.Bytes()
	st := Stats{
		Inactive: InactiveStats{Deactivations: s.columns.DeactivationCount()},
		Deleted: DeletedStats{
			Series: deleted.Series, Expired: deleted.Expired, Points: deleted.Points + merged.PointsDeleted,
			Tombstones: s.deletions.Tombstones(), Remembered: s.disk.Manifest.RememberedSeries(),
			Forgotten: flushed.Forgotten,
		},
		Head: HeadStats{
			Bytes: rows + tables, Warm: warm, Sealed: s.pressure.SealedBytes(), Late: s.pressure.LateBytes(),
			SealQueue: int64(s.sealers.QueuedBlocks()), BlocksSealed: s.sealers.SealedBlocks(),
		},
		Senders:  SenderStats{Held: s.pressure.WaitingSenders(), Waits: s.pressure.Waits()},
		Segments: segmentStats(s.versions, s.files),
		Flushes: FlushStats{
			Count: flushed.Flushes, Seconds: flushed.Took.Seconds(),
			Bytes: flushed.Bytes, Points: flushed.Points,
			Since: s.flusher.Since(),
		},
		Merges: MergeStats{Count: merged.Merges, Bytes: merged.Bytes},
		Replay: ReplayStats{Records: s.replay.Records(), Left: s.replay.Left()},
		Memory: MemoryStats{
			Pools: s.o.Memory.Pools(),
			Used:  s.o.Memory.UsedBytes(),
			Limit: s.o.Memory.Limit(),
			Level: s.o.Memory.Level(),
		},
		WAL: s.disk.Log.Stats(), WALBytes: s.disk.Log.Size(),
		FreeDisk: s.pressure.FreeDisk(), DiskFull: s.pressure.DiskFull(),
		ReadErrors: s.damage.ReadErrors(),
	}
	_, st.Damage = s.Damage()
	for _, b := range s.buckets.All() {
		n := b.Counts()
		st.Buckets++
		st.Groups += n.Groups
		st.Series += n.Series
		st.Inactive.Series += n.Inactive
		st.Inactive.Bytes += n.InactiveBytes
		st.Deleted.Incarnations += n.Incarnations
	}
	return st
}

func segmentStats(v *version.Versions, files *segment.Files) SegmentStats {
	segments := v.Latest().Segments
	st := SegmentStats{Count: int64(len(segments)), PinnedBytes: v.PinnedBytes(), Files: files.Stats()}
	for _, seg := range segments {
		st.Bytes += seg.Info.Size
		st.Points += seg.Info.Points
		st.IndexBytes += seg.Reader.IndexBytes()
	}
	return st
}

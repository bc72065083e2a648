package store

import (
	"dalmatiner/internal/disk/catalogue"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/store/replay"
	"dalmatiner/internal/store/upkeep"
	"dalmatiner/internal/write/intake"
)

const (
	// namesPart of the limit is what names and index may take: nothing but fewer
	// series makes them smaller.
	namesPart = 2

	// accountPart bounds the minutes of the account: a flush writes all of them.
	accountPart = 16

	// copiesPart of that is the ledger of copies'.
	copiesPart = 4

	// flushSharePart of the limit is what a flush takes at most to put chunks in order.
	flushSharePart = 32

	// arrivalsPart bounds what is remembered of new series; with less they are counted too low.
	arrivalsPart    = 64
	defaultArrivals = 64 << 20
)

// takeShares keeps the store's options within shares of the budget.
func takeShares(s *Store) {
	if s.o.Memory == nil {
		s.o.Memory = memory.New(0, s.o.Now, nil)
	}
	m := s.o.Memory
	s.o.FlushBytes, s.o.LateMemory = m.Share(16, s.o.FlushBytes), m.Share(16, s.o.LateMemory)
	s.o.BlockCache = m.Share(16, s.o.BlockCache)
	s.files = segment.NewFiles(s.o.FS, s.o.MaxOpenFiles, s.o.BlockCache)
	s.o.maxPositions = m.Share(replay.PositionsPart, s.o.maxPositions)
	s.o.maxMergedFile = m.Share(8, s.o.maxMergedFile)
}

// addPools tells the budget what takes memory, and the columns where names get theirs.
// Everything is open.
func (s *Store) addPools() {
	m := s.o.Memory
	var names, index, minutes int64
	if limit := m.Limit(); limit > 0 {
		names, index, minutes = limit/namesPart, limit/upkeep.IndexPart, limit/accountPart
	}
	points, copies := s.ledger.Points(), s.ledger.Copies()
	copies.Bound(minutes / copiesPart)
	points.Bound(minutes - minutes/copiesPart)
	arrivals := int64(defaultArrivals)
	if limit := m.Limit(); limit > 0 {
		arrivals = limit / arrivalsPart
	}
	s.columns.Arrivals.Begin(s.clock.Unix(), arrivals)
	for _, p := range []memory.Pool{
		{Name: "head-blocks", Holds: "blocks in use: points not yet encoded", Use: func() int64 {
			rows, _, _ := s.arenas.Bytes()
			return rows
		}, OffHeap: true},
		{Name: "head-tables", Holds: "blocks in use of which few cells are set", Use: func() int64 {
			_, tables, _ := s.arenas.Bytes()
			return tables
		}},
		{Name: "head-blocks-warm", Holds: "empty blocks, and room for encoded chunks, kept for reuse",
			Use: func() int64 {
				_, _, warm := s.arenas.Bytes()
				return warm
			}, OffHeap: true},
		{Name: "sealed-blocks", Holds: "encoded chunks not yet flushed; senders wait at the limit",
			Limit: 2 * s.o.FlushBytes, Use: s.pressure.SealedBytes, OffHeap: true},
		{Name: "late-points", Holds: "late points not yet flushed; senders wait at the limit",
			Limit: 2 * s.o.LateMemory, Use: s.pressure.LateBytes},
		{Name: "events", Holds: "events not yet flushed, with sealed blocks senders wait at the limit",
			Limit: 2 * s.o.FlushBytes, Use: s.events.Unflushed},
		{Name: "event-indexes", Holds: "indexes of files of events", Use: s.events.IndexBytes},
		{Name: "unpredicted-points",
			Holds: "points of senders without an order, to be looked up together", Limit: intake.MaxBytes,
			Use: s.intake.Bytes},
		{Name: "flush", Holds: "what a flush takes beside what it flushes", Use: s.flusher.Need},
		{Name: "segment-indexes",
			Holds: "directories and index leaves of segments that were read; dropped at the limit",
			Limit: index, Use: s.upkeep.IndexBytes},
		{Name: "segment-blocks", Holds: "verified blocks of segments that were read more than once",
			Limit: s.o.BlockCache, Use: s.files.CachedBytes},
		{Name: "merges", Holds: "index and names of the segment that a merge writes; a block of each " +
			"file of events that one reads", Limit: s.o.maxMergedFile,
			Use: func() int64 { return s.merges.OutputBytes() + s.events.Merger.Bytes() }},
		{Name: "replay", Holds: "after a crash: where the log has the points of each group, and those " +
			"on their way into memory", Use: s.replay.Bytes},
		{Name: "log", Holds: "buffers of the log", Limit: wal.Buffers, Use: func() int64 {
			return wal.Buffers
		}},
		tagPool(s.tags),
		{Name: "new-series", Holds: "which series are new; those beyond the limit are not counted as new",
			Limit: arrivals, Use: s.columns.Arrivals.Bytes},
		{Name: "account", Holds: "minutes of the account; a bucket keeps fewer near the limit",
			Limit: minutes, Use: func() int64 {
				return points.Bytes() + copies.Bytes()
			}},
		{Name: "catalogue", Holds: "tables and cache of the catalogue", Limit: catalogue.Memory,
			Use: func() int64 {
				return catalogue.Memory
			}},
	} {
		m.Add(p)
	}
	s.columns.Use(m.NewStock(memory.StockOptions{Name: "names", Holds: "buckets, names of series " +
		"and their index; new ones are refused at the limit", Limit: names}))
}

// Memory returns the budget of the process.
func (s *Store) Memory() *memory.Budget { return s.o.Memory }

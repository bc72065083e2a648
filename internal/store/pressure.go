package store

import (
	"time"

	"dalmatiner/internal/catalogue"
	"dalmatiner/internal/head"
	"dalmatiner/internal/memory"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/wal"
)

// What follows from the level of the memory budget is done here; the list is in
// internal/memory/DESIGN.md.

const (
	// reliefEvery is the time between two steps against pressure.
	reliefEvery = 500 * time.Millisecond

	// namesPart of the limit is what names and index may take: nothing but fewer
	// series makes them smaller.
	namesPart = 2

	// indexPart bounds the indexes of segments, accountPart the minutes of the account: a
	// flush writes all of them. flushPart is what a flush under
	// pressure is worth.
	indexPart   = 8
	accountPart = 16
	flushPart   = 32

	// mergeAnyway is the number of segments from which on merging yields no more.
	mergeAnyway = 256
)

// idleUnder is how long a block may be without writes at a level.
var idleUnder = map[memory.Level]time.Duration{
	memory.Urgent: 5 * time.Second, memory.NoQueries: 5 * time.Second, memory.NoSeries: 2 * time.Second, memory.Hold: 0,
}

// takeShares keeps the store's options within shares of the budget.
func (s *Store) takeShares() {
	if s.o.Memory == nil {
		s.o.Memory = memory.New(0, s.o.Now, nil)
	}
	m := s.o.Memory
	s.memory = m
	s.o.FlushBytes, s.o.LateMemory = m.Share(16, s.o.FlushBytes), m.Share(16, s.o.LateMemory)
	s.o.BlockCache = m.Share(16, s.o.BlockCache)
	s.files = segment.NewFiles(s.o.FS, s.o.MaxOpenFiles, s.o.BlockCache)
	s.o.maxMergedFile = m.Share(8, s.o.maxMergedFile)
}

// addPools tells the budget what takes memory. Everything is open.
func (s *Store) addPools() {
	m := s.memory
	var names, index, minutes int64
	if limit := m.Limit(); limit > 0 {
		names, index, minutes = limit/namesPart, limit/indexPart, limit/accountPart
	}
	s.account.Bound(minutes)
	for _, p := range []memory.Pool{
		{Name: "head-blocks", Holds: "blocks in use: points not yet encoded", Use: func() int64 { rows, _, _ := s.arenas.Bytes(); return rows }, OffHeap: true},
		{Name: "head-tables", Holds: "blocks in use of which few cells are set", Use: func() int64 { _, tables, _ := s.arenas.Bytes(); return tables }},
		{Name: "head-blocks-warm", Holds: "empty blocks, and room for encoded chunks, kept for reuse", Use: func() int64 { _, _, warm := s.arenas.Bytes(); return warm }, OffHeap: true},
		{Name: "sealed-blocks", Holds: "encoded chunks not yet flushed; senders wait at the limit", Limit: 2 * s.o.FlushBytes, Use: s.pressure.Sealed, OffHeap: true},
		{Name: "late-points", Holds: "late points not yet flushed; senders wait at the limit", Limit: 2 * s.o.LateMemory, Use: s.pressure.Late},
		{Name: "unpredicted-points", Holds: "points of senders without an order, to be looked up together", Limit: maxUnpredictedSets * unpredictedCost, Use: s.unpredictedSets.bytes},
		{Name: "flush", Holds: "what a flush takes beside what it flushes", Use: s.flusher.Need},
		{Name: "segment-indexes", Holds: "directories and index leaves of segments that were read; dropped at the limit", Limit: index, Use: s.indexBytes.Load},
		{Name: "segment-blocks", Holds: "verified blocks of segments that were read more than once", Limit: s.o.BlockCache, Use: s.files.Kept},
		{Name: "merges", Holds: "index and names of the segment that a merge writes", Limit: s.o.maxMergedFile, Use: s.merges.OutputBytes},
		{Name: "replay", Holds: "after a crash: where the log has the points of each group, and those on their way into memory", Use: func() int64 { return s.replayBytes.Load() + s.ownerless.Bytes() + s.lostLog.Bytes() }},
		{Name: "log", Holds: "buffers of the log", Limit: wal.Buffers, Use: func() int64 { return wal.Buffers }},
		{Name: "account", Holds: "minutes of the account; a bucket keeps fewer near the limit", Limit: minutes, Use: s.account.Bytes},
		{Name: "catalogue", Holds: "tables and cache of the catalogue", Limit: catalogue.Memory, Use: func() int64 { return catalogue.Memory }},
	} {
		m.Add(p)
	}
	s.nameStock = m.NewStock(memory.StockOptions{Name: "names", Holds: "buckets, names of series and their index; new ones are refused at the limit", Limit: names})
}

// Memory returns the budget of the process.
func (s *Store) Memory() *memory.Budget { return s.memory }

// countNames counts names and index anew: between two counts they are estimated.
func (s *Store) countNames() {
	was := s.nameStock.Bytes() // what is taken from here on stays counted
	s.nameStock.Add(s.columns.Bytes() - was)
}

// yields reports whether merging has to yield to points: they have all
// processors, memory is short, senders wait, or the sealers are behind. When
// very many segments wait it is the points' turn to wait: every segment is a
// part of every read.
func (s *Store) yields(busy bool) bool {
	if !busy && s.memory.Level() < memory.Urgent && s.pressure.Waiting() == 0 && !s.sealers.Behind() {
		return false
	}
	return len(s.versions.Latest().Segments) < mergeAnyway
}

// reliefLoop gives back memory while it is short.
func (s *Store) reliefLoop() {
	t := time.NewTicker(reliefEvery)
	defer t.Stop()
	for last := memory.Calm; ; {
		select {
		case <-s.stop:
			return
		case <-t.C:
		}
		level := s.memory.Level()
		s.reportRollup(last, level)
		last = level
		if level > memory.Calm {
			s.relieve(level)
		}
	}
}

// reportRollup logs when new series begin or cease to be refused.
func (s *Store) reportRollup(last, level memory.Level) {
	switch refused := level >= memory.NoSeries; {
	case refused == (last >= memory.NoSeries):
	case refused:
		s.o.Logger.Warn("memory is short: new series and buckets are refused, known ones are served; raise memory.limit if this lasts",
			"used", s.memory.Used(), "memory.limit", s.memory.Limit(), "names", s.nameStock.Bytes())
	default:
		s.o.Logger.Info("new series and buckets are taken again", "used", s.memory.Used(), "memory.limit", s.memory.Limit())
	}
}

// relieve takes one step against pressure.
func (s *Store) relieve(level memory.Level) {
	nanos, idle := s.clock.Steady(), int64(idleUnder[level])
	for _, g := range s.columns.Groups.All() {
		closed := g.CloseBlocks(func(_ uint64, _, lastWrite int64) bool { return nanos-lastWrite >= idle })
		s.sealers.Applied(g, head.Applied{Closed: closed})
	}
	switch {
	case s.pressure.Sealed()+s.pressure.Late()+s.flusher.Need() > s.memory.Limit()/flushPart,
		level >= memory.NoQueries && s.pressure.Late() > s.o.LateMemory/4,
		level >= memory.Hold && s.pressure.Sealed()+s.pressure.Late() > 0:
		s.pressure.WantFlush()
	}
	s.dropIndexes()
	s.files.DropBlocks()
	s.arenas.Trim()
}

// watchIndexes counts the loaded indexes of segments and drops them when they
// have more than their share.
func (s *Store) watchIndexes() {
	var n int64
	for _, seg := range s.versions.Latest().Segments {
		n += seg.Reader.IndexBytes()
	}
	s.indexBytes.Store(n)
	if limit := s.memory.Limit(); limit > 0 && n > limit/indexPart {
		s.dropIndexes()
	}
}

// dropIndexes drops the loaded indexes of all segments; readers load what they
// need again.
func (s *Store) dropIndexes() {
	for _, seg := range s.versions.Latest().Segments {
		seg.Reader.DropIndex()
	}
	s.indexBytes.Store(0)
}

// headBytes returns the memory of open blocks, which encoding frees.
func (s *Store) headBytes() int64 {
	rows, tables, _ := s.arenas.Bytes()
	return rows + tables
}

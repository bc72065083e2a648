package upkeep

import (
	"time"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/write/head"
)

// What follows from the level of the memory budget is done here; the list is in
// internal/host/memory/DESIGN.md.

const (
	// reliefEvery is the time between two steps against pressure.
	reliefEvery = 500 * time.Millisecond

	// IndexPart of the memory limit bounds the loaded indexes of segments.
	IndexPart = 8

	// flushPart of it is what a flush under pressure is worth.
	flushPart = 32

	// mergeAnyway is the number of segments from which on merging yields no more.
	mergeAnyway = 256
)

// idleUnder is how long a block may be without writes at a level.
var idleUnder = map[memory.Level]time.Duration{
	memory.Urgent: 5 * time.Second, memory.NoQueries: 5 * time.Second,
	memory.NoSeries: 2 * time.Second, memory.Hold: 0,
}

// Yields reports whether merging has to yield to points: they have all
// processors, memory is short, senders wait, or the sealers are behind. When
// very many segments wait it is the points' turn to wait: every segment is a
// part of every read.
func (u *Upkeep) Yields(busy bool) bool {
	if !busy && u.o.Memory.Level() < memory.Urgent && u.o.Pressure.WaitingSenders() == 0 &&
		!u.o.Sealers.IsBehind() {
		return false
	}
	return len(u.o.Versions.Latest().Segments) < mergeAnyway
}

// relief gives back memory while it is short.
func (u *Upkeep) relief(stop <-chan struct{}) {
	t := time.NewTicker(reliefEvery)
	defer t.Stop()
	for last := memory.Calm; ; {
		select {
		case <-stop:
			return
		case <-t.C:
		}
		level := u.o.Memory.Level()
		u.reportLevel(last, level)
		last = level
		if level > memory.Calm {
			u.Relieve(level)
		}
	}
}

// reportLevel logs when new series begin or cease to be refused.
func (u *Upkeep) reportLevel(last, level memory.Level) {
	switch refused := level >= memory.NoSeries; {
	case refused == (last >= memory.NoSeries):
	case refused:
		u.o.Logger.Warn("memory is short: new series and buckets are refused, known ones are served; "+
			"raise memory.limit if this lasts",
			"used", u.o.Memory.UsedBytes(), "memory.limit", u.o.Memory.Limit(), "names",
			u.o.Columns.Names().Bytes())
	default:
		u.o.Logger.Info("new series and buckets are taken again", "used", u.o.Memory.UsedBytes(),
			"memory.limit", u.o.Memory.Limit())
	}
}

// Relieve takes one step against pressure.
func (u *Upkeep) Relieve(level memory.Level) {
	nanos, idle := u.o.Clock.Monotonic(), int64(idleUnder[level])
	for _, g := range u.o.Columns.Groups.All() {
		closed := g.CloseBlocks(func(_ uint64, _, lastWrite int64) bool {
			return nanos-lastWrite >= idle
		})
		u.o.Sealers.HandleWrite(g, head.WriteResult{Closed: closed})
	}
	switch {
	case u.o.Pressure.SealedBytes()+u.o.Pressure.LateBytes()+u.o.Flusher.SealedNeed() >
		u.o.Memory.Limit()/flushPart,
		level >= memory.NoQueries && u.o.Pressure.LateBytes() > u.o.Pressure.LateMemory()/4,
		level >= memory.Hold && u.o.Pressure.SealedBytes()+u.o.Pressure.LateBytes() > 0:
		u.o.Pressure.WantFlush()
	}
	u.dropIndexes()
	u.o.Files.DropBlocks()
	u.o.Arenas.Trim()
}

// WatchIndexes counts the loaded indexes of segments and drops them when they
// have more than their share.
func (u *Upkeep) WatchIndexes() {
	var n int64
	for _, seg := range u.o.Versions.Latest().Segments {
		n += seg.Reader.IndexBytes()
	}
	u.indexBytes.Store(n)
	if limit := u.o.Memory.Limit(); limit > 0 && n > limit/IndexPart {
		u.dropIndexes()
	}
}

// dropIndexes drops the loaded indexes of all segments; readers load what they
// need again.
func (u *Upkeep) dropIndexes() {
	for _, seg := range u.o.Versions.Latest().Segments {
		seg.Reader.DropIndex()
	}
	u.indexBytes.Store(0)
}

// IndexBytes returns the memory of loaded indexes of segments, as last counted.
func (u *Upkeep) IndexBytes() int64 { return u.indexBytes.Load() }

package flush

const (
	// dueDelay is for how many seconds a flush that is due by size waits: for as long as the
	// closing of complete blocks is spread, and a look more.
	dueDelay = 3

	// chunkCost is what a flush takes for each of all its chunks: its place in the
	// index of the segment. Chunks of series that stand still have a dozen bytes.
	chunkCost = 44

	// FirstChunkNeed is what it takes for the first chunk of a series.
	FirstChunkNeed = chunkCost + ListCost
)

// Due reports whether a flush is due by size before it must be: the blocks of
// senders in step are sealed together, and behind them there is more memory for it.
// A flood of new series takes as much until they are named as points until they are
// flushed. It is asked every second.
func (f *Flusher) Due() bool {
	due, limit := f.o.Pressure.Sealed()+f.o.Columns.Unflushed.Need()+f.unflushedSides(), f.o.FlushBytes
	if due <= limit/4*3 {
		f.dueFor.Store(0)
		return false
	}
	if f.dueFor.Add(1) <= dueDelay || due <= limit && !f.Rarely() || !f.gate.TryLock() {
		return false // what a flush under way takes counts until its end
	}
	f.gate.Unlock()
	return true
}

// Need is the memory that a flush would take now: the lists of a share of the chunks, and a
// copy of those that are more than one piece; what each of all takes however short it
// is; and the list of the series it names.
func (f *Flusher) Need() int64 { return f.share.Load() + f.o.Columns.Unflushed.Need() }

// AddSeries counts what the next flush takes for the first points of a new series, until
// the next count.
func (f *Flusher) AddSeries() { f.share.Add(FirstChunkNeed) }

// Count counts what the chunks of the next flush will need.
func (f *Flusher) Count() {
	type bucket struct{ chunks, copied int64 }
	buckets := make(map[uint64]bucket)
	for _, g := range f.o.Columns.Groups.All() {
		chunks, copied := g.FlushChunks()
		b := buckets[g.Bucket]
		buckets[g.Bucket] = bucket{b.chunks + chunks, b.copied + copied}
	}
	var most, all int64
	for _, b := range buckets {
		most, all = max(most, ShareNeed(b.copied, b.chunks, ShareSize)), all+b.chunks
	}
	f.share.Store(most + all*chunkCost)
}

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
	due := f.o.Pressure.SealedBytes() + f.o.Columns.Unflushed.FlushMemory() + f.unflushedSides()
	limit := f.o.FlushBytes
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

// Need is the memory that a flush takes if all blocks are closed now, as they are at the end of the
// memory: the lists of a share of the chunks, and a copy of those that are more than one piece;
// what each of all takes however short it is; and the list of the series it names.
func (f *Flusher) Need() int64 { return f.share.Load() + f.o.Columns.Unflushed.FlushMemory() }

// SealedNeed is Need without the blocks, as last counted: a flush gives it back.
func (f *Flusher) SealedNeed() int64 {
	return f.sealedShare.Load() + f.o.Columns.Unflushed.FlushMemory()
}

// AddSeries counts what the next flush takes for the first points of a new series, until
// the next count.
func (f *Flusher) AddSeries() { f.share.Add(FirstChunkNeed) }

// Count counts what the chunks of the next flush will need, with those of blocks that are not
// sealed. A flood of new series leaves its points in blocks: counted behind the sealing, what their
// flush takes would come on top when the memory is full, and it is several times what they take.
func (f *Flusher) Count() {
	f.counting.Lock()
	defer f.counting.Unlock()
	was := f.share.Load() // a series that is added from here on stays counted
	all, sealed := make(chunkNeeds), make(chunkNeeds)
	for _, g := range f.o.Columns.Groups.All() {
		// Before the sealed ones, so that a block that is sealed meanwhile counts twice and not never.
		chunks, copied := g.BlockChunks()
		all.add(g.Bucket, chunks, copied)
		chunks, copied = g.FlushChunks()
		all.add(g.Bucket, chunks, copied)
		sealed.add(g.Bucket, chunks, copied)
	}
	f.share.Add(all.need(f.o.ShareSize) - was)
	f.sealedShare.Store(sealed.need(f.o.ShareSize))
}

// chunkNeeds are the chunks of a flush by bucket.
type chunkNeeds map[uint64]struct{ chunks, copied int64 }

func (n chunkNeeds) add(bucket uint64, chunks, copied int64) {
	b := n[bucket]
	b.chunks, b.copied = b.chunks+chunks, b.copied+copied
	n[bucket] = b
}

// need returns the memory that a flush takes to put the chunks in order, in shares of about so
// much, and to list them.
func (n chunkNeeds) need(share int64) int64 {
	var most, all int64
	for _, b := range n {
		most, all = max(most, ShareNeed(b.copied, b.chunks, share)), all+b.chunks
	}
	return most + all*chunkCost
}

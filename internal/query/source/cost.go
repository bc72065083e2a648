package source

// Cost is what a read took. A source leaves at 0 what it cannot tell.
type Cost struct {
	Headers int64 // of chunks, that were enough
	Rollups int64 // entries that stood for many chunks
	Decoded int64 // slots, once per file that holds them
	Bytes   int64 // from files

	// Unknown are the slots of the read that damage took, ascending; they are unset in
	// dst and not counted in aggregates. The slice is the caller's.
	Unknown     []Unknown
	MoreUnknown int64 // slots, where the source lists no more ranges
}

// Unknown is a range of slots, [From, Past), that are neither set nor unset: what lay
// there is lost to damage, and what lies below it may be out of date.
type Unknown struct {
	From, Past int64
	Why        string // what was lost
}

// Add adds all but what is unknown.
func (c *Cost) Add(o Cost) {
	c.Headers += o.Headers
	c.Rollups += o.Rollups
	c.Decoded += o.Decoded
	c.Bytes += o.Bytes
}

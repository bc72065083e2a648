package store

// addCounts adds what was counted to the account, which then stands for all
// records below end. A flush takes both in one moment.
func (r *replayer) addCounts(end uint64) {
	r.s.ledger.Enter(&r.uncounted, func() { r.s.counted.Store(end) })
}

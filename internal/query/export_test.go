package query

// WithPieces returns a copy of e whose reads for compat are pieces of the given
// number of slots.
func (e Engine) WithPieces(slots int64) *Engine {
	e.pieceSlots = slots
	return &e
}

// WithRounds returns a copy of e that works in rounds of the given number of
// slots, so that tests cross their borders with little data, and that has even
// one slot read side by side.
func (e Engine) WithRounds(slots int64) *Engine {
	e.roundSlots, e.aloneSlots = slots, -1
	return &e
}

package query

// HistogramBytes is what a histogram is charged with.
var HistogramBytes = histogramBytes

// Ranked is how quantiles choose their value.
var Ranked = ranked

// Free is how many readers no query has.
func (r *Readers) Free() int { return len(r.free) }

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

// Hold is hold.
func (s *Series) Hold() { s.hold() }

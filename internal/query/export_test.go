package query

// WithCompatSlots returns a copy of e whose reads for compat have the given number of
// slots each.
func (e Engine) WithCompatSlots(slots int64) *Engine {
	e.compatSlots = slots
	return &e
}

// WithRounds returns a copy of e that works in rounds of the given number of
// slots, so that tests cross their borders with little data. The copy has even
// one slot read side by side.
func (e Engine) WithRounds(slots int64) *Engine {
	e.roundSlots, e.aloneSlots = slots, -1
	return &e
}

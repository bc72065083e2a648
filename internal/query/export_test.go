package query

// WithRounds returns a copy of e that works in rounds of the given number of
// slots, so that tests cross their borders with little data.
func (e Engine) WithRounds(slots int64) *Engine {
	e.roundSlots = slots
	return &e
}

package query

// HistogramBytes is what a histogram is charged with.
var HistogramBytes = histogramBytes

// WithRounds returns a copy of e that works in rounds of the given number of
// slots, so that tests cross their borders with little data.
func (e Engine) WithRounds(slots int64) *Engine {
	e.roundSlots = slots
	return &e
}

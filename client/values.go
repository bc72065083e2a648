package client

import (
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/wire"
)

// What the methods take and return.
type (
	Info        = wire.Info        // a bucket
	Ack         = wire.Ack         // what became of the points of a stream since the last one
	Event       = wire.Event       // a time in nanoseconds since 1970, and a term as Term makes it
	Timestamped = wire.Timestamped // a word with the time of its point
)

// The words of a slot that holds no value.
const (
	Unset = point.Unset // nothing was written
	Stale = point.Stale // the series has ended for now
)

// Int returns the word of an integer. One beyond 56 bits becomes a float.
func Int(v int64) uint64 { return point.FromInt(v) }

// Float returns the word of a float.
func Float(v float64) uint64 { return point.FromFloat(v) }

// Value returns the value of a word: an int64 or a float64, and nil for Unset and Stale.
func Value(w uint64) any {
	switch point.KindOf(w) {
	case point.KindInt:
		return point.Int(w)
	case point.KindFloat:
		return point.Double(w)
	}
	return nil
}

// Key returns the key of the metric that has these parts, or an error that names the part of
// more than 255 bytes, or the whole of more than 65,535.
func Key(parts ...string) ([]byte, error) { return metric.Key(parts...) }

// Term returns the term of an event from its JSON object.
func Term(json []byte) ([]byte, error) { return term.AppendFromJSON(nil, json) }

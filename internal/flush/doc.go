// Package flush puts what a flush takes from the groups of the head into the order of a segment, and
// says what of the log a start still needs behind it.
package flush

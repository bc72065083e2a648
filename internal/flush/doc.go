// Package flush puts what a flush takes from the groups of the head into the order of a segment, and
// says what of the log a start still needs behind it, and what of the losses in the account it will
// count again.
package flush

// Package flush writes what the head has sealed into segments: what a flush takes, the order of a
// segment, the steps to the commit, what of the log a start still needs behind it, and what of the
// losses in the account it will count again.
package flush

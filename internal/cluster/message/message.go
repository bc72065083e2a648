// Package message is the encoding of what nodes send each other. Rows carry ids of series; the name
// of a series, and what its bucket is, travel once a connection, in front of the rows or chunks
// that need them first.
package message

import "errors"

const version = 4

// Limits of what both sides of a connection remember of each other. An encoder that reaches one
// begins anew.
const (
	MaxNames   = 1 << 20
	MaxBuckets = 1 << 16
)

var (
	// ErrRenew is wrapped by the error of a frame that needs names which were lost with others.
	// The message is lost; its sender is to be told to renew its names (Decoder.AppendRequest).
	ErrRenew = errors.New("names of series are missing")
	// ErrMalformed is wrapped by the error of bytes that no encoder writes.
	ErrMalformed = errors.New("malformed message")
	// ErrName is wrapped by the error of a message about a series or a bucket that nobody here
	// knows the name of.
	ErrName = errors.New("the name is not known")
	// ErrTooLong is wrapped by the error of a message beyond the limit of a frame.
	ErrTooLong = errors.New("the message is too long")
)

// The kinds of messages.
const (
	kindWrite = iota + 1
	kindWritten
	kindDeliver
	kindDelivered
	kindLearn
	kindKnown
	kindCompare
	kindCompared
	kindShareDeletions
	kindSharedDeletions
	kindCompareChunks
	kindDifference
	kindFill
	kindFilled
	kindFetch
	kindFetched
	kindKeeps
	kindHeardKeeps
	kindAskKeeps
)

// epoch says for how long numbers stand for the same names: until an encoder begins anew. No
// start of a node has the epochs of another one.
type epoch struct{ boot, number uint64 }

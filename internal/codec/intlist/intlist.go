// Package intlist codes what a chunk is made of: lists of up to 720 integers, sets of
// positions in them, and the bits and bytes of both.
//
// Readers are safe on damaged input: they return an error that wraps ErrCorrupt, or wrong
// integers, and never panic. Nothing here knows what the integers stand for.
//
// A List keeps the bytes that it was read from. Values serve one goroutine at a time.
//
// DESIGN.md describes the bytes.
package intlist

import "errors"

const (
	// MaxLen is the largest number of integers of a list.
	MaxLen = 720
	// Lane is the largest number of integers of a lane.
	Lane = 60
	// MaxLanes is the number of lanes of a list of MaxLen.
	MaxLanes = MaxLen / Lane
)

// ErrCorrupt is wrapped by every error about bytes that this package did not write.
var ErrCorrupt = errors.New("damaged chunk")

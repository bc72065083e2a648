// Package wire encodes and decodes the bytes on the store's TCP port: frames, requests,
// replies, and the raw byte stream of ingest.
//
// Append functions append to a slice that the caller owns, and keep nothing. Parse functions
// never copy bytes: every slice that they return is part of the input, and is valid as long
// as the input is. No function allocates from a length that it has not compared with the
// bytes at hand. Functions may be called concurrently.
//
// The formats are those of DalmatinerDB, and the acknowledged stream, which is ours.
// docs/protocol.md and DESIGN.md show the bytes.
package wire

import "errors"

// Op is the first byte of a payload.
type Op uint8

// The opcodes (docs/protocol.md, "Requests"). The 0x20s are ours.
const (
	OpPut               Op = 0    // historic, UDP only
	OpList              Op = 1    // metrics of a bucket
	OpGet               Op = 2    // points of a series
	OpBuckets           Op = 3    // names of the buckets
	OpStream            Op = 4    // enters stream mode
	OpEntry             Op = 5    // stream mode: consecutive points of one series
	OpFlush             Op = 6    // stream mode: write what is pending
	OpInfo              Op = 7    // properties of a bucket
	OpAdd               Op = 8    // creates a bucket
	OpDelete            Op = 9    // deletes a bucket
	OpBatch             Op = 10   // stream mode: points of many series at one time
	OpListPrefix        Op = 11   // metrics of a bucket below a prefix
	OpTTL               Op = 12   // sets a bucket's lifetime
	OpEvents            Op = 13   // stores events
	OpGetEvents         Op = 14   // events of a bucket in a range of time
	OpReplyEvents       Op = 15   // reply: events
	OpEndEvents         Op = 16   // reply: no more events
	OpGetEventsFiltered Op = 17   // events that meet a filter
	OpStream2           Op = 18   // enters stream mode, with the hpts flag
	OpAckStream         Op = 0x20 // enters stream mode with acknowledged flushes
	OpFlushAck          Op = 0x21 // acknowledged stream: flush and answer; also the answer
	OpTraced            Op = 254  // wraps a request with two trace ids
	OpError             Op = 255  // reply: a message; also the header of a GET reply
)

// The versions of the acknowledged stream: AckVersion without timestamps, AckTimestamped
// with the points of a stream with the hpts flag (docs/protocol.md, "The acknowledged stream").
const (
	AckVersion     = 1
	AckTimestamped = 2
)

// The reasons for which a message is refused. Every error about the content of a message
// that arrived wraps one of them, so that a server can count by reason.
var (
	ErrMalformed     = errors.New("malformed message")
	ErrTooLarge      = errors.New("message too large")
	ErrUnknownOpcode = errors.New("unknown opcode")
	ErrUnsupported   = errors.New("not supported by this server")
)

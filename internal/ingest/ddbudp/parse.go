package ddbudp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"dalmatiner/internal/codec/point"
)

// opPut is the only opcode of the protocol.
const opPut = 0

var (
	errMalformed = errors.New("malformed datagram")
	errOpcode    = errors.New("unknown opcode")
)

// reason returns the word under which an error of parse is counted.
func reason(err error) string {
	if errors.Is(err, errOpcode) {
		return "unknown_opcode"
	}
	return "malformed"
}

// parse checks a whole datagram, so that nothing of a broken one is stored,
// and returns its bucket and its entries for nextEntry. Both share src's
// memory.
func parse(src []byte) (bucket, entries []byte, err error) {
	if len(src) < 2 {
		return nil, nil, fmt.Errorf("%w: %d bytes hold no opcode and bucket", errMalformed, len(src))
	}
	if src[0] != opPut {
		return nil, nil, fmt.Errorf("%w %d: a datagram begins with %d", errOpcode, src[0], opPut)
	}
	n := int(src[1])
	if src = src[2:]; n == 0 || n > len(src) {
		return nil, nil, fmt.Errorf("%w: a bucket of %d bytes, %d are left", errMalformed, n, len(src))
	}
	bucket, entries = src[:n], src[n:]
	for rest := entries; len(rest) > 0; {
		at := len(entries) - len(rest)
		size, err := entrySize(rest)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: entry at byte %d: %w", errMalformed, 2+n+at, err)
		}
		rest = rest[size:]
	}
	return bucket, entries, nil
}

// Bytes of the fixed fields of an entry.
const (
	timeSize   = 8
	keyLength  = 2
	dataLength = 4
)

// entrySize returns the bytes of the entry at the start of src.
func entrySize(src []byte) (int, error) {
	if len(src) < timeSize+keyLength {
		return 0, fmt.Errorf("%d bytes are less than a time and a length", len(src))
	}
	key := int(binary.BigEndian.Uint16(src[timeSize:]))
	fixed := timeSize + keyLength + key + dataLength
	if key == 0 || len(src) < fixed {
		return 0, fmt.Errorf("a metric of %d bytes, %d are left", key, len(src)-timeSize-keyLength)
	}
	data := binary.BigEndian.Uint32(src[fixed-dataLength:])
	if data%point.Size != 0 || data == 0 || uint64(data) > uint64(len(src)-fixed) {
		return 0, fmt.Errorf("points of %d bytes, want a multiple of %d, %d are left", data, point.Size,
			len(src)-fixed)
	}
	return fixed + int(data), nil
}

// entry is consecutive points of one metric.
type entry struct {
	slot uint64
	key  []byte
	data []byte
}

// nextEntry takes an entry that parse has checked off the front of src.
func nextEntry(src []byte) (e entry, rest []byte) {
	e.slot = binary.BigEndian.Uint64(src)
	n := int(binary.BigEndian.Uint16(src[timeSize:]))
	src = src[timeSize+keyLength:]
	e.key, src = src[:n], src[n:]
	n = int(binary.BigEndian.Uint32(src))
	src = src[dataLength:]
	e.data, rest = src[:n], src[n:]
	return e, rest
}

// Package term reads and writes Erlang external terms, the form in which events travel and
// are stored, and converts them to and from JSON. DESIGN.md lists the tags and what JSON
// becomes of them.
//
// Everything that comes from outside goes through Normalize first: it bounds size, depth and
// number of elements, inflates compressed terms under the same limit, and checks every tag.
// Atoms are bytes here; nothing is interned. A Value is a view into a plain term and copies
// nothing.
//
// Functions may be called concurrently.
package term

import (
	"errors"
	"fmt"
)

// The limits of one term. They are far above what events have, and keep what one event can
// cost below a few megabytes.
const (
	MaxSize     = 1 << 20 // bytes of a term, compressed and inflated
	MaxDepth    = 64      // nesting of lists, tuples and maps
	MaxElements = 1 << 16 // values in a term, keys of maps included
	MaxAtom     = 255     // characters of an atom, as in Erlang
	MaxInteger  = 255     // bytes of an integer
)

// The causes of errors, for errors.Is.
var (
	ErrMalformed   = errors.New("malformed term")
	ErrTooLarge    = errors.New("term too large")
	ErrUnsupported = errors.New("unsupported term")
)

// version is the first byte of every external term.
const version = 131

// The tags that are read. Of those with two forms, the first is written.
const (
	tagFloat      = 70
	tagCompressed = 80
	tagSmallInt   = 97
	tagInt        = 98
	tagOldFloat   = 99
	tagAtom       = 100 // Latin-1
	tagTuple      = 104
	tagLargeTuple = 105
	tagNil        = 106
	tagByteList   = 107
	tagList       = 108
	tagBinary     = 109
	tagBig        = 110
	tagLargeBig   = 111
	tagSmallAtom  = 115 // Latin-1
	tagMap        = 116
	tagAtomUTF8   = 118
	tagSmallUTF8  = 119
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}

func tooLarge(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrTooLarge}, args...)...)
}

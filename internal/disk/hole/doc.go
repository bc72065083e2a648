// Package hole says what damage hides: which chunks of a segment may overwrite
// something older (marks), and in which slots what older sources hold must not be
// shown, because what lay over it is lost (holes). DESIGN.md has the rules.
//
// The package knows neither segments nor readers: bucket ids, the first eight bytes
// of series hashes, numbers of chunks and slots are all it works on.
package hole

import (
	"cmp"
	"encoding/binary"
)

// Prefix is the first eight bytes of a series hash, most significant first: series
// in a segment are in its order. A metric's values and timestamps have the same one.
type Prefix = uint64

// PrefixOf returns the prefix of a series hash.
func PrefixOf(hash [16]byte) Prefix { return binary.BigEndian.Uint64(hash[:]) }

// The range of all prefixes.
const (
	LowestPrefix  Prefix = 0
	HighestPrefix Prefix = 1<<64 - 1
)

// Position is the place of a source in the order in which sources lie over each
// other.
type Position struct {
	Generation uint64
	Window     bool // lies over what else has its generation
}

// Compare returns -1, 0 or 1: of two sources that hold a slot the one with the
// higher position wins.
func (p Position) Compare(o Position) int {
	if c := cmp.Compare(p.Generation, o.Generation); c != 0 || p.Window == o.Window {
		return c
	}
	if p.Window {
		return 1
	}
	return -1
}

package kernel

import "encoding/binary"

// Span is the place of a name among other bytes.
type Span struct{ From, To uint32 }

// What stands before the length of a name in an entry: opcode and slot; and
// behind the name: the size of one point.
const (
	entryPrefix = 1 + 8
	entrySuffix = 4
)

// MatchBatch takes points from the start of buf, the bytes of an open batch, for
// as long as they are whole, their names are the expected ones, one after the
// other, and their values are integers or floats as they are stored. The values go
// to words. It returns how many points that are, at most the smaller of len(words)
// and len(expected), and their bytes. A name that is expected stands in names; an
// empty one is no point's.
func MatchBatch(words []uint64, names []byte, expected []Span, buf []byte) (points, size int) {
	return match(words, names, expected, buf, 0, 0)
}

// MatchEntries is MatchBatch for entries of one point each. All have the opcode
// and the slot of the first, at which the caller has looked.
func MatchEntries(words []uint64, names []byte, expected []Span, buf []byte) (points, size int) {
	return match(words, names, expected, buf, entryPrefix, entrySuffix)
}

// matchGo is match: of prefix bytes before the length of a name, which are those
// of the first point, and suffix bytes behind it.
func matchGo(words []uint64, names []byte, expected []Span, buf []byte, prefix, suffix int) (points,
	size int) {
	rest := buf
	for points < len(words) && points < len(expected) && len(rest) >= prefix+2 {
		s := expected[points]
		name := prefix + 2
		end := name + int(binary.BigEndian.Uint16(rest[prefix:]))
		next := end + suffix + 8
		if end == name || len(rest) < next || string(rest[name:end]) != string(names[s.From:s.To]) ||
			string(rest[:prefix]) != string(buf[:prefix]) {
			break
		}
		if suffix > 0 && binary.BigEndian.Uint32(rest[end:]) != 8 {
			break
		}
		w := binary.BigEndian.Uint64(rest[end+suffix:])
		if w < firstFloat && w>>56 != 1 {
			break
		}
		words[points] = w
		points++
		rest = rest[next:]
	}
	return points, len(buf) - len(rest)
}

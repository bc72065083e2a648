// Package labels is shared by the protocols whose series are a name and a set of labels: it
// makes the key of a series of them, and gives each series its tags once.
package labels

import (
	"bytes"
	"encoding/hex"
	"slices"
	"unicode/utf8"

	"github.com/zeebo/xxh3"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
)

// Label is one label of a series.
type Label struct{ Name, Value []byte }

// Sort brings labels into the order that AppendKey needs, and leaves those out that have no
// value: such a label says nothing. ok is false where a name occurs twice, or is empty.
func Sort(list []Label) (sorted []Label, ok bool) {
	sorted = slices.DeleteFunc(list, func(l Label) bool { return len(l.Value) == 0 })
	if !slices.IsSortedFunc(sorted, byName) {
		slices.SortFunc(sorted, byName)
	}
	for i := range sorted {
		if len(sorted[i].Name) == 0 || i > 0 && bytes.Equal(sorted[i].Name, sorted[i-1].Name) {
			return sorted, false
		}
	}
	return sorted, true
}

func byName(a, b Label) int { return bytes.Compare(a.Name, b.Name) }

const (
	// longestPart is the longest part that stands in a key as it is. A longer one is cut to
	// keptBytes at most, and ends in a mark and the hash of the whole: it has more bytes
	// than any that was not cut, so both are never equal.
	longestPart = metric.MaxPart - 4
	keptBytes   = metric.MaxPart - 1 - 2*len(metric.SeriesID{})
	cutMark     = '~'
)

// AppendKey appends the key of a series to dst: the parts of its name, and label=value for each of
// its labels, which Sort has sorted. Two names with their labels never have one key. size is how
// many bytes of the key are the name.
//
// In the name of a label, and in all parts of a name but the first, = and \ have a \ before
// them. A part of more than 251 bytes ends in a hash in place of the rest: the tags of the series
// have it whole.
func AppendKey(dst []byte, list []Label, name ...[]byte) (key []byte, size int) {
	from := len(dst)
	for i, part := range name {
		at := len(dst)
		if dst = append(dst, 0); i == 0 {
			dst = append(dst, part...)
		} else {
			dst = appendEscaped(dst, part)
		}
		dst = endPart(dst, at)
	}
	size = len(dst) - from
	for i := range list {
		dst = appendPair(dst, &list[i])
	}
	return dst, size
}

func appendPair(dst []byte, l *Label) []byte {
	at := len(dst)
	dst = appendEscaped(append(dst, 0), l.Name)
	dst = append(append(dst, '='), l.Value...)
	return endPart(dst, at)
}

func appendEscaped(dst, text []byte) []byte {
	if bytes.IndexByte(text, '=') < 0 && bytes.IndexByte(text, '\\') < 0 {
		return append(dst, text...)
	}
	for _, b := range text {
		if b == '=' || b == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, b)
	}
	return dst
}

// endPart sets the length of the part that begins at at, and cuts it where it is too long.
func endPart(dst []byte, at int) []byte {
	part := dst[at+1:]
	if len(part) > longestPart {
		hash := xxh3.Hash128(part).Bytes()
		n := keptBytes
		for n > keptBytes-utf8.UTFMax+1 && !utf8.RuneStart(part[n]) {
			n--
		}
		dst = append(dst[:at+1+n], cutMark)
		dst = hex.AppendEncode(dst, hash[:])
	}
	dst[at] = byte(len(dst) - at - 1)
	return dst
}

// NewChange returns the change that gives a series of a bucket its labels as tags. Its key is
// that of AppendKey. The change holds copies of all it is given.
func NewChange(bucket uint64, collection string, key []byte, size int, list []Label) tags.Change {
	n := len(key) + len(collection)
	for i := range list {
		n += len(list[i].Name) + len(list[i].Value)
	}
	all := make([]byte, 0, n) // of one allocation
	keep := func(b []byte) []byte {
		from := len(all)
		all = append(all, b...)
		return all[from:len(all):len(all)]
	}
	key = keep(key)
	c := tags.Change{Bucket: bucket, Key: key, Collection: keep([]byte(collection)), Name: key[:size],
		Set: make([]tags.Tag, len(list))}
	for i, l := range list {
		c.Set[i] = tags.Tag{TagName: tags.TagName{Name: keep(l.Name)}, Value: keep(l.Value)}
	}
	return c
}

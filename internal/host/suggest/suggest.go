// Package suggest finds the existing names that somebody may have meant by a
// name that does not exist.
package suggest

import (
	"cmp"
	"slices"
	"strings"
)

// maxWord is the longest name in bytes that is compared letter by letter. Longer
// ones have no near names but themselves in another case.
const maxWord = 64

// most is how many names are kept.
const most = 3

// Collector collects the names nearest to a wrong one. The zero value is of no use:
// see NewCollector.
type Collector struct {
	word  string // in lower case
	found []candidate
}

type candidate struct {
	name     string
	distance int
}

// NewCollector returns a collector of names near to word.
func NewCollector(word string) *Collector { return &Collector{word: strings.ToLower(word)} }

// Add looks at a name that exists.
func (n *Collector) Add(name string) {
	d, ok := Distance(n.word, name)
	if !ok {
		return
	}
	c := candidate{name, d}
	i, known := slices.BinarySearchFunc(n.found, c, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	if known || i == most {
		return
	}
	n.found = slices.Insert(n.found, i, c)
	n.found = n.found[:min(len(n.found), most)]
}

// Names returns up to three of the names added, the nearest first; nil when none
// is near.
func (n *Collector) Names() []string {
	var list []string
	for _, c := range n.found {
		list = append(list, c.name)
	}
	return list
}

// Nearest returns up to three of names that are near to word, the nearest first.
func Nearest(word string, names []string) []string {
	n := NewCollector(word)
	for _, name := range names {
		n.Add(name)
	}
	return n.Names()
}

// Hint returns "; did you mean …?" with the names, or "" for none.
func Hint(names []string) string {
	if len(names) == 0 {
		return ""
	}
	text := names[0]
	for i, n := range names[1:] {
		if i == len(names)-2 {
			text += " or " + n
		} else {
			text += ", " + n
		}
	}
	return "; did you mean " + text + "?"
}

// Distance returns how many letters have to be put in, left out, changed or
// swapped with their neighbour to make one word of the other, in any case. A
// word that the other begins with is at 1. It reports false where they are
// too far apart for the one to be meant by the other: more than a third of the
// longer one, or longer than maxWord.
func Distance(a, b string) (int, bool) {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a == b {
		return 0, true
	}
	if len(a) > maxWord || len(b) > maxWord {
		return 0, false
	}
	short, long := a, b
	if len(short) > len(long) {
		short, long = long, short
	}
	if len(short) >= 3 && strings.HasPrefix(long, short) {
		return 1, true
	}
	limit := max(1, len(long)/3)
	if len(long)-len(short) > limit {
		return 0, false
	}
	d := edits(a, b)
	return d, d <= limit && d < len(long)
}

// edits is the distance without limits, of optimal string alignment.
func edits(a, b string) int {
	var rows [3][maxWord + 1]uint8
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = uint8(j)
	}
	for i := 1; i <= len(a); i++ {
		row[0] = uint8(i)
		for j := 1; j <= len(b); j++ {
			cost := uint8(1)
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return int(last[len(b)])
}

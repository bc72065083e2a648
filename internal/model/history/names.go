package history

import (
	"cmp"
	"slices"
	"strings"
)

// nameNotes are the metrics that came or went, as prefixes of their keys, in the order of these.
// None is a prefix of another one.
type nameNotes []nameNote

// nameNote says that metrics whose keys begin with a prefix came or went, the last time at a count
// or before.
type nameNote struct {
	prefix string
	count  uint64
}

const (
	// maxNames is how many notes a journal keeps. When there are more, those that begin alike become
	// one.
	maxNames = 256
	// maxPrefix is how much of a key is kept.
	maxPrefix    = 64
	nameNoteSize = 24 + maxPrefix
)

// prefixesAfter returns the prefixes behind a count, nil for none.
func (l nameNotes) prefixesAfter(count uint64) (list []string) {
	for i := range l {
		if l[i].count > count {
			list = append(list, l[i].prefix)
		}
	}
	return list
}

// add adds a key. Without one it may be any.
func (l *nameNotes) add(key []byte, count uint64) {
	list, prefix := *l, string(key[:min(len(key), maxPrefix)])
	at, there := slices.BinarySearchFunc(list, prefix, func(n nameNote, prefix string) int {
		return strings.Compare(n.prefix, prefix)
	})
	if !there && at > 0 && strings.HasPrefix(prefix, list[at-1].prefix) {
		at, there = at-1, true
	}
	if there {
		list[at].count = count
		return
	}
	past := at
	for past < len(list) && strings.HasPrefix(list[past].prefix, prefix) {
		past++
	}
	list = slices.Replace(list, at, past, nameNote{prefix, count})
	if len(list) > maxNames {
		list = list.join()
	}
	*l = list
}

// join joins the half of neighbours that have the longest prefixes in common.
func (l nameNotes) join() nameNotes {
	alike := make([]int, len(l)-1)
	for i := range alike {
		alike[i] = commonPrefix(l[i].prefix, l[i+1].prefix)
	}
	sorted := slices.Clone(alike)
	slices.SortFunc(sorted, func(a, b int) int { return cmp.Compare(b, a) })
	least := sorted[len(sorted)/2]
	kept := 0
	for i, n := range alike {
		next := l[i+1]
		if n < least {
			kept++
			l[kept] = next
			continue
		}
		into := &l[kept]
		into.prefix = into.prefix[:min(n, len(into.prefix))]
		into.count = max(into.count, next.count)
	}
	clear(l[kept+1:])
	return l[:kept+1]
}

// commonPrefix returns how many bytes two texts begin with in common.
func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

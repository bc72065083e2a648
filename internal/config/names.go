package config

import "strings"

// lookup finds the row of a key under its name or the original's, and the name
// it is listed under.
func lookup(name string) (*key, string) {
	for i := range keys {
		k := &keys[i]
		if k.name != name && (k.old == "" || k.old != name) {
			continue
		}
		if k.alters != "" {
			return k, k.alters
		}
		return k, k.name
	}
	return nil, ""
}

func replacement(name string) (instead string, ok bool) {
	for _, r := range replaced {
		prefix, isPrefix := strings.CutSuffix(r.name, "*")
		if r.name == name || isPrefix && strings.HasPrefix(name, prefix) {
			return r.instead, true
		}
	}
	return "", false
}

// nearest returns the known key with the smallest edit distance to name, the
// first of the registry among equals; none when all are another word.
func nearest(name string) string {
	best, bestDistance := "", len(name)/2+1
	consider := func(known string) {
		if d := distance(name, known); known != "" && d < bestDistance {
			best, bestDistance = known, d
		}
	}
	for i := range keys {
		consider(keys[i].name)
		consider(keys[i].old)
	}
	return best
}

// maxCompared bounds the work of distance for absurd keys.
const maxCompared = 64

// distance is the number of single-byte insertions, removals and replacements
// between two words, judged on their first maxCompared bytes.
func distance(a, b string) int {
	a, b = a[:min(len(a), maxCompared)], b[:min(len(b), maxCompared)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}

package config

import (
	"strings"

	"dalmatiner/internal/host/suggest"
)

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

// nearestKeys returns the known keys near to name.
func nearestKeys(name string) []string {
	near := suggest.NewCollector(name)
	for i := range keys {
		near.Add(keys[i].name)
		if keys[i].old != "" {
			near.Add(keys[i].old)
		}
	}
	return near.Names()
}

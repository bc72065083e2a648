package tags

import "dalmatiner/internal/codec/kernel"

// Fetch asks for the memory in which changes about to be applied will be looked up: the series, and
// the tags that are set. One after the other each look-up would be waited for.
func Fetch(x *Index, list []Change) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var a fetchState
	for i := range list {
		c := &list[i]
		x.byKey.fetch(seriesHash(c.Bucket, c.Key))
		for t := range c.Set {
			if number, ok := a.name(x, t, &c.Set[t].TagName); ok {
				a.text = appendPair(a.text[:0], number, c.Set[t].Value)
				hash := hashOf(a.text)
				x.pairs.table.fetch(hash)
				a.hashes = append(a.hashes, hash)
			}
		}
	}
	for _, hash := range a.hashes {
		s := x.pairs.table.search(hash)
		if pair, ok := s.next(); ok {
			a.pairs = append(a.pairs, pair)
			kernel.FetchOf(&x.pairs.at[pair])
			kernel.FetchOf(&x.pairs.holds[pair])
		}
	}
	for _, pair := range a.pairs {
		kernel.FetchOf(&x.pairs.texts.Get(x.pairs.at[pair])[0])
	}
}

// fetchState is what Fetch knows of tags.
type fetchState struct {
	text   []byte
	names  []aheadName // of the change before, by their places
	hashes []uint32
	pairs  []uint32
}

type aheadName struct {
	TagName
	number uint32
	ok     bool
}

// name returns the number of the name of the tag at a place. Changes that follow each other mostly
// have the same names in the same order.
func (a *fetchState) name(x *Index, place int, n *TagName) (number uint32, ok bool) {
	for len(a.names) <= place {
		a.names = append(a.names, aheadName{})
	}
	last := &a.names[place]
	if !last.ok || string(last.Name) != string(n.Name) ||
		string(last.Namespace) != string(n.Namespace) {
		a.text = appendName(a.text[:0], *n)
		last.TagName = *n
		last.number, last.ok = x.names.find(a.text)
	}
	return last.number, last.ok
}

// fetch asks for where a search of a hash begins.
func (t *table) fetch(hash uint32) {
	if len(t.slots) > 0 {
		kernel.FetchOf(&t.slots[t.home(hash)])
	}
}

package tags

// GivenTags says which series have been given tags, for who gives those of a series once.
type GivenTags struct{ In *Index }

// Has reports whether a series is in the collection of a change, and something is known of each tag
// that the change sets: the series has it, whatever the value, or it was removed.
func (g GivenTags) Has(c *Change) bool {
	x := g.In
	x.mu.RLock()
	defer x.mu.RUnlock()
	encoded, ok := rowOf(x, c.Collection, c.Bucket, c.Key)
	if !ok {
		return false
	}
	var r row
	new(rowCodec).decode(&r, encoded, x.nodes.ids)
	for i := range c.Set {
		t := &c.Set[i]
		if r.cleared.some || IsImplied(t.Namespace, t.Name) {
			continue // what a change replaced stays so
		}
		number, ok := x.names.find(appendName(nil, t.TagName))
		if !ok {
			return false
		}
		if _, ok = r.find(number); !ok {
			return false
		}
	}
	return r.isVisible()
}

// Losses returns a number that grows whenever a series leaves a collection or is dropped.
func (g GivenTags) Losses() uint64 { return g.In.recent.gone.Load() }

package contents

import (
	"cmp"
	"slices"
)

// compare returns how the partitions of an image differ from those of another one. A partition that
// could not be read whole in one of them is not compared.
func compare(before, after []tree) Changes {
	c := Changes{Partitions: []Partition{}, Files: []File{}}
	was := make(map[int]tree, len(before))
	for _, t := range before {
		was[t.Number] = t
	}
	for _, t := range after {
		old, is := was[t.Number]
		delete(was, t.Number)
		shown := t.Partition
		if shown.Error == "" && is && old.Error != "" {
			shown.Error = "before: " + old.Error
		}
		c.Partitions = append(c.Partitions, shown)
		if shown.Error == "" {
			c.add(t.Number, old.files, t.files)
		}
	}
	for _, t := range was { // it is gone
		c.Partitions = append(c.Partitions, Partition{Number: t.Number, Kind: t.Kind, Error: t.Error})
		if t.Error == "" {
			c.add(t.Number, t.files, nil)
		}
	}
	slices.SortFunc(c.Partitions, func(a, b Partition) int { return cmp.Compare(a.Number, b.Number) })
	slices.SortFunc(c.Files, func(a, b File) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Path, b.Path))
	})
	c.Files = c.Files[:min(len(c.Files), MostShown)]
	return c
}

// add adds what differs in a partition.
func (c *Changes) add(number int, before, after map[string]entry) {
	for path, e := range after {
		old, is := before[path]
		switch {
		case !is:
			c.Added++
			c.Files = append(c.Files, File{number, path, Added, 0, e.size})
		case old != e:
			c.Changed++
			c.Files = append(c.Files, File{number, path, Changed, old.size, e.size})
		}
	}
	for path, old := range before {
		if _, is := after[path]; !is {
			c.Removed++
			c.Files = append(c.Files, File{number, path, Removed, old.size, 0})
		}
	}
}

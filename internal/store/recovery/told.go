package recovery

import (
	"cmp"
	"fmt"
	"slices"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/model/buckets"
)

// takeBuckets adds the buckets that neither the MANIFEST nor a segment knows and a side file tells
// of: nothing else says what a bucket without points is. The newest file is right about it. A name
// belongs to one bucket at a time, so of two the older one was deleted; what files have of it is
// named.
func (p *planner) takeBuckets() {
	st, e := p.in.State, &p.plan.Edit
	known := st.Clone()
	known.Apply(e)
	named := func(b buckets.Info) func(buckets.Info) bool {
		return func(o buckets.Info) bool { return o.Name == b.Name }
	}
	// A file's number tells when it was written: the Past of a merge is that of what it replaces.
	slices.SortFunc(p.told, func(a, b Said) int { return cmp.Compare(b.File.Seq, a.File.Seq) })
	var taken []buckets.Info
	for i := range p.told {
		t := &p.told[i]
		path := datadir.FilePaths(t.File.Name())[0]
		for _, b := range t.Buckets {
			same := func(o buckets.Info) bool { return o.ID == b.ID }
			if known.IsDeleted(b.ID) || hasBucket(known, b.ID) || slices.ContainsFunc(taken, same) {
				continue
			}
			r, _ := t.File.RangeOf(b.ID)
			if slices.ContainsFunc(known.Buckets, named(b)) || slices.ContainsFunc(taken, named(b)) {
				p.plan.told = append(p.plan.told, Line{File: path, Side: true, Damage: true,
					Text: fmt.Sprintf("%d events are left out: their bucket %016x had the name %q before "+
						"another bucket", r.Items, b.ID, b.Name)})
				continue
			}
			taken = append(taken, b)
			p.plan.told = append(p.plan.told, Line{File: path, Side: true, Damage: true,
				Text: fmt.Sprintf("the MANIFEST has lost the bucket %q, and it comes back with its events; "+
					"if it was deleted, delete it again", b.Name)})
		}
	}
	e.PutBuckets = append(e.PutBuckets, taken...)
}

package resultcache

import (
	"math"
	"slices"

	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/source"
)

// Basis is what a computation was made from: the names and the slots of some buckets, each as
// of a mark.
type Basis []used

// used is a bucket that was read.
type used struct {
	info   source.Info
	mark   source.Mark
	from   int64 // the first slot of the read that begins first
	past   int64 // the end of the one that ends last
	oldest int64 // slots before it counted as unset, because of the lifetime

	chosen []plan.Choice // by which metrics of it were chosen
}

// usedSize is what a bucket of a basis takes, in bytes, beside its name.
const usedSize = 128

// Recorder is a source for one query. It takes the mark of each bucket before anything of it is
// read.
type Recorder struct {
	source.Source
	list Basis
}

// Bucket returns a handle of the source.
func (r *Recorder) Bucket(name string) (source.Bucket, error) {
	h, err := r.Source.Bucket(name)
	if err == nil {
		r.list = append(r.list, used{mark: h.Mark(), info: h.Info()})
	}
	return h, err
}

// Basis returns what a plan that was made with the recorder as its source reads, at a time in
// unix ms. It is nil where that cannot be told.
func (r *Recorder) Basis(p *plan.Plan, now int64) Basis {
	if p.Indexed || p.Events || len(r.list) == 0 {
		return nil // neither an index nor events say when answers change
	}
	read := make([]bool, len(r.list))
	at := 0 // most reads are of the bucket of the one before
	for _, n := range p.Reads {
		of := n.Op.(*plan.Read)
		if r.list[at].info.Name != of.Bucket {
			if at = slices.IndexFunc(r.list, func(u used) bool { return u.info.Name == of.Bucket }); at < 0 {
				return nil
			}
		}
		u := &r.list[at]
		if !read[at] {
			read[at] = true
			u.from, u.past = of.From, of.Past
		}
		u.from, u.past = min(u.from, of.From-n.Before), max(u.past, of.Past)
	}
	for i := range r.list {
		u := &r.list[i]
		u.oldest = plan.Oldest(&u.info, now)
		for _, c := range p.Chosen {
			if c.Bucket == u.info.Name {
				u.chosen = append(u.chosen, c)
			}
		}
	}
	return r.list
}

// Again returns the basis with new marks, for a computation over a range that is so many ms
// later. It is nil where a bucket is not the same any more.
func (b Basis) Again(src source.Source, by, now int64) Basis {
	again := slices.Clone(b)
	for i := range again {
		u := &again[i]
		h, err := src.Bucket(u.info.Name)
		if err != nil {
			return nil
		}
		if u.mark = h.Mark(); h.Info() != u.info {
			return nil
		}
		u.from, u.past, u.oldest = u.from+by/u.info.Resolution, u.past+by/u.info.Resolution,
			plan.Oldest(&u.info, now)
	}
	return again
}

// Until returns the basis of what was computed without the last so many ms of the range.
func (b Basis) Until(without int64) Basis {
	part := slices.Clone(b)
	for i := range part {
		part[i].past -= without / part[i].info.Resolution
	}
	return part
}

// Fixed returns up to how many ms behind the end of the range slots do not change as points
// come on time; it is negative where they do in the range. It is at most a day.
func (b Basis) Fixed(src source.Source) (behind int64) {
	behind = 24 * 3600 * 1000
	for i := range b {
		u := &b[i]
		h, err := src.Bucket(u.info.Name)
		if err != nil {
			return math.MinInt32
		}
		since := h.Since(u.mark, u.from)
		below := min(max(min(since.Below, since.Live), u.from), u.past+behind/u.info.Resolution)
		behind = min(behind, (below-u.past)*u.info.Resolution)
	}
	return behind
}

// Visible reports whether nothing that was read had outlived its bucket.
func (b Basis) Visible() bool {
	return !slices.ContainsFunc(b, func(u used) bool { return u.from < u.oldest })
}

// Unchanged reports whether the names that were chosen, and the slots that were read, are as they
// were.
func (b Basis) Unchanged(src source.Source) bool {
	for i := range b {
		u := &b[i]
		h, err := src.Bucket(u.info.Name)
		if err != nil || h.Info() != u.info {
			return false
		}
		if since := h.Since(u.mark, u.from); since.Below < u.past ||
			slices.ContainsFunc(since.Names, u.mayTake) {
			return false
		}
	}
	return true
}

// mayTake reports whether a metric whose key begins with a prefix may be one of those chosen.
func (u *used) mayTake(prefix string) bool {
	return slices.ContainsFunc(u.chosen, func(c plan.Choice) bool { return c.MayTake(prefix) })
}

// Holds reports whether all that was read is as it was, at a time in unix ms: then the same
// computation has the same result.
func (b Basis) Holds(src source.Source, now int64) bool {
	for i := range b {
		// Behind the slots that have outlived the bucket the same ones are left.
		u := &b[i]
		if oldest := plan.Oldest(&u.info, now); oldest != u.oldest && u.from < max(oldest, u.oldest) {
			return false
		}
	}
	return b.Unchanged(src)
}

// Bytes returns the memory of the basis.
func (b Basis) Bytes() int64 {
	n := int64(0)
	for i := range b {
		n += usedSize + int64(len(b[i].info.Name))
		for j := range b[i].chosen {
			n += b[i].chosen[j].Bytes()
		}
	}
	return n
}

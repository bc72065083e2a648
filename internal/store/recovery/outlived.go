package recovery

import (
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/model/buckets"
)

// lose notes a segment that counts and is not there. What has expired, or is of a
// deleted bucket, is removed without a trace in other segments: the name that an old
// MANIFEST has of it is no loss.
func (p *planner) lose(m *manifest.Segment) {
	if p.over(m.Ranges) {
		p.outlived[m.Seq] = true
		return
	}
	p.lost[m.Seq] = &Loss{Meta: *m, Why: p.whyLost(m.Seq)}
}

// over reports whether no chunk of these ranges counts any more.
func (p *planner) over(ranges []manifest.Range) bool {
	for _, r := range ranges {
		b, deleted := p.bucket(r.Bucket)
		if deleted {
			continue
		}
		if b == nil || b.TTL <= 0 || b.Resolution <= 0 ||
			r.Past > (p.in.Now/b.Resolution-b.TTL)/chunk.Slots {
			return false
		}
	}
	return len(ranges) > 0
}

// bucket returns the newest that is known of a bucket, nil for nothing, and whether
// anything says that it was deleted.
func (p *planner) bucket(id uint64) (b *buckets.Info, deleted bool) {
	st := p.in.State
	if st.IsDeleted(id) {
		return nil, true
	}
	newest := uint64(0)
	for i := range st.Buckets {
		if st.Buckets[i].ID == id {
			b, newest = &st.Buckets[i], st.AccountLSN
		}
	}
	for _, f := range p.at {
		if f.Edit == nil {
			continue
		}
		for i := range f.Edit.DeleteBuckets {
			if f.Edit.DeleteBuckets[i].ID == id {
				return nil, true
			}
		}
		for i := range f.Edit.PutBuckets {
			if put := &f.Edit.PutBuckets[i]; put.ID == id && (b == nil || f.Edit.AccountLSN > newest) {
				b, newest = put, f.Edit.AccountLSN
			}
		}
	}
	return b, false
}

package replica

import (
	"cmp"
	"context"
	"slices"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/reader"
)

// slots is what slots of a series hold.
type slots struct {
	words, times []uint64 // times are of buckets with timestamps
	unknown      []bool   // nil: all are known
}

func (v *slots) value(i int) replication.Value {
	if v.times == nil {
		return replication.Value{Word: v.words[i]}
	}
	return replication.Value{Word: v.words[i], Time: v.times[i]}
}

// read reads slots of a series into v, n at most reader.MaxRead.
func (x *index) read(v *slots, s *series, from, n int64) error {
	v.words, v.unknown = resizeWords(v.words, n), nil
	of, ctx := x.o.Local.Series(s.bucket.info, s.key).WithStale(), context.Background()
	st, err := of.ReadCounted(ctx, from, v.words)
	if err != nil {
		return err
	}
	for _, u := range st.Unknown {
		v.markUnknown(n, u.From-from, u.Past-from)
	}
	if !s.bucket.info.HPTS {
		v.times = nil
		return nil
	}
	v.times = resizeWords(v.times, n)
	words := make([]uint64, n)
	if err := of.ReadTimestamped(ctx, from, words, v.times); err != nil {
		return err
	}
	for i, w := range words {
		switch {
		case w == point.Stale:
			v.times[i] = point.Unset
		case w != point.Unset:
			v.times[i], _ = s.bucket.info.TimestampWord(uint64(from)+uint64(i), v.times[i])
		case v.words[i] != point.Unset: // its timestamp is lost
			v.markUnknown(n, int64(i), int64(i)+1)
		}
		v.words[i] = w
	}
	return nil
}

// markUnknown marks slots as unknown.
func (v *slots) markUnknown(n, from, past int64) {
	if v.unknown == nil {
		v.unknown = make([]bool, n)
	}
	for i := max(from, 0); i < min(past, n); i++ {
		v.unknown[i] = true
	}
}

func resizeWords(words []uint64, n int64) []uint64 { return slices.Grow(words[:0], int(n))[:n] }

// Read returns the slots [from, past) of a series. Those that damage took, or that cannot be read,
// are unknown.
func (r *Replica) Read(series metric.SeriesID, from, past uint64) []replication.Slot {
	out := make([]replication.Slot, past-from)
	s := r.index.series[series]
	if s == nil || s.bucket.gone {
		return out
	}
	var v slots
	for at := from; at < past; {
		n := min(past-at, reader.MaxRead)
		part := out[at-from:][:n]
		if err := r.index.read(&v, s, int64(at), int64(n)); err != nil {
			r.noteReadFailure(s, err)
			for i := range part {
				part[i].Unknown = true
			}
		} else {
			for i := range part {
				part[i] = replication.Slot{Value: v.value(i), Unknown: v.unknown != nil && v.unknown[i]}
			}
		}
		at += n
	}
	return out
}

// noteReadFailure notes that a read has failed.
func (r *Replica) noteReadFailure(s *series, err error) {
	r.mu.Lock()
	r.stats.Unread++
	r.mu.Unlock()
	r.o.Logger.Error("a series cannot be read", "bucket", s.bucket.info.Name, "metric",
		metric.Text(s.key), "err", err)
}

// Incarnation returns that of a series, 0 if no deletion of it is known.
func (r *Replica) Incarnation(series metric.SeriesID) uint64 {
	if r.index.lives == 0 {
		return 0
	}
	return r.index.partition(series).lives[series].incarnation
}

// Lives returns a number that is another one after any incarnation has become another one.
func (r *Replica) Lives() uint64 { return r.index.raised }

// Deletions returns what is known of a partition, of all if it is negative, sorted by series. The
// caller must not change it.
func (r *Replica) Deletions(partition int) []replication.Deletion {
	if partition >= 0 {
		return r.index.partitionAt(partition).sortedDeletions()
	}
	var all []replication.Deletion
	for _, p := range r.index.partitions {
		all = append(all, p.sortedDeletions()...)
	}
	sortDeletions(all)
	return all
}

func (p *partition) sortedDeletions() []replication.Deletion {
	if p.deletions == nil {
		for id, l := range p.lives {
			p.deletions = append(p.deletions, replication.Deletion{Series: id, Incarnation: l.incarnation})
		}
		sortDeletions(p.deletions)
	}
	return p.deletions
}

func sortDeletions(list []replication.Deletion) {
	slices.SortFunc(list, func(a, b replication.Deletion) int {
		return compareIDs(a.Series, b.Series)
	})
}

// Holds returns the shares of which there are series here.
func (r *Replica) Holds() (list []replication.Share) {
	for of, sh := range r.index.shares {
		if len(sh.list) > 0 {
			list = append(list, of)
		}
	}
	slices.SortFunc(list, func(a, b replication.Share) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Copies, b.Copies))
	})
	return list
}

// Drop gives the points of a share up. What cannot be dropped stays, and is still held.
func (r *Replica) Drop(share replication.Share) {
	if err := r.show(); err != nil { // behind the drop it would come back
		return
	}
	r.copied.clear()
	r.index.refresh()
	sh := r.index.share(share)
	of := make(map[*bucket][]metric.SeriesID)
	for _, s := range sh.list {
		of[s.bucket] = append(of[s.bucket], s.id)
	}
	for b, ids := range of {
		if err := r.o.Local.DropSeries(b.info.ID, ids); err != nil {
			r.o.Logger.Error("a partition that others own cannot be dropped", "partition", share.Partition,
				"bucket", b.info.Name, "err", err)
			continue
		}
		r.index.remove(sh, func(s *series) bool { return s.bucket == b })
	}
}

package sim

import (
	"cmp"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// odd are the series with odd numbers: those of the bucket with numbers of its own.
var odd = func() map[metric.SeriesID]bool {
	all := make(map[metric.SeriesID]bool)
	for n := 1; n < series; n += 2 {
		all[Series(n)] = true
	}
	return all
}()

// bucketCopies are the numbers of the bucket of odd series.
type bucketCopies struct {
	n int // 0: that of the ring
	w int // of the ring
}

// copiesOf returns the n of the bucket of a series; 0: that of the ring.
func (b bucketCopies) copiesOf(s metric.SeriesID) int {
	if odd[s] {
		return b.n
	}
	return 0
}

// The buckets of batches.
const (
	usual = iota + 1
	own
)

// bucket returns that of a batch.
func (b bucketCopies) bucket(rows []replication.Row, deletes []metric.SeriesID) uint64 {
	if len(rows) > 0 && b.copiesOf(rows[0].Series) > 0 || len(deletes) > 0 &&
		b.copiesOf(deletes[0]) > 0 {
		return own
	}
	return usual
}

// numbers is replication.Config.Bucket.
func (b bucketCopies) numbers(_ *ring.View, bucket uint64) replication.Numbers {
	if bucket != own {
		return replication.Numbers{}
	}
	w := b.writes(b.n)
	return replication.Numbers{Copies: b.n, W: w, NextW: w}
}

// writes returns the W of a bucket.
func (b bucketCopies) writes(n int) int { return min(b.w, cmp.Or(n, b.w)) }

// classes is replication.Config.Classes.
func (b bucketCopies) classes() []int {
	if b.n == 0 {
		return nil
	}
	return []int{b.n}
}

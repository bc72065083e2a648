package cluster

import (
	"cmp"
	"fmt"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// BucketQuorum is how many copies of a bucket count.
type BucketQuorum struct {
	Copies              int // n
	Reads, Writes       int // r and w that count
	OwnReads, OwnWrites int // those that are set for the bucket; 0: the number of the cluster counts
}

// quorumsOf returns how many copies count under a ring. A ring and its quorums are never taken
// apart: with those of another one a read could miss what was acknowledged.
func (c *Cluster) quorumsOf(v *ring.View) *quorums {
	if q := c.counted.Load(); q != nil && q.of == v {
		return q
	}
	q := &quorums{of: v, n: v.Copies(ring.Current), next: v.Copies(ring.Future)}
	for _, m := range v.Members() {
		if m.State == ring.Removed {
			q.gone++
		}
		if m.State == ring.Active || m.State == ring.Leaving {
			q.members++
		}
		if m.State == ring.Active || m.State == ring.Joining {
			q.then++
		}
	}
	_, q.nextW = c.o.Quorums(q.next, q.then)
	_, q.w = c.o.Quorums(q.n, q.members)
	// A copy of what is read may have been on a member that is gone for good, until others have taken
	// it over.
	q.r, _ = c.o.Quorums(q.n, q.members+q.gone)
	c.counted.Store(q)
	return q
}

// numbers returns n of a bucket and w under a ring, now and when the changes under way are
// complete, where they are not those of the ring. It may be called under any lock.
func (c *Cluster) numbers(v *ring.View, bucket uint64) replication.Numbers {
	k, _ := c.buckets.get(bucket)
	if k.Copies == 0 && k.Quorum.Writes == 0 {
		return replication.Numbers{}
	}
	q := c.quorumsOf(v)
	w := func(n, members int) int {
		n = cmp.Or(k.Copies, n)
		_, w := c.o.Quorums(n, members)
		return min(cmp.Or(k.Quorum.Writes, w), n)
	}
	return replication.Numbers{Copies: k.Copies, W: w(q.n, q.members), NextW: w(q.next, q.then)}
}

// quorumOf returns how many copies of a bucket answer a read under a ring, and how many are on disk
// before a write is acknowledged.
func (c *Cluster) quorumOf(v *ring.View, bucket uint64) (r, w int) {
	k, _ := c.buckets.get(bucket)
	q := c.quorumsOf(v)
	n := cmp.Or(k.Copies, q.n)
	r, _ = c.o.Quorums(n, q.members+q.gone)
	return min(cmp.Or(k.Quorum.Reads, r), n), cmp.Or(c.numbers(v, bucket).W, q.w)
}

// BucketQuorum returns how many copies of a bucket there are, answer a read, and confirm a write.
func (c *Cluster) BucketQuorum(name string) (BucketQuorum, error) {
	if isPrivate(name) {
		return BucketQuorum{Copies: 1, Reads: 1, Writes: 1}, nil
	}
	info, err := c.o.Store.BucketByName(name)
	if err != nil {
		return BucketQuorum{}, err
	}
	k, _ := c.buckets.get(info.ID)
	v := c.View()
	q := BucketQuorum{
		Copies:    cmp.Or(k.Copies, v.Copies(ring.Current)),
		OwnReads:  k.Quorum.Reads,
		OwnWrites: k.Quorum.Writes,
	}
	q.Reads, q.Writes = c.quorumOf(v, info.ID)
	return q, nil
}

// SetBucketQuorum sets r and w of a bucket on all nodes; 0 is the number of the cluster. Batches
// and reads from now on need so many copies.
func (c *Cluster) SetBucketQuorum(name string, reads, writes int) error {
	q, err := c.BucketQuorum(name)
	switch {
	case err != nil:
		return err
	case isPrivate(name):
		return fmt.Errorf("%w: bucket %s belongs to each node alone, so it has one copy: r and w are "+
			"those of other buckets", buckets.ErrInvalid, metric.Quote(name))
	case min(reads, writes) < 0 || max(reads, writes) > q.Copies:
		return fmt.Errorf("%w: r = %d and w = %d of bucket %s: each is from 1 to n, which is %d, or "+
			"auto for the number of the cluster",
			buckets.ErrInvalid, reads, writes, metric.Quote(name), q.Copies)
	}
	return c.buckets.setQuorum(name, reads, writes)
}

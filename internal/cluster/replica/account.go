package replica

import (
	"fmt"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write"
)

// NextBatch says of which bucket the points are of the batch that the protocol is given next. It is
// called before each Core.Submit, in the same order and under the same lock; 0 is for a batch
// without points.
func (r *Replica) NextBatch(bucket uint64) {
	r.batch++
	if bucket != 0 {
		r.coordinated[r.batch] = bucket
	}
}

// CountsOf returns the counts of the account for those of the protocol.
func CountsOf(r replication.Counts) account.Counts {
	c := account.Counts{
		Accepted:    uint64(r.Accepted),
		Duplicate:   uint64(r.Duplicate),
		Conflicting: uint64(r.Conflicting),
	}
	c.Refused[account.Unconfirmed], c.Refused[account.BucketDeleted] = uint64(r.Unconfirmed),
		uint64(r.Deleted)
	return c
}

// Account notes what became of the points of a batch: in the log and the account of the store.
func (r *Replica) Account(batch replication.BatchID,
	c replication.Counts) (replication.Position, error) {
	bucket, ok := r.coordinated[batch.Number]
	var token write.Token
	if c.Points() > 0 {
		if !ok {
			return 0, fmt.Errorf("batch %d: nobody has said of which bucket it is", batch.Number)
		}
		counts := CountsOf(c)
		var err error
		if token, err = r.o.Local.CountPoints(bucket, &counts); err != nil {
			return 0, wrapDiskFull(err)
		}
	}
	delete(r.coordinated, batch.Number)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next(token, nil), nil
}

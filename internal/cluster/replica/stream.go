package replica

import (
	"cmp"
	"errors"
	"fmt"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/intake"
)

// rows is a stream that takes points of series whose places in the store are known. An
// *intake.Session is one.
type rows interface {
	Place(keys [][]byte) *intake.SeriesColumns
	Row(p *intake.SeriesColumns, from int, slot uint64, words []uint64) bool
}

// stream is the way of points into a bucket of the store.
type stream struct {
	write.Stream
	rows   rows // nil: it takes points by name only
	bucket *bucket
	used   bool           // it has points that are not committed
	points [1]write.Point // the last one
	counts account.Counts // of the last commit
}

// stream returns that of a bucket.
func (r *Replica) stream(b *bucket) (*stream, error) {
	if s := r.streams[b.info.ID]; s != nil {
		return s, nil
	}
	s := &stream{bucket: b}
	var err error
	s.Stream, err = r.o.Points.Open(b.info, write.Options{Copies: true, Stale: true, NeverWait: true,
		Report: func(_ write.Token, c account.Counts) { s.counts.Add(&c) }})
	if err != nil {
		return nil, err
	}
	s.rows, _ = s.Stream.(rows)
	r.streams[b.info.ID] = s
	return s, nil
}

// streamFor returns the stream of a bucket, which gets points of the change; nil if the bucket is
// gone.
func (r *Replica) streamFor(b *bucket) (*stream, error) {
	t := r.writing.into
	if t != nil && t.bucket == b {
		return t, nil
	}
	t, err := r.stream(b)
	if errors.Is(err, buckets.ErrUnknown) {
		return nil, nil
	} else if err != nil {
		return nil, wrapDiskFull(err)
	}
	if r.writing.into = t; !t.used {
		t.used = true
		r.writing.used = append(r.writing.used, t)
	}
	return t, nil
}

// put gives a point to the store.
func (r *Replica) put(s *series, slot int64, v replication.Value) error {
	t, err := r.streamFor(s.bucket)
	if t == nil {
		return cmp.Or(err, r.writing.skipStale(1))
	}
	p := &t.points[0]
	*p = write.Point{Key: s.key, Slot: uint64(slot), Word: v.Word}
	if s.bucket.info.HPTS {
		p.Time = s.bucket.info.Timestamp(p.Slot, v.Time)
	}
	t.Append(t.points[:])
	r.notePoint(s, slot)
	return nil
}

// notePoint notes that the store was given a point.
func (r *Replica) notePoint(s *series, slot int64) {
	r.index.noteWrite(s, slot, slot+1)
	s.share.digests.change(&r.index, s, slot/windowSlots)
}

// commit hands the points over. The error wraps replication.ErrFull where some of them found no
// room.
func (r *Replica) commit() (err error) {
	w := &r.writing
	for _, t := range w.used {
		t.counts, t.used = account.Counts{}, false
		token, failed := t.Commit()
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		w.token = laterToken(w.token, token)
		err = errors.Join(err, r.refusalError(t))
	}
	w.used, w.into = w.used[:0], nil
	return err
}

// refusalError says what the refusals of a commit mean.
func (r *Replica) refusalError(t *stream) error {
	refused := t.counts.Refused
	room := uint64(0)
	for _, reason := range []account.Reason{account.DiskFull, account.SeriesLimit, account.Memory,
		account.Overload} {
		if n := refused[reason]; n > 0 {
			room += n
			refused[reason] = 0
		}
	}
	if n := refused[account.BucketDeleted]; n > 0 {
		refused[account.BucketDeleted] = 0
		delete(r.streams, t.bucket.info.ID)
		if err := errors.Join(t.Close(), r.writing.skipStale(int(n))); err != nil {
			return err
		}
	}
	for _, n := range refused {
		r.writing.left.Refused += int64(n)
	}
	if room > 0 {
		return fmt.Errorf("%w: %d points of bucket %s found no room, for want of disk or memory or "+
			"because writes are held back", replication.ErrFull,
			room, metric.Quote(t.bucket.info.Name))
	}
	return nil
}

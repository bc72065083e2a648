package clusterroutes

import (
	"context"
	"fmt"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// quorum shows r and w of a bucket, after those were set that the request names.
func (o *Operator) quorum(_ context.Context, decode func(any) error) (any, error) {
	var in admin.BucketQuorum
	if err := decode(&in); err != nil {
		return nil, err
	}
	name, err := metric.Unescape(in.Name)
	if err != nil || name == "" {
		return nil, fmt.Errorf("%w: name is %q: give the name of a bucket", buckets.ErrInvalid, in.Name)
	}
	q, err := o.Node.BucketQuorum(name)
	if err != nil {
		return nil, err
	}
	if in.OwnReads != nil || in.OwnWrites != nil {
		reads, writes := q.OwnReads, q.OwnWrites
		if in.OwnReads != nil {
			reads = *in.OwnReads
		}
		if in.OwnWrites != nil {
			writes = *in.OwnWrites
		}
		if err := o.Node.SetBucketQuorum(name, reads, writes); err != nil {
			return nil, err
		}
		if q, err = o.Node.BucketQuorum(name); err != nil {
			return nil, err
		}
	}
	return admin.BucketQuorum{
		Name:      in.Name,
		OwnReads:  &q.OwnReads,
		OwnWrites: &q.OwnWrites,
		Copies:    q.Copies,
		Reads:     q.Reads,
		Writes:    q.Writes,
	}, nil
}

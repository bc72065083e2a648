package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write"
)

// points is the write.Target of a node of a cluster.
type points struct{ c *Cluster }

// localToken marks tokens of buckets that belong to this node alone: the rest is the store's.
const localToken = 1 << 63

// EnsureBucket returns a bucket of the cluster: see write.Target.
func (p points) EnsureBucket(name string, form buckets.Form) (buckets.Info, error) {
	c := p.c
	if isPrivate(name) {
		return c.o.Store.Intake().EnsureBucket(name, form)
	}
	info, err := c.o.Store.BucketByName(name)
	if err == nil {
		return info, nil
	}
	d := c.o.AutoCreate
	if d == nil {
		return buckets.Info{}, fmt.Errorf("%w, and bucket.auto_create is off", err)
	}
	if err := c.JoinError(); err != nil {
		return buckets.Info{}, err // with a bucket it would have data, and could not join
	}
	info, err = c.createBucket(form.Info(name, buckets.Info{
		Resolution: d.Resolution,
		PPF:        d.PPF,
		TTL:        d.TTL,
	}))
	if errors.Is(err, buckets.ErrExists) {
		return c.o.Store.BucketByName(name) // somebody else was faster
	}
	return info, err
}

// Open opens a stream: see write.Target.
func (p points) Open(info buckets.Info, how write.Options) (write.Stream, error) {
	c := p.c
	if isPrivate(info.Name) {
		return openPrivate(c.o.Store.Intake(), info, how)
	}
	if err := c.JoinError(); err != nil {
		return nil, err
	}
	admission, err := c.o.Store.Intake().Admission(info, how.Stale)
	if err != nil {
		return nil, err
	}
	return &stream{c: c, info: info, how: how, admission: admission,
		commits: c.commits.newQueue(how.Report, func(request uint64, columns []replication.Column,
			rows []replication.Row) {
			c.submit(request, replication.Batch{Bucket: info.ID, Columns: columns, Rows: rows})
		}), order: order{names: c.names, all: &c.ordered, bucket: info.ID, hpts: info.HPTS}}, nil
}

// JoinError returns an error while the node cannot take points, because it owns none. One that is
// to join others and has found none yet is alone in a ring of its own: with data in it that would
// be a second cluster for ever.
func (c *Cluster) JoinError() error {
	view := c.View()
	_, is := view.Member(c.id)
	others := slices.DeleteFunc(slices.Clone(c.o.Join), func(addr string) bool {
		return addr == c.gossip.Addr()
	})
	switch {
	case is && len(view.Members()) == 1 && len(others) > 0 && !c.buckets.any():
		why := "it looks at " + strings.Join(others, " and ")
		if missing := c.gossip.NotFound(); len(missing) > 0 {
			why = errors.Join(missing...).Error()
		}
		return fmt.Errorf("node %s has not found its cluster yet: %s; the first node of a new cluster "+
			"has no cluster.join",
			metric.Quote(c.o.Name), strings.ReplaceAll(why, "\n", "; "))
	case !is:
		return fmt.Errorf("node %s is no member of its cluster yet: let it join with ddb admin cluster "+
			"join, plan and commit on a member", metric.Quote(c.o.Name))
	}
	return nil
}

// Durable reports that points are made durable: Open refuses a store where they are not.
func (p points) Durable() bool { return true }

// WaitDurable waits for the copies of a commit, and for the account: see write.Target. Points that
// have too few copies in time are unconfirmed, which the report says.
func (p points) WaitDurable(ctx context.Context, t write.Token) error {
	if t.Position&localToken != 0 {
		t.Position &^= localToken
		return p.c.o.Store.Intake().WaitDurable(ctx, t)
	}
	refusals, err := p.c.commits.wait(ctx, t.Position)
	if err != nil {
		return err
	}
	return p.c.o.Store.Intake().WaitDurable(ctx, refusals)
}

// privateStream is a stream of the store of this node. Its tokens are marked.
type privateStream struct{ write.Stream }

func openPrivate(of write.Target, info buckets.Info, how write.Options) (write.Stream, error) {
	if report := how.Report; report != nil {
		how.Report = func(t write.Token, c account.Counts) { report(markToken(t), c) }
	}
	s, err := of.Open(info, how)
	if err != nil {
		return nil, err
	}
	return privateStream{s}, nil
}

func markToken(t write.Token) write.Token {
	t.Position |= localToken
	return t
}

// Commit is that of the store.
func (s privateStream) Commit() (write.Token, error) {
	t, err := s.Stream.Commit()
	return markToken(t), err
}

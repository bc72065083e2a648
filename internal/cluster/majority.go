package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// What a node asks of the members before and after it creates or deletes a bucket: the first byte
// of the request. What follows is a name, or what is known of one.
const (
	bucketsOf   = 1 // what they know of a name
	bucketsKeep = 2 // to keep what follows; it is on disk when they answer
)

// createBucket creates a bucket. The error is as that of store.Store.CreateBucket and of
// changeBucket.
func (c *Cluster) createBucket(info buckets.Info) (created buckets.Info, err error) {
	if err := info.Validate(); err != nil {
		return buckets.Info{}, err
	}
	if _, err := c.o.Store.BucketByName(info.Name); err == nil {
		return buckets.Info{}, fmt.Errorf("%w: %s", buckets.ErrExists, metric.Quote(info.Name))
	}
	err = c.changeBucket(info.Name, func() error {
		created, err = c.buckets.create(info)
		return err
	})
	return created, err
}

// changeBucket creates or deletes a bucket by do. More than half of the members say first what they
// know of its name, so that two sides of a split network never both change it; and as many have the
// change on disk before the answer. The error wraps buckets.ErrNoMajority where fewer do.
func (c *Cluster) changeBucket(name string, do func() error) error {
	ctx, cancel := context.WithTimeout(c.ctx, 2*c.o.Pace.Timeout)
	defer cancel()
	select {
	case c.changing <- struct{}{}:
		defer func() { <-c.changing }()
	case <-ctx.Done():
		return fmt.Errorf("%w: other changes of buckets still wait for members; try again",
			buckets.ErrNoMajority)
	}
	if err := c.askMembers(ctx, append([]byte{bucketsOf}, name...),
		c.buckets.learnEncoded); err != nil {
		return fmt.Errorf("bucket %s is left as it is: %w", metric.Quote(name), err)
	}
	if err := do(); err != nil {
		return err
	}
	if err := c.askMembers(ctx, appendBuckets([]byte{bucketsKeep}, c.buckets.bucketsNamed(name)),
		nil); err != nil {
		return fmt.Errorf("this node has changed bucket %s, and tells the others when they answer: %w",
			metric.Quote(name), err)
	}
	return nil
}

// askMembers asks the members that this node reaches, and returns when more than half of all have
// answered. Their answers are given to take, one at a time.
func (c *Cluster) askMembers(ctx context.Context, request []byte,
	take func(answer []byte) error) error {
	v := c.View()
	counting := ring.Counting(v)
	reached := slices.DeleteFunc(slices.Clone(counting), func(id ring.ID) bool {
		return id != c.id && !c.canReach(id)
	})
	few := func(of []ring.ID, do string) error {
		return fmt.Errorf("%w: %d of %d members %s, and more than half are needed; try again when more "+
			"are up",
			buckets.ErrNoMajority, len(of), len(counting), do)
	}
	if !ring.Majority(v, memberOf(reached)) {
		return few(reached, "can be reached")
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Pace.Timeout)
	defer cancel()
	answers := make(chan answer, len(reached))
	asked := 0
	for _, id := range reached {
		if id != c.id {
			asked++
			go func() { answers <- c.askMember(ctx, id, request) }()
		}
	}
	agreed := []ring.ID{c.id}
	for ; asked > 0 && !ring.Majority(v, memberOf(agreed)); asked-- {
		a := <-answers // each comes before ctx ends
		if a.err == nil && take != nil {
			a.err = take(a.said)
		}
		if a.err == nil {
			agreed = append(agreed, a.of)
		} else {
			c.log.Log(slog.LevelWarn, "majority", "a member does not agree to the change of a bucket",
				"node", c.nameOf(a.of), "err", a.err)
		}
	}
	if !ring.Majority(v, memberOf(agreed)) {
		return few(agreed, "have answered within "+c.o.Pace.Timeout.String())
	}
	return nil
}

func memberOf(list []ring.ID) func(ring.ID) bool {
	return func(id ring.ID) bool { return slices.Contains(list, id) }
}

// answer is what a member has said.
type answer struct {
	of   ring.ID
	said []byte
	err  error
}

func (c *Cluster) askMember(ctx context.Context, id ring.ID, request []byte) answer {
	a := answer{of: id}
	a.err = ask(ctx, c, serviceBuckets, id, request, func(part []byte) error {
		a.said = append(a.said, part...)
		return nil
	})
	return a
}

// serveBuckets answers a member that changes a bucket.
func (c *Cluster) serveBuckets(request []byte, reply func(part []byte) error) error {
	if err := c.JoinError(); err != nil {
		return err
	}
	if len(request) > 0 {
		switch body := request[1:]; request[0] {
		case bucketsOf:
			return reply(appendBuckets(nil, c.buckets.bucketsNamed(string(body))))
		case bucketsKeep:
			return c.buckets.learnEncoded(body)
		}
	}
	return &call.Error{
		Peer: c.id,
		Code: call.Failed,
		Text: "it does not know this question about buckets",
	}
}

// bucketsNamed returns what is known of the buckets of one name, and of their deletion.
func (c *catalogue) bucketsNamed(name string) *replication.Buckets {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all.ByName(name)
}

// learnEncoded takes what another node says of buckets.
func (c *catalogue) learnEncoded(encoded []byte) error {
	o, err := parseBuckets(encoded)
	if err != nil {
		return err
	}
	return c.learn(o)
}

package test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/codec/point"
)

// incarnation is one life of a bucket: its points carry its number.
type incarnation struct {
	number   int64
	acked    int  // points that are durable
	deleting bool // its deletion was sent
	deleted  bool // and answered
}

// bucketRun makes, fills and deletes one bucket over and over.
type bucketRun struct {
	name  string
	key   []byte
	base  int64
	lives []incarnation
}

const (
	bucketPoints = 20 // of an incarnation
	bucketRounds = 10
	mostRounds   = 100 // where a busy machine lets hardly a bucket live in one
)

// TestBucketsComeAndGoUnderKill: buckets are created, filled and deleted by
// several connections while the node is killed. What is there afterwards is the
// last incarnation or the one before it, whole as far as it was acknowledged:
// nothing of a deleted one ever comes back.
func TestBucketsComeAndGoUnderKill(t *testing.T) {
	rng := seeded(t)
	dir := t.TempDir()
	args := []string{"--set", "wal.sync=always", "--set", "self_monitor=off"}
	runs := make([]*bucketRun, 4)
	for i := range runs {
		runs[i] = &bucketRun{name: fmt.Sprintf("b%d", i), key: key(t, "m"), base: past(time.Hour)}
	}
	rounds := bucketRounds
	if testing.Short() {
		rounds = 2
	}
	kills, lives := 0, 0
	for ; kills < rounds || lives < 4*len(runs) && kills < mostRounds; kills++ {
		n := startNode(t, dir, args...)
		lives = 0
		for _, r := range runs {
			r.check(t, n)
			lives += len(r.lives)
		}
		killBuckets(t, n, rng, runs)
	}
	n := startNode(t, dir, args...)
	for _, r := range runs {
		r.check(t, n)
	}
	t.Logf("%d kills, %d incarnations of %d buckets", kills, lives, len(runs))
	if lives < 4*len(runs) {
		t.Error("hardly a bucket was deleted: the test shows nothing")
	}
}

func killBuckets(t *testing.T, n *node, rng *rand.Rand, runs []*bucketRun) {
	t.Helper()
	var all sync.WaitGroup
	errs := make([]error, len(runs))
	for i, r := range runs {
		all.Go(func() { errs[i] = r.run(n) })
	}
	all.Go(func() {
		for {
			if _, err := n.admin().Flush(context.Background()); err != nil {
				return
			}
		}
	})
	<-time.After(time.Duration(rng.Int64N(int64(200 * time.Millisecond))))
	n.kill()
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// run lives until the node dies, which ends it without an error.
func (r *bucketRun) run(n *node) error {
	ctx := context.Background()
	for {
		c, err := client.Dial(ctx, n.tcp)
		if err != nil {
			return nil
		}
		err = r.delete(ctx, c)
		if err == nil {
			err = r.live(c)
		}
		c.Close()
		var said *client.ServerError
		if errors.As(err, &said) {
			return fmt.Errorf("bucket %s: %w", r.name, err)
		}
		if err != nil {
			return nil
		}
	}
}

// delete deletes the bucket if it may be there.
func (r *bucketRun) delete(ctx context.Context, c *client.Client) error {
	names, err := c.Buckets(ctx)
	if err != nil || !slices.Contains(names, r.name) {
		return err
	}
	life := &r.lives[len(r.lives)-1]
	life.deleting = true
	if err := c.DeleteBucket(ctx, r.name); err != nil {
		return err
	}
	life.deleted = true
	return nil
}

// live creates the bucket by a stream and sends its points.
func (r *bucketRun) live(c *client.Client) error {
	r.lives = append(r.lives, incarnation{number: int64(len(r.lives) + 1)})
	life := &r.lives[len(r.lives)-1]
	s, err := c.OpenAckStream(r.name)
	if err != nil {
		return err
	}
	for i := range bucketPoints {
		if err := s.Point(r.key, r.base+int64(i), point.FromInt(life.number)); err != nil {
			return err
		}
		if _, err := s.FlushAck(); err != nil {
			return err
		}
		if _, err := s.ReadAck(); err != nil {
			return err
		}
		life.acked++
	}
	return nil
}

// check reads the bucket after a crash.
func (r *bucketRun) check(t *testing.T, n *node) {
	t.Helper()
	if len(r.lives) == 0 {
		return
	}
	life := r.lives[len(r.lives)-1]
	c := n.dial()
	names, err := c.Buckets(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, r.name) {
		if life.acked > 0 && !life.deleting {
			t.Errorf("I1: bucket %s is gone with %d durable points", r.name, life.acked)
		}
		return
	}
	if life.deleted {
		t.Errorf("bucket %s is there although its deletion was answered", r.name)
	}
	for i, word := range get(t, c, r.name, r.key, r.base, bucketPoints) {
		switch {
		case word == point.Unset && i < life.acked:
			t.Errorf("I1: bucket %s, slot %d: a durable point is gone", r.name, i)
		case word != point.Unset && word != point.FromInt(life.number):
			t.Errorf("bucket %s, slot %d: a point of incarnation %d, the present one is %d", r.name, i,
				point.Int(word), life.number)
		}
	}
}

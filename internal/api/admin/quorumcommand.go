package admin

import (
	"context"
	"fmt"
	"io"
	"strconv"
)

// Quorums are the flags of r and w of a bucket.
type Quorums struct {
	Reads  string `name:"r" placeholder:"N" help:"Copies that answer a read of this bucket in a cluster; auto is the number of the cluster."`
	Writes string `name:"w" placeholder:"N" help:"Copies on disk before a point of this bucket is acknowledged; auto is the number of the cluster."`
}

// numbers returns what the flags ask to be set for a bucket.
func (f *Quorums) numbers(bucket string) (BucketQuorum, error) {
	q := BucketQuorum{Name: bucket}
	for _, of := range []struct {
		name, text string
		to         **int
	}{{"r", f.Reads, &q.OwnReads}, {"w", f.Writes, &q.OwnWrites}} {
		switch {
		case of.text == "":
		case of.text == "auto":
			*of.to = new(int)
		default:
			n, err := strconv.Atoi(of.text)
			if err != nil || n < 1 {
				return q, fmt.Errorf("%s is %q: give a number of copies from 1 up, or auto", of.name, of.text)
			}
			*of.to = &n
		}
	}
	return q, nil
}

// set sets what the flags ask for, if they do.
func (f *Quorums) set(ctx context.Context, c *Client, bucket string) error {
	q, err := f.numbers(bucket)
	if err == nil && (q.OwnReads != nil || q.OwnWrites != nil) {
		_, err = c.BucketQuorum(ctx, q)
	}
	return err
}

// QuorumCommand shows or sets how many copies of a bucket count.
type QuorumCommand struct {
	Target  `embed:""`
	Output  `embed:""`
	Quorums `embed:""`
	Bucket  string `arg:"" help:"Name of the bucket."`
}

// Help is shown below the usage of the command.
func (c *QuorumCommand) Help() string {
	return `While r + w is more than n, reads of the bucket meet every acknowledged point.
Batches and reads that begin afterwards need the new numbers, on every node that
has heard of them.

Examples:
  ddb admin buckets quorum metrics                 show the numbers
  ddb admin buckets quorum metrics --w 3 --r 1     slow, safe writes and fast reads
  ddb admin buckets quorum metrics --w auto        the number of the cluster again`
}

// Run prints the numbers, after those were set that are given.
func (c *QuorumCommand) Run(env *Env) error {
	name, err := canonical(c.Bucket)
	if err != nil {
		return fmt.Errorf("bucket %s: %w", c.Bucket, err)
	}
	q, err := c.numbers(name)
	if err != nil {
		return err
	}
	if q, err = c.client(env).BucketQuorum(env.Context, q); err != nil {
		return err
	}
	return c.Write(env, q, func(w io.Writer) error {
		of := func(own *int) string {
			if own == nil || *own == 0 {
				return "of the cluster"
			}
			return "of this bucket"
		}
		_, err := fmt.Fprintf(w, "%s: n = %d, r = %d (%s), w = %d (%s)\n", q.Name, q.Copies, q.Reads,
			of(q.OwnReads), q.Writes, of(q.OwnWrites))
		return err
	})
}

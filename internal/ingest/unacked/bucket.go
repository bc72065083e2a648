// Package unacked is shared by the protocols that send no reply: a stream that
// follows its bucket by name, and refusals counted one by one and logged now and
// then. Package acked builds on it for those that do.
package unacked

import (
	"errors"
	"fmt"
	"time"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write"
)

// Bucket is one sender's way into the bucket of a name. A sender that never
// reconnects would go on writing to a deleted bucket. A Bucket finds the one
// that has the name now. It is not for concurrent use.
type Bucket struct {
	points write.Target
	name   string
	rec    *monitor.Recorder
	info   buckets.Info
	form   buckets.Form
	stream write.Stream
	how    write.Options
	token  write.Token // of the last commit
}

// NewBucket returns the way into the bucket of the given name. rec may be nil.
// Close must be called.
func NewBucket(points write.Target, name string, rec *monitor.Recorder) *Bucket {
	return &Bucket{points: points, name: name, rec: rec}
}

// NeverWait makes points be refused where their sender would be held back: one
// that sends datagrams does not notice. It is called before Stream.
func (b *Bucket) NeverWait() { b.how.NeverWait = true }

// Form sets the form of the bucket where it is made. It is called before Stream.
func (b *Bucket) Form(form buckets.Form) { b.form = form }

// Acknowledge makes the stream that of a sender who gets an answer: report is told what became
// of the points of each commit, and stale markers are taken. It is called before Stream.
func (b *Bucket) Acknowledge(report func(write.Token, account.Counts)) {
	b.how.Report, b.how.Stale = report, true
}

// Stream returns a stream for the bucket that has the name now, and the
// bucket's resolution in milliseconds. The bucket is made where it is missing
// and auto-creation is on. Refused says which errors are the sender's.
func (b *Bucket) Stream() (write.Stream, int64, error) {
	info, err := b.points.EnsureBucket(b.name, b.form)
	if err == nil && b.stream != nil && info.ID == b.info.ID {
		return b.stream, info.Resolution, nil
	}
	if closeErr := b.Close(); closeErr != nil {
		return nil, 0, closeErr
	}
	if err != nil {
		return nil, 0, err
	}
	stream, err := b.points.Open(info, b.how)
	if err != nil {
		return nil, 0, err
	}
	b.stream, b.info = stream, info
	return stream, info.Resolution, nil
}

// Info returns the bucket that the stream of the last call of Stream is for.
func (b *Bucket) Info() buckets.Info { return b.info }

// Commit hands over what the stream received.
func (b *Bucket) Commit() error {
	if b.stream == nil {
		return nil
	}
	start := time.Now()
	token, err := b.stream.Commit()
	b.token = token
	b.rec.Observe(monitor.MPut, time.Since(start))
	if err != nil {
		return fmt.Errorf("storing points: %w", err)
	}
	return nil
}

// Token returns what stands for the last commit.
func (b *Bucket) Token() write.Token { return b.token }

// Close commits what is pending and ends the stream. The next call of Stream
// opens another one.
func (b *Bucket) Close() error {
	if b.stream == nil {
		return nil
	}
	stream := b.stream
	b.stream = nil
	if err := stream.Close(); err != nil {
		return fmt.Errorf("storing points: %w", err)
	}
	return nil
}

// Refused returns the reason under which points are counted that Stream had
// no bucket for. ok is false for an error that is not the sender's: the store
// can no longer write.
func Refused(err error) (reason string, ok bool) {
	switch {
	case errors.Is(err, buckets.ErrUnknown):
		return "unknown_bucket", true
	case errors.Is(err, buckets.ErrInvalid):
		return "invalid_bucket", true
	case errors.Is(err, buckets.ErrNoMajority):
		return "no_majority", true
	case errors.Is(err, write.ErrDiskFull):
		return "disk_full", true
	case errors.As(err, new(*memory.Refusal)):
		return "memory", true
	case errors.Is(err, write.ErrHeldBack):
		return "held_back", true
	}
	return "", false
}

// Package oneway holds what the doors need whose senders never read a reply: a
// session that follows its bucket by name, and refusals that are counted one
// by one and logged now and then.
package oneway

import (
	"errors"
	"fmt"
	"time"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/monitor"
	"dalmatiner/internal/store"
)

// Bucket is one sender's way into the bucket of a name. A sender that never
// reconnects would go on writing to a bucket that was deleted; this one finds
// the bucket that has the name now. It is not for concurrent use.
type Bucket struct {
	store   *store.Store
	name    string
	rec     *monitor.Recorder
	info    buckets.Info
	session *store.Session
	hasty   bool
}

// NewBucket returns the way into the bucket of the given name. rec may be nil.
// Close must be called.
func NewBucket(st *store.Store, name string, rec *monitor.Recorder) *Bucket {
	return &Bucket{store: st, name: name, rec: rec}
}

// NeverWait makes points be refused where the store would hold their sender
// back: one that sends datagrams does not notice. It is called before Session.
func (b *Bucket) NeverWait() { b.hasty = true }

// Session returns a session for the bucket that has the name now, and the
// bucket's resolution in milliseconds. The bucket is made where it is missing
// and auto-creation is on. Refused says which errors are the sender's.
func (b *Bucket) Session() (*store.Session, int64, error) {
	info, err := b.store.EnsureBucket(b.name)
	if err == nil && b.session != nil && info.ID == b.info.ID {
		return b.session, info.Resolution, nil
	}
	if closeErr := b.Close(); closeErr != nil {
		return nil, 0, closeErr
	}
	if err != nil {
		return nil, 0, err
	}
	session, err := b.store.NewSession(info)
	if err != nil {
		return nil, 0, err
	}
	if b.hasty {
		session.NeverWait()
	}
	b.session, b.info = session, info
	return session, info.Resolution, nil
}

// Commit hands what the session received to the log.
func (b *Bucket) Commit() error {
	if b.session == nil {
		return nil
	}
	start := time.Now()
	_, err := b.session.Commit()
	b.rec.Observe(monitor.MPut, time.Since(start))
	if err != nil {
		return fmt.Errorf("storing points: %w", err)
	}
	return nil
}

// Close commits what is pending and ends the session. The next call of Session
// starts another one.
func (b *Bucket) Close() error {
	if b.session == nil {
		return nil
	}
	session := b.session
	b.session = nil
	if err := session.Close(); err != nil {
		return fmt.Errorf("storing points: %w", err)
	}
	return nil
}

// Refused returns the reason under which points are counted that Session had
// no bucket for. ok is false for an error that is not the sender's: the store
// can no longer write.
func Refused(err error) (reason string, ok bool) {
	switch {
	case errors.Is(err, buckets.ErrUnknown):
		return "unknown_bucket", true
	case errors.Is(err, buckets.ErrInvalid):
		return "invalid_bucket", true
	}
	return "", false
}

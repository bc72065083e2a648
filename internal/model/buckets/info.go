// Package buckets says what a bucket is, which properties it may have, and which
// buckets there are. A Registry finds them by name and by id, and gives new ones
// an id that no deleted bucket had.
package buckets

import (
	"errors"
	"fmt"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// Errors that callers branch on.
var (
	ErrUnknown = errors.New("unknown bucket")
	ErrExists  = errors.New("the bucket exists")
	ErrInvalid = errors.New("invalid bucket")

	// ErrNoMajority says that too few nodes of a cluster answer to create or delete a bucket.
	ErrNoMajority = errors.New("no majority of the cluster")
)

// Info is what defines a bucket, in memory and in files. All but TTL never change.
type Info struct {
	ID         uint64 // metric.BucketID; never given again
	Name       string // any bytes, 1 to 255
	Resolution int64  // ms per slot
	PPF        int64  // points per file, reported to clients of the original
	TTL        int64  // points; 0 keeps them for ever
	Grace      int64  // ns, event reordering window
	HPTS       bool   // every point has a timestamp in nanoseconds

	// n, in what a node says of a bucket of its cluster; 0: that of the ring. A store does not keep it
	Copies int
}

// Form is what a sender asks of a bucket that is created for its points. The zero value leaves all
// to the node's defaults.
type Form struct {
	Resolution int64 // ms per slot; 0: the default
	HPTS       bool
}

// Info returns the bucket of a name in this form, of a node whose defaults are those of d: it lives
// as long as they say, whatever its resolution.
func (f Form) Info(name string, d Info) Info {
	d.Name, d.HPTS = name, f.HPTS
	if f.Resolution > 0 && d.Resolution > 0 {
		d.TTL = int64(float64(d.TTL) * float64(d.Resolution) / float64(f.Resolution))
		d.Resolution = f.Resolution
	}
	return d
}

// Deletion is what is remembered of a deleted bucket: its name, and when it was
// deleted, by a clock that rises with every deletion of the name. The next bucket of
// the name has an id that follows from it.
type Deletion struct {
	ID    uint64
	Clock uint64
	Name  string
}

// Limits of a bucket's properties: a resolution of at most a year keeps every
// slot's time inside int64 milliseconds.
const (
	MaxResolution = 366 * 24 * 3600 * 1000
	MaxPoints     = 1 << 53

	// MaxSlot bounds slots so that slot × resolution stays inside an int64 for
	// every resolution that a bucket can have in practice.
	MaxSlot = 1 << 53
)

// Validate returns an error that wraps ErrInvalid where a property is out of bounds.
func (b *Info) Validate() error {
	switch {
	case len(b.Name) == 0 || len(b.Name) > metric.MaxBucket:
		return fmt.Errorf("%w: the name has %d bytes, want 1 to %d", ErrInvalid, len(b.Name),
			metric.MaxBucket)
	case b.Resolution < 1 || b.Resolution > MaxResolution:
		return fmt.Errorf("%w: a resolution of %d ms, want 1 to %d", ErrInvalid, b.Resolution,
			int64(MaxResolution))
	case b.PPF < 1 || b.PPF > MaxPoints:
		return fmt.Errorf("%w: %d points per file, want 1 to %d", ErrInvalid, b.PPF, int64(MaxPoints))
	case b.TTL < 0 || b.TTL > MaxPoints:
		return fmt.Errorf("%w: a TTL of %d points, want 0 (none) to %d", ErrInvalid, b.TTL,
			int64(MaxPoints))
	case b.Grace < 0:
		return fmt.Errorf("%w: a grace of %d ns is negative", ErrInvalid, b.Grace)
	}
	return nil
}

// UnknownError is the error for a name that no bucket has; it wraps ErrUnknown.
func UnknownError(name string) error { return fmt.Errorf("%w %s", ErrUnknown, metric.Quote(name)) }

// SlotBegin is when a slot begins, in nanoseconds. It wraps with the slot, and so do
// the differences to it: Timestamp gives back what TimestampWord takes.
func (b *Info) SlotBegin(slot uint64) uint64 {
	return slot * uint64(b.Resolution) * uint64(time.Millisecond)
}

// TimestampWord turns a timestamp in nanoseconds into the word that is stored: ok is
// false where it lies 2^55 ns or more from its slot, on either side: an integer has 56 bits.
func (b *Info) TimestampWord(slot, timestamp uint64) (w uint64, ok bool) {
	d := int64(timestamp - b.SlotBegin(slot))
	return point.FromInt(d), -point.MaxInt <= d && d <= point.MaxInt
}

// Timestamp undoes TimestampWord. In a bucket without timestamps there is no word, and
// a point has the begin of its slot.
func (b *Info) Timestamp(slot, w uint64) uint64 {
	if w == point.Unset {
		return b.SlotBegin(slot)
	}
	return b.SlotBegin(slot) + uint64(point.Int(w))
}

// Columns returns how many columns a metric of the bucket has: that of its values, and behind it
// that of its timestamps where points have them.
func (b *Info) Columns() int {
	if b.HPTS {
		return 2
	}
	return 1
}

// ValueID returns the id of the metric of a series. The series holds either its values or its
// timestamps.
func (b *Info) ValueID(id metric.SeriesID) metric.SeriesID {
	if b.HPTS {
		return id.Value()
	}
	return id
}

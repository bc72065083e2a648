// Package account counts every point, per bucket and minute of arrival: what was received,
// whether it was stored or why not, and what was lost later.
//
// Every received point is counted exactly once, so that for every row
//
//	received = accepted + duplicate + conflicting + late + unset + Σ refused
//
// Package ledger adds a row while it holds the commit lock and writes the same row
// into the write-ahead log, so that a snapshot taken under that lock plus the
// records behind it give the account back after a crash (invariant I3).
package account

import (
	"maps"
	"slices"
	"sync"
	"unsafe"
)

// Reason says why a point was refused.
type Reason uint8

// The reasons for which a point is refused.
const (
	Future        Reason = iota // the slot lies further ahead than ingest.max_future
	Expired                     // the slot is older than the bucket's TTL
	BadType                     // a point of the undefined types 03 to 7f
	DiskFull                    // less than storage.min_free is left on the disk
	EmptyName                   // a metric without a byte
	BucketDeleted               // the bucket was deleted while the stream was open
	SeriesLimit                 // a new series beyond what the node can hold
	Memory                      // a new series while memory is short
	Overload                    // over UDP while senders are held back
	BadTimestamp                // a timestamp more than 417 days from its slot
	SameHash                    // a series whose hash another one has already
	NumReasons    = iota
)

var reasonNames = [NumReasons]string{"future", "expired", "bad_type", "disk_full", "empty_name", "bucket_deleted", "series_limit", "memory", "overload", "bad_timestamp", "same_hash"}

// String returns the name under which the reason is reported.
func (r Reason) String() string { return reasonNames[r] }

// Reasons returns all reasons in their fixed order.
func Reasons() []Reason {
	out := make([]Reason, NumReasons)
	for i := range out {
		out[i] = Reason(i)
	}
	return out
}

// Counts is one row of the ledger: points by what became of them.
type Counts struct {
	Accepted    uint64 // stored in a slot that was unset
	Duplicate   uint64 // the slot already held the same value
	Conflicting uint64 // stored over a different value
	Late        uint64 // stored behind the open blocks
	Unset       uint64 // explicit unset points: they never erase
	Refused     [NumReasons]uint64
}

// RefusedTotal returns the number of refused points.
func (c *Counts) RefusedTotal() uint64 {
	var n uint64
	for _, r := range c.Refused {
		n += r
	}
	return n
}

// Stored returns the number of points that were written.
func (c *Counts) Stored() uint64 { return c.Accepted + c.Duplicate + c.Conflicting + c.Late }

// Received returns the number of points received.
func (c *Counts) Received() uint64 { return c.Stored() + c.Unset + c.RefusedTotal() }

// Add adds d to c.
func (c *Counts) Add(d *Counts) {
	c.Accepted += d.Accepted
	c.Duplicate += d.Duplicate
	c.Conflicting += d.Conflicting
	c.Late += d.Late
	c.Unset += d.Unset
	for i, n := range d.Refused {
		c.Refused[i] += n
	}
}

// Row is the ledger of one bucket in one minute of arrival.
type Row struct {
	Minute int64 // unix minutes
	Counts
}

// Loss is what a cause took of points that were counted earlier as stored, and how
// many of them came back. Both only grow: what is missing now is the difference.
type Loss struct {
	Cause     string
	Points    uint64 // lost
	Recovered uint64
}

// RetainedMinutes is how many minutes with arrivals a bucket keeps; older ones
// live on in its total. A day covers what an operator asks about while the
// snapshot in every MANIFEST edit stays at some 30 KiB a bucket.
const RetainedMinutes = 1440

// DeletedBuckets is the bucket id under which the totals of deleted buckets
// are kept: no bucket ever has it.
const DeletedBuckets uint64 = 0

// Account is the ledger of a node. Its methods may be called concurrently.
type Account struct {
	mu        sync.Mutex
	buckets   map[uint64]*ledger
	rows      int // of minutes, of all buckets
	maxRows   int // see Bound; 0 = none
	lost      map[string]uint64
	recovered map[string]uint64
	requests  map[string]uint64
}

type ledger struct {
	total   Counts
	minutes []Row // ascending
}

// New returns an empty ledger.
func New() *Account {
	return &Account{
		buckets:   make(map[uint64]*ledger),
		lost:      make(map[string]uint64),
		recovered: make(map[string]uint64),
		requests:  make(map[string]uint64),
	}
}

// rowBytes is the memory of a minute of a bucket, in a list that grows.
const rowBytes = 2 * int64(unsafe.Sizeof(Row{}))

// Bound keeps the minutes of all buckets together near so many bytes, 0 for any number: as
// each bucket gets its next minute it keeps no more than its share, the latest ones and at
// least one. Totals are kept whole.
func (a *Account) Bound(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.maxRows = int(bytes / rowBytes)
}

// Bytes returns the memory of the minutes of all buckets.
func (a *Account) Bytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int64(a.rows) * rowBytes
}

// keep is how many minutes a bucket may have. The lock is held.
func (a *Account) keep() int {
	if a.maxRows == 0 {
		return RetainedMinutes
	}
	return min(RetainedMinutes, max(1, a.maxRows/max(1, len(a.buckets))))
}

func (a *Account) ledger(bucket uint64) *ledger {
	l := a.buckets[bucket]
	if l == nil {
		l = &ledger{}
		a.buckets[bucket] = l
	}
	return l
}

// Add counts points that arrived for the bucket in the given unix minute.
func (a *Account) Add(bucket uint64, minute int64, d *Counts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.ledger(bucket)
	l.total.Add(d)
	before := len(l.minutes)
	l.row(minute, a.keep()).Add(d)
	a.rows += len(l.minutes) - before
}

// row returns the row of a minute, of which the ledger then has at most keep. Minutes come
// in order but for a clock that was set back, so the search starts at the end.
func (l *ledger) row(minute int64, keep int) *Counts {
	i := len(l.minutes)
	for i > 0 && l.minutes[i-1].Minute > minute {
		i--
	}
	if i > 0 && l.minutes[i-1].Minute == minute {
		return &l.minutes[i-1].Counts
	}
	if over := len(l.minutes) + 1 - keep; over > 0 {
		if i < over {
			return new(Counts) // older than all that are kept: only the total has it
		}
		l.drop(over)
		i -= over
	}
	l.minutes = slices.Insert(l.minutes, i, Row{Minute: minute})
	return &l.minutes[i].Counts
}

// drop drops the oldest n minutes. Where those were many, their memory goes as well.
func (l *ledger) drop(n int) {
	if n == 1 {
		l.minutes = slices.Delete(l.minutes, 0, 1)
		return
	}
	l.minutes = slices.Clone(l.minutes[n:])
}

// DeleteBucket moves the totals of a bucket to DeletedBuckets.
func (a *Account) DeleteBucket(bucket uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.buckets[bucket]; l != nil {
		delete(a.buckets, bucket)
		a.rows -= len(l.minutes)
		a.ledger(DeletedBuckets).total.Add(&l.total)
	}
}

// Lose counts points, stored earlier, that were lost to a cause.
func (a *Account) Lose(cause string, points uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost[cause] += points
}

// Recover counts points that were counted as lost to a cause and are served again:
// their file came back, or what held them was taken in.
func (a *Account) Recover(cause string, points uint64) {
	if points == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recovered[cause] += points
}

// RefuseRequest counts a frame or query that was answered with an error.
func (a *Account) RefuseRequest(reason string) { a.RefuseRequests(reason, 1) }

// RefuseRequests counts n frames, queries or datagrams that were refused.
func (a *Account) RefuseRequests(reason string, n uint64) {
	if n == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests[reason] += n
}

// Totals returns the sums of every bucket id since the data directory was
// made.
func (a *Account) Totals() map[uint64]Counts {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make(map[uint64]Counts, len(a.buckets))
	for id, l := range a.buckets {
		out[id] = l.total
	}
	return out
}

// Total returns the sums of one bucket.
func (a *Account) Total(bucket uint64) Counts {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.buckets[bucket]; l != nil {
		return l.total
	}
	return Counts{}
}

// Minutes returns a copy of the retained minutes of a bucket, oldest first.
func (a *Account) Minutes(bucket uint64) []Row {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.buckets[bucket]; l != nil {
		return slices.Clone(l.minutes)
	}
	return nil
}

// Lost returns what was lost and recovered by cause, sorted by cause.
func (a *Account) Lost() []Loss {
	a.mu.Lock()
	defer a.mu.Unlock()
	causes := maps.Clone(a.lost)
	maps.Copy(causes, a.recovered)
	out := make([]Loss, 0, len(causes))
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		out = append(out, Loss{Cause: cause, Points: a.lost[cause], Recovered: a.recovered[cause]})
	}
	return out
}

// Requests returns the number of refused requests by reason.
func (a *Account) Requests() map[string]uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.requests)
}

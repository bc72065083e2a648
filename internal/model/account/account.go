// Package account counts every point by bucket and minute of arrival: what was received,
// whether it was stored or why not, and what was lost later.
//
// Every received point is counted exactly once, and a stale marker as a point, so that for
// every row
//
//	received = accepted + duplicate + conflicting + late + unset + Σ refused
//
// Package ledger adds a row while it holds the commit lock, and writes the same row into
// the write-ahead log. A snapshot taken under that lock and the records behind it give the
// account back after a crash (invariant I3).
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
	Future        Reason = iota // the slot lies further ahead of the clock than ingest.max_future
	Expired                     // the slot is older than the bucket's TTL
	BadType                     // the first byte of the point is an undefined type, 03 to 7f
	DiskFull                    // less than storage.min_free is left on the disk
	EmptyName                   // the name of the metric is empty
	BucketDeleted               // the bucket was deleted while the stream was open
	SeriesLimit                 // the series is new, and the node can hold no more
	Memory                      // the series is new, and memory is short
	Overload                    // the point came over UDP while senders were held back
	BadTimestamp                // the timestamp lies more than 417 days from the slot
	SameHash                    // the series is new, and another one has its hash
	TooLarge                    // the body of the event is too long; no point is refused for it
	// fewer nodes than asked for have confirmed the point in time; it may be stored all the same
	Unconfirmed
	NumReasons = iota // the number of reasons
)

var reasonNames = [NumReasons]string{"future", "expired", "bad_type", "disk_full", "empty_name",
	"bucket_deleted", "series_limit", "memory", "overload", "bad_timestamp", "same_hash", "too_large",
	"unconfirmed"}

// String returns the name under which the reason is reported, in lower case. It panics for
// a value that is no reason.
func (r Reason) String() string { return reasonNames[r] }

// Reasons returns all reasons in ascending order. The caller owns the slice.
func Reasons() []Reason {
	out := make([]Reason, NumReasons)
	for i := range out {
		out[i] = Reason(i)
	}
	return out
}

// Counts are numbers of points by what became of them. Each point is in one of them.
type Counts struct {
	Accepted  uint64 // stored in a slot that was unset
	Duplicate uint64 // the slot held the same value already
	// stored over a different value; a stale marker that met a value, which stays
	Conflicting uint64
	// stored, too old for the open blocks (package head); what the slot held is not looked at
	Late    uint64
	Unset   uint64             // sent as unset: such a point never erases a value
	Refused [NumReasons]uint64 // not stored, by Reason
}

// RefusedTotal returns the number of points that were refused for any reason.
func (c *Counts) RefusedTotal() uint64 {
	var n uint64
	for _, r := range c.Refused {
		n += r
	}
	return n
}

// StoredPoints returns the number of points whose value the store holds: accepted, duplicate,
// conflicting and late ones.
func (c *Counts) StoredPoints() uint64 { return c.Accepted + c.Duplicate + c.Conflicting + c.Late }

// ReceivedPoints returns the number of all points.
func (c *Counts) ReceivedPoints() uint64 { return c.StoredPoints() + c.Unset + c.RefusedTotal() }

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

// Row is what arrived for one bucket in one minute.
type Row struct {
	Minute int64 // of arrival, in minutes since 1970
	Counts
}

// Loss is how many points a cause took that were counted as stored before, and how many of
// them came back. Both numbers only grow. What is missing now is the difference.
type Loss struct {
	Cause     string // a word for reports, such as log_record_damaged
	Points    uint64 // lost
	Recovered uint64 // served again
}

// RetainedMinutes is how many minutes with arrivals a bucket keeps at most. Older ones are
// in its total only. A day covers what an operator asks about, and the snapshot in every
// MANIFEST edit stays at some 30 KiB a bucket.
const RetainedMinutes = 1440

// DeletedBuckets is the bucket id under which the totals of deleted buckets are kept. No
// bucket ever has it.
const DeletedBuckets uint64 = 0

// Account has the counts of all buckets of a node, and what was lost. Its methods may be
// called concurrently. What they return is the caller's own copy.
type Account struct {
	mu        sync.Mutex
	buckets   map[uint64]*sums
	rows      int // of minutes, of all buckets
	maxRows   int // see Bound; 0 = none
	lost      map[string]uint64
	recovered map[string]uint64
	requests  map[string]uint64
}

// sums are the account of one bucket.
type sums struct {
	total   Counts
	minutes []Row // ascending
}

// New returns an empty account.
func New() *Account {
	return &Account{
		buckets:   make(map[uint64]*sums),
		lost:      make(map[string]uint64),
		recovered: make(map[string]uint64),
		requests:  make(map[string]uint64),
	}
}

// rowBytes is the memory of a minute of a bucket, in a list that grows.
const rowBytes = 2 * int64(unsafe.Sizeof(Row{}))

// Bound limits the memory of the minutes of all buckets together to about so many bytes; 0
// is no limit. A bucket drops its oldest minutes when it gets its next one: it keeps no more
// than its equal share, and at least one. Totals stay whole.
func (a *Account) Bound(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.maxRows = int(bytes / rowBytes)
}

// Bytes returns about the memory of the minutes of all buckets.
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

func (a *Account) sumsOf(bucket uint64) *sums {
	l := a.buckets[bucket]
	if l == nil {
		l = &sums{}
		a.buckets[bucket] = l
	}
	return l
}

// Add adds d to the counts of a bucket: its points arrived in the given minute since 1970.
// A minute older than all those kept counts in the total only.
func (a *Account) Add(bucket uint64, minute int64, d *Counts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.sumsOf(bucket)
	l.total.Add(d)
	before := len(l.minutes)
	l.row(minute, a.keep()).Add(d)
	a.rows += len(l.minutes) - before
}

// row returns the row of a minute, of which the bucket then has at most keep. Minutes come
// in order but for a clock that was set back, so the search starts at the end.
func (l *sums) row(minute int64, keep int) *Counts {
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
func (l *sums) drop(n int) {
	if n == 1 {
		l.minutes = slices.Delete(l.minutes, 0, 1)
		return
	}
	l.minutes = slices.Clone(l.minutes[n:])
}

// DeleteBucket moves the total of a bucket to DeletedBuckets and drops its minutes.
func (a *Account) DeleteBucket(bucket uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.buckets[bucket]; l != nil {
		delete(a.buckets, bucket)
		a.rows -= len(l.minutes)
		a.sumsOf(DeletedBuckets).total.Add(&l.total)
	}
}

// Lose counts points as lost to a cause. They were counted as stored before, and stay so.
func (a *Account) Lose(cause string, points uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost[cause] += points
}

// Recover counts points as served again that Lose has counted for the cause: a file came
// back, for instance.
func (a *Account) Recover(cause string, points uint64) {
	if points == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recovered[cause] += points
}

// RefuseRequest counts one frame, query or datagram that was refused for a reason.
func (a *Account) RefuseRequest(reason string) { a.RefuseRequests(reason, 1) }

// RefuseRequests counts n frames, queries or datagrams that were refused for a reason. These
// reasons are words of the caller, not those of type Reason.
func (a *Account) RefuseRequests(reason string, n uint64) {
	if n == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests[reason] += n
}

// Empty reports whether nothing was ever counted.
func (a *Account) Empty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.buckets)+len(a.lost)+len(a.recovered)+len(a.requests) == 0
}

// Totals returns the counts of every bucket by its id, since the data directory was made.
// Those of all deleted buckets are under DeletedBuckets.
func (a *Account) Totals() map[uint64]Counts {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make(map[uint64]Counts, len(a.buckets))
	for id, l := range a.buckets {
		out[id] = l.total
	}
	return out
}

// Total returns the counts of one bucket, zeros for an unknown one.
func (a *Account) Total(bucket uint64) Counts {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.buckets[bucket]; l != nil {
		return l.total
	}
	return Counts{}
}

// Minutes returns the minutes of a bucket that are kept, oldest first. Minutes without
// arrivals have no row.
func (a *Account) Minutes(bucket uint64) []Row {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.buckets[bucket]; l != nil {
		return slices.Clone(l.minutes)
	}
	return nil
}

// Losses returns what was lost and recovered, sorted by cause.
func (a *Account) Losses() []Loss {
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

package admin

import (
	"encoding/json"
	"fmt"
	"time"
)

// Bucket is one bucket: an element of GET /buckets and the body of POST
// /admin/buckets/create.
type Bucket struct {
	Name       string `json:"name"`       // escaped
	Resolution int64  `json:"resolution"` // ms per point
	PPF        int64  `json:"ppf"`        // points per file
	Grace      int64  `json:"grace"`      // ns
	HPTS       bool   `json:"hpts"`
	TTL        TTL    `json:"ttl"`
	Copies     int    `json:"n,omitempty"` // in a cluster, where it is not that of the ring
}

// TTL is a lifetime in points; 0 is infinite. In JSON it is a number, or the
// string "infinity" as in the original's list of buckets.
type TTL int64

const infinity = "infinity"

// MarshalJSON prints the number of points or "infinity".
func (t TTL) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return json.Marshal(infinity)
	}
	return json.Marshal(int64(t))
}

// UnmarshalJSON reads a positive number of points, "infinity" or "inf".
func (t *TTL) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case `"infinity"`, `"inf"`:
		*t = 0
		return nil
	}
	var n int64
	if err := json.Unmarshal(text, &n); err != nil || n <= 0 {
		return fmt.Errorf("ttl is %s, it must be a number of points from 1 up or \"infinity\"", text)
	}
	*t = TTL(n)
	return nil
}

// BucketName is the body of POST /admin/buckets/delete.
type BucketName struct {
	Name string `json:"name"` // escaped
}

// BucketTTL is the body of POST /admin/buckets/ttl.
type BucketTTL struct {
	Name string `json:"name"` // escaped
	TTL  *TTL   `json:"ttl"`
}

// Flushed is the answer to POST /admin/flush: what was written and how long it
// took. Segment is empty when there was nothing to write.
type Flushed struct {
	Segment string `json:"segment"`
	Bytes   int64  `json:"bytes"`
	Points  int64  `json:"points"`
	Series  int64  `json:"series"`
	TookUS  int64  `json:"took_us"`
}

// Merged is the answer to POST /admin/merge: what was written and taken away.
type Merged struct {
	Windows  int   `json:"windows"`
	Overlays int   `json:"overlays"`
	Removed  int   `json:"removed"` // segments that the written ones replace
	Bytes    int64 `json:"bytes"`
	TookUS   int64 `json:"took_us"`
}

// Account is the answer to GET /admin/account: what became of every point and of every event.
type Account struct {
	Entries
	Requests map[string]uint64 `json:"refused_requests"` // frames and queries by reason
	Events   Entries           `json:"events"`           // of buckets that got some
	// changes, and series with their tags, that the start found lost
	TagsLost int64 `json:"tags_lost"`
	// senders whose clocks are ahead, since the start
	Clocks []Clock `json:"clocks,omitempty"`
}

// Clock is a sender that has sent something further ahead than ingest.max_future.
type Clock struct {
	Sender   string `json:"sender"`   // its address
	Listener string `json:"listener"` // graphite, syslog, tcp or http
	Ahead    uint64 `json:"ahead"`    // points or events that were too far ahead
	AheadMS  int64  `json:"ahead_ms"` // the most by which
	LastMS   int64  `json:"last_ms"`  // when the last of them came, unix ms
}

// Entries are the account of points, or that of events.
type Entries struct {
	Rows      []AccountRow      `json:"rows"`
	Lost      map[string]uint64 `json:"lost_total"`      // counted earlier and lost since, by cause
	Recovered map[string]uint64 `json:"recovered_total"` // of these, served again
}

// AccountRow counts points or events of one bucket, since the data directory was made or
// in one minute of arrival. Received is the sum of all other counts.
type AccountRow struct {
	// escaped; empty for the sum of the buckets that are gone
	Bucket      string            `json:"bucket"`
	Minute      int64             `json:"minute,omitempty"` // unix minutes, 0 in a total
	Received    uint64            `json:"received"`
	Accepted    uint64            `json:"accepted"`
	Duplicate   uint64            `json:"duplicate"`
	Conflicting uint64            `json:"conflicting"`
	Late        uint64            `json:"late"`
	Unset       uint64            `json:"unset"`
	Refused     map[string]uint64 `json:"refused"` // by reason
}

// RefusedTotal returns the number of refused points or events.
func (r *AccountRow) RefusedTotal() uint64 {
	var n uint64
	for _, v := range r.Refused {
		n += v
	}
	return n
}

// Sum returns what Received must be (invariant I3).
func (r *AccountRow) Sum() uint64 {
	return r.Accepted + r.Duplicate + r.Conflicting + r.Late + r.Unset + r.RefusedTotal()
}

// Stat is one line of GET /admin/stats: a figure of the node as /metrics shows
// it, labels included in the name.
type Stat struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// Result is the answer to a query, as docs/http.md describes it.
type Result struct {
	Start     int64       `json:"start"`      // ms
	QueryTime int64       `json:"query_time"` // µs
	Results   []Series    `json:"results"`
	Events    []EventList `json:"-"`         // the results that are events
	PlanText  string      `json:"plan_text"` // of EXPLAIN, which has no results

	Zone *time.Location `json:"-"` // in which times are printed; nil is UTC

	Missing   []missingSelector `json:"missing"`   // those without a hit, where others have some
	Unmatched []unmatchedSeries `json:"unmatched"` // those that an operator leaves out
	// "shown": what is unknown has older values; else empty
	Damaged string `json:"damaged"`
}

// missingSelector is a selector of a query that finds nothing.
type missingSelector struct {
	Selector string   `json:"selector"`
	Offset   int      `json:"offset"`  // in the query, in bytes
	Message  string   `json:"message"` // the part without a hit, and what may be meant
	Near     []string `json:"near"`    // metrics that may be meant
}

// unmatchedSeries are series on one side of an operator without a partner on the other side.
type unmatchedSeries struct {
	Selector string   `json:"selector"`
	Series   []string `json:"series"` // the first of them
	More     int      `json:"more"`   // further ones
}

// Series is one result of a query. The time of value i is the result's start +
// i·Resolution; nil values are NaN, infinite, or before the first point.
type Series struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Resolution int64      `json:"resolution"` // ms
	Times      []int64    `json:"times"`      // of the values, unix ms, where they have their own
	Values     []*float64 `json:"values"`
	// by position, integers among Values that doubles do not hold
	Exact    map[int]int64 `json:"-"`
	Coverage float64       `json:"coverage"` // share of the points that are promised
	Stars    []string      `json:"stars"`    // the parts that the stars of the pattern stand for

	Start     *int64 `json:"start"`      // ms; nil where it is the result's
	Points    *int64 `json:"points"`     // that were read; nil with compat
	LastPoint int64  `json:"last_point"` // unix ms; 0 without a point
	Ended     bool   `json:"ended"`      // its last point is too old for its sender
	// ms, most common distance of points; nil with fewer than two
	Interval         *int64 `json:"interval"`
	BucketResolution int64  `json:"bucket_resolution"` // ms per slot of what was read

	Unknown *Unknown `json:"unknown"` // slots that damage took; nil without
}

// Unknown are the slots of a series that damage took.
type Unknown struct {
	Slots  int64      `json:"slots"`
	Ranges [][2]int64 `json:"ranges"` // [from, to) in unix ms, the first ones
	More   int64      `json:"more"`   // further ranges
	Why    []string   `json:"why"`    // what was lost
}

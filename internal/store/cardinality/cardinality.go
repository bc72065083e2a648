package cardinality

import (
	"context"
	"fmt"
	"time"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write/series"
)

// By is what series are counted by.
type By string

// What series may be counted by.
const (
	Names    By = "names"  // of tags
	Values   By = "values" // of tags
	Buckets  By = "buckets"
	Prefixes By = "prefixes" // of metrics: whole parts
)

// MaxLimit is the most elements of an answer.
const MaxLimit = 1000

// Query is what is asked for.
type Query struct {
	By    By
	ByNew bool // the order: by new series rather than by all
	Limit int  // elements, from 1 to MaxLimit
	Now   time.Time

	Collection []byte        // of names and values: nil for all
	Name       *tags.TagName // of values: nil for those of all names

	Bucket *buckets.Info // of prefixes: nil for all
	Prefix []byte        // of prefixes: a key, what they begin with
	Depth  int           // of prefixes: how many parts they have more than Prefix, from 1 up
}

// Element is one of those with most series. Its texts are escaped.
type Element struct {
	Text   string `json:"text"`             // name, value, bucket, or the parts as a query writes them
	Name   string `json:"name,omitempty"`   // of a value: its tag
	Bucket string `json:"bucket,omitempty"` // of a prefix
	Values int    `json:"values,omitempty"` // of a name: how many it has
	Deeper bool   `json:"deeper,omitempty"` // of a prefix: there are series with more parts
	Series int    `json:"series"`
	New    int    `json:"new"` // of them
}

// Answer is the elements with most series, with what they are a part of.
type Answer struct {
	By       By        `json:"by"`
	List     []Element `json:"list"`
	More     bool      `json:"more"`     // there are elements beyond the limit
	Distinct int       `json:"distinct"` // elements, those beyond the limit too
	// that were counted; one that several elements have counts once
	Series int   `json:"series"`
	New    int   `json:"new"`
	Since  int64 `json:"new_since"` // unix ms: what came before is not new
	// from there on, at least 1: new ÷ new_hours is a rate
	Hours   float64 `json:"new_hours"`
	AtLeast bool    `json:"new_at_least,omitempty"` // more came than are remembered as new
}

// Store has all series. Its methods may be called concurrently.
type Store interface {
	Buckets() []buckets.Info
	// Metrics calls fn with every key that starts with prefix until fn returns
	// false. The key is valid during the call.
	Metrics(ctx context.Context, b buckets.Info, prefix []byte, fn func(key []byte) bool) error
}

// Arrivals knows which series are new.
type Arrivals interface{ RecentSeries() series.RecentSeries }

// Tags has the series that have tags, as tags.Index.
type Tags interface {
	EachName(ctx context.Context, s tags.Scope, fn func(n tags.TagName, values int, of tags.Count)) (
		tags.Count, error)
	EachValue(ctx context.Context, s tags.Scope, only *tags.TagName,
		fn func(n tags.TagName, value []byte, of tags.Count)) (tags.Count, error)
}

// Memory is charged for what a count takes, before it is taken. It is given back by who lent it.
type Memory interface{ Grow(bytes int64) error }

// Sources are what is counted, and what is charged for it.
type Sources struct {
	Store    Store
	Arrivals Arrivals
	Tags     Tags
	Memory   Memory
}

// Top counts series and returns the elements with most of them. All counts are exact. The error
// is that of the context, of s.Memory, or an *Excess.
func Top(ctx context.Context, q *Query, s Sources) (Answer, error) {
	c := &counter{Sources: s, Query: q, best: best{limit: q.Limit, byNew: q.ByNew, memory: s.Memory}}
	if err := c.count(ctx); err != nil {
		return Answer{}, err
	}
	if c.best.err != nil {
		return Answer{}, c.best.err
	}
	a := &c.answer
	a.By, a.List = q.By, c.best.elements()
	a.More = a.Distinct > len(a.List)
	a.Hours = max(1, float64(q.Now.UnixMilli()-a.Since)/float64(time.Hour.Milliseconds()))
	return *a, nil
}

// Excess is the error for more different prefixes than can be counted.
type Excess struct{ limit int }

// Error says what to ask instead.
func (e *Excess) Error() string {
	return fmt.Sprintf("there are more than %d different prefixes to count: ask for those of a "+
		"bucket, for a longer prefix, or for a smaller depth", e.limit)
}

// counter is a count under way.
type counter struct {
	*Query
	Sources
	best   best
	answer Answer
}

func (c *counter) count(ctx context.Context) error {
	switch c.By {
	case Names, Values:
		return c.countTags(ctx)
	case Buckets:
		return c.countBuckets(ctx)
	default:
		return c.countPrefixes(ctx)
	}
}

func (c *counter) countTags(ctx context.Context) (err error) {
	// Tags know their hours themselves, and beyond a start.
	c.answer.Since = c.Now.Truncate(time.Hour).Add(-time.Hour).UnixMilli()
	scope := tags.Scope{Collection: c.Collection, Now: uint64(c.Now.UnixNano())}
	var all tags.Count
	if c.By == Names {
		all, err = c.Tags.EachName(ctx, scope, func(n tags.TagName, values int, of tags.Count) {
			c.answer.Distinct++
			c.best.add(of.Series, of.New, n.Name, n.Namespace, func() Element {
				return Element{Text: n.Text(), Values: values}
			})
		})
	} else {
		all, err = c.Tags.EachValue(ctx, scope, c.Name,
			func(n tags.TagName, value []byte, of tags.Count) {
				c.answer.Distinct++
				c.best.add(of.Series, of.New, value, n.Name, func() Element {
					return Element{Text: metric.Escape(string(value)), Name: n.Text()}
				})
			})
	}
	c.answer.Series, c.answer.New = all.Series, all.New
	return err
}

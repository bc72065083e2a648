package taglist

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dalmatiner/internal/api/tagline"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/cardinality"
	"dalmatiner/internal/tags"
)

const (
	topByDefault = 20
	mostDepth    = 255 // parts: whatever is deeper has its own end before
)

// ofBy are the parameters that belong to one way of counting, or to two.
var ofBy = map[string][]cardinality.By{
	"collection": {cardinality.Names, cardinality.Values},
	"name":       {cardinality.Values},
	"bucket":     {cardinality.Prefixes},
	"prefix":     {cardinality.Prefixes},
	"depth":      {cardinality.Prefixes},
}

// Store has buckets and series.
type Store interface {
	cardinality.Store
	BucketByName(name string) (buckets.Info, error)
}

// Top asks for the elements with most series. The error wraps buckets.ErrUnknown where bucket= is
// that of none.
func Top(params url.Values, s Store, a cardinality.Arrivals) (*Request, error) {
	asked, err := readTop(params)
	if err != nil {
		return nil, err
	}
	if escaped := params.Get("bucket"); escaped != "" {
		name, err := metric.Unescape(escaped)
		if err != nil {
			return nil, fmt.Errorf("bucket=%.200q: %w", escaped, err)
		}
		b, err := s.BucketByName(name)
		if err != nil {
			return nil, err
		}
		asked.Bucket = &b
	}
	var top cardinality.Answer
	var tooMany *cardinality.Excess
	q := &Request{answer: func(tags.List) (any, error) {
		if tooMany != nil {
			return nil, tooMany
		}
		return top, nil
	}}
	q.of = func(x *tags.Index, ctx context.Context, l *tags.Listing) (_ tags.List, err error) {
		top, err = cardinality.Top(ctx, asked, cardinality.Sources{
			Store:    s,
			Arrivals: a,
			Tags:     x,
			Memory:   l.Memory,
		})
		if errors.As(err, &tooMany) {
			err = nil
		}
		return tags.List{}, err
	}
	return q, nil
}

func readTop(params url.Values) (*cardinality.Query, error) {
	q := &cardinality.Query{
		By:    cardinality.By(params.Get("by")),
		Limit: topByDefault,
		Depth: 1,
		Now:   time.Now(),
	}
	switch q.By {
	case cardinality.Names, cardinality.Values, cardinality.Buckets, cardinality.Prefixes:
	case "":
		return nil, errors.New("by= is missing: what to count series by is names, values, buckets or " +
			"prefixes")
	default:
		return nil, fmt.Errorf("by=%.100s: it is names, values, buckets or prefixes", q.By)
	}
	for name, by := range ofBy {
		if params.Get(name) != "" && !slices.Contains(by, q.By) {
			return nil, fmt.Errorf("%s= belongs to by=%s, not to by=%s", name, joined(by), q.By)
		}
	}
	var err error
	switch params.Get("sort") {
	case "", "series":
	case "new":
		q.ByNew = true
	default:
		return nil, fmt.Errorf("sort=%.100s: it is series, or new for those that came last",
			params.Get("sort"))
	}
	if q.Limit, err = number(params, "limit", "the most elements to list", q.Limit,
		cardinality.MaxLimit); err != nil {
		return nil, err
	}
	if q.Depth, err = number(params, "depth", "how many parts to look deeper", q.Depth,
		mostDepth); err != nil {
		return nil, err
	}
	if text := params.Get("collection"); text != "" {
		name, err := metric.Unescape(text)
		if err != nil {
			return nil, fmt.Errorf("collection=%.200q: %w", text, err)
		}
		q.Collection = []byte(name)
	}
	if text := params.Get("name"); text != "" {
		name, err := tagline.ParseName(text)
		if err != nil {
			return nil, err
		}
		q.Name = &name
	}
	return q, readPrefix(params.Get("prefix"), q)
}

func readPrefix(text string, q *cardinality.Query) (err error) {
	if text == "" {
		return nil
	}
	if q.Prefix, err = metric.ParseText(text); err != nil {
		return fmt.Errorf("prefix=%.200q: %w", text, err)
	}
	if _, ok := metric.Parts(q.Prefix); !ok {
		return fmt.Errorf("prefix=%.200q: it is a list of parts, such as web.eu", text)
	}
	return nil
}

func joined(by []cardinality.By) string {
	var names []string
	for _, b := range by {
		names = append(names, string(b))
	}
	return strings.Join(names, " and by=")
}

// number reads a parameter that is a number from 1 up.
func number(params url.Values, name, what string, byDefault, most int) (int, error) {
	text := params.Get(name)
	if text == "" {
		return byDefault, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%s=%.100s: it is %s, from 1 to %d", name, text, what, most)
	}
	return n, nil
}

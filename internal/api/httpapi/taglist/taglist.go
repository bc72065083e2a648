// Package taglist reads requests for lists of tags and makes the answers.
package taglist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"dalmatiner/internal/api/tagline"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/finder"
	"dalmatiner/internal/tags"
)

const (
	byDefault = 1000    // elements, where a request does not say
	most      = 100_000 // elements, whatever a request says
)

// ErrNone is returned for a path that names no list.
var ErrNone = errors.New("no list of tags")

// Page is the part of a list that is wanted, where the answer cannot say that there is more.
type Page struct {
	Limit int     // elements; 0 for all, and an error where they are too many
	After *string // text behind which the part begins; nil for the first
}

// PageOf reads limit= and after=, of which decode returns the text.
func PageOf(params url.Values, decode func(string) (string, error)) (p Page, err error) {
	if p.Limit, err = limitOf(params, 0); err != nil {
		return p, err
	}
	if params.Has("after") {
		text, err := decode(params.Get("after"))
		if err != nil {
			return p, fmt.Errorf("after=%.200q: %w", params.Get("after"), err)
		}
		p.After = &text
	}
	return p, nil
}

// Of returns the elements that a page holds at most.
func (p Page) Of(all int) int { return cmp.Or(p.Limit, all) }

// ErrLong returns what to do about a list that is too long to be answered at once.
func ErrLong(elements, bytes int) error {
	return fmt.Errorf("the list has more than %d elements or %d bytes: ask for a part of it with "+
		"limit=, and for the next one at the address in the header Link", elements, bytes)
}

// Request is a list that is asked for.
type Request struct {
	page    Page
	listing tags.Listing
	of      func(*tags.Index, context.Context, *tags.Listing) (tags.List, error)
	answer  func(tags.List) (any, error)
}

// Run makes the list, and charges m for it as it grows. What is new is so by the clock of the
// machine.
func (q *Request) Run(ctx context.Context, x *tags.Index, m tags.Memory) (tags.List, error) {
	q.listing.Now, q.listing.Memory = uint64(time.Now().UnixNano()), m
	return q.of(x, ctx, &q.listing)
}

// Answer returns a list as JSON shows it, its texts in the escape of package metric. The error is
// for who asked: the list is too long.
func (q *Request) Answer(list tags.List) (any, error) { return q.answer(list) }

// Next returns the text behind which the next part of a list begins, if the answer cannot say so
// and there is one.
func (q *Request) Next(list tags.List) (after string, ok bool) {
	if q.page.Limit == 0 || !list.More || len(list.Elements) == 0 {
		return "", false
	}
	return metric.Escape(list.Elements[len(list.Elements)-1].Text), true
}

// paged returns a request for a part of a list of texts.
func paged(p Page, l tags.Listing, of func(*tags.Index, context.Context, *tags.Listing) (tags.List,
	error)) *Request {
	l.Limit, l.After = p.Of(most), p.After
	q := &Request{page: p, listing: l, of: of}
	q.answer = q.texts
	return q
}

// Collections asks for the names of all collections that have a series.
func Collections(p Page) *Request {
	return paged(p, tags.Listing{},
		func(x *tags.Index, ctx context.Context, q *tags.Listing) (tags.List, error) {
			return x.Collections(ctx, *q)
		})
}

// Metrics asks for the metrics of a collection that begin with some parts: for their keys, or with
// parts above 0 for their first parts. The elements of the list are keys.
func Metrics(p Page, collection, prefix []byte, parts int) *Request {
	return paged(p, tags.Listing{Collection: collection, Prefix: string(prefix)},
		func(x *tags.Index, ctx context.Context, q *tags.Listing) (tags.List, error) {
			return x.Metrics(ctx, q, parts)
		})
}

// Collection asks for what the original's index had of a collection, or with a key of a metric
// of it: path is namespaces; namespaces, NAMESPACE, tags; or the same and TAG, values. The name of
// a tag may have been cut at its slashes.
func Collection(p Page, name, key []byte, path []string) (*Request, error) {
	q := paged(p, tags.Listing{Collection: name, Metric: key}, (*tags.Index).Namespaces)
	last := len(path) - 1
	switch {
	case len(path) == 1 || len(path) == 2 && path[1] == "":
	case len(path) == 3 && path[2] == "tags":
		q.listing.Namespace = []byte(path[1])
		q.of = (*tags.Index).Names
	case len(path) >= 5 && path[2] == "tags" && path[last] == "values":
		q.of = valuesOf(tags.TagName{Namespace: []byte(path[1]),
			Name: []byte(strings.Join(path[3:last], "/"))})
	default:
		return nil, ErrNone
	}
	return q, nil
}

func valuesOf(n tags.TagName) func(*tags.Index, context.Context, *tags.Listing) (tags.List, error) {
	return func(x *tags.Index, ctx context.Context, q *tags.Listing) (tags.List, error) {
		return x.Values(ctx, q, n)
	}
}

// texts is the answer of the original, which cannot say that there are more.
func (q *Request) texts(list tags.List) (any, error) {
	if list.More && q.page.Limit == 0 {
		return nil, ErrLong(most, tags.MaxListBytes/2)
	}
	out := []string{}
	for _, e := range list.Elements {
		out = append(out, metric.Escape(e.Text))
	}
	return out, nil
}

// Names asks for names of tags: of the namespace, if one is given, else of all.
func Names(params url.Values) (*Request, error) {
	q, err := counted(params, (*tags.Index).Names)
	if err != nil || params.Has("namespace") {
		return q, err
	}
	q.listing.Prefix = params.Get("prefix") // of texts that have the escapes
	q.answer = func(list tags.List) (any, error) {
		return answer(list, func(text string) string { return text })
	}
	return q, nil
}

// TaggedCollections asks for the collections of series that have tags, with their series.
func TaggedCollections(params url.Values) (*Request, error) {
	return counted(params, func(x *tags.Index, ctx context.Context,
		q *tags.Listing) (tags.List, error) {
		return x.Collections(ctx, *q)
	})
}

// Values asks for the values of the tag that name= names.
func Values(params url.Values) (*Request, error) {
	if params.Get("name") == "" {
		return nil, errors.New("name= is missing: the name of a tag, such as host or ns:host")
	}
	name, err := tagline.ParseName(params.Get("name"))
	if err != nil {
		return nil, err
	}
	return counted(params, valuesOf(name))
}

// counted reads what lists with counts take.
func counted(params url.Values, of func(*tags.Index, context.Context, *tags.Listing) (tags.List,
	error)) (*Request, error) {
	q := &Request{of: of, answer: func(list tags.List) (any, error) {
		return answer(list, metric.Escape)
	}}
	var err error
	if q.listing.Limit, err = limitOf(params, byDefault); err != nil {
		return nil, err
	}
	read := func(name string) string {
		text, bad := metric.Unescape(params.Get(name))
		if bad != nil && (name != "prefix" || params.Has("namespace") || params.Has("name")) {
			err = fmt.Errorf("%s=%.200q: %w", name, params.Get(name), bad)
		}
		return text
	}
	if q.listing.Prefix = read("prefix"); params.Has("namespace") {
		q.listing.Namespace = []byte(read("namespace"))
	}
	if params.Get("collection") != "" {
		q.listing.Collection = []byte(read("collection"))
	}
	if text := params.Get("metric"); text != "" && err == nil {
		if q.listing.Metric, err = metric.ParseText(text); err != nil {
			return nil, fmt.Errorf("metric=%.200q: %w", text, err)
		}
		if q.listing.Collection == nil {
			return nil, errors.New("metric= is that of a collection: name it with collection=")
		}
	}
	if text := params.Get("where"); text != "" && err == nil {
		where, err := dql.ParseTagFilter(text)
		if err != nil {
			return nil, fmt.Errorf("where=%.200q: %w", text, err)
		}
		if q.listing.Where = finder.CondOf(where); q.listing.Collection == nil {
			return nil, errors.New("where= is about the series of a collection: name it with collection=")
		}
	}
	return q, err
}

// limitOf reads limit=.
func limitOf(params url.Values, byDefault int) (int, error) {
	return number(params, "limit", "the most elements to list", byDefault, most)
}

type list struct {
	List   []element `json:"list"`
	More   bool      `json:"more"`
	Series int       `json:"series"`
}

type element struct {
	Text   string `json:"text"`
	Series int    `json:"series"`
	New    int    `json:"new"`
}

func answer(from tags.List, escape func(string) string) (any, error) {
	out := list{List: []element{}, More: from.More, Series: from.Series}
	for _, e := range from.Elements {
		out.List = append(out.List, element{escape(e.Text), e.Series, e.New})
	}
	return out, nil
}

// Package taglist reads requests for lists of tags and makes the answers.
package taglist

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"dalmatiner/internal/metric"
	"dalmatiner/internal/tagline"
	"dalmatiner/internal/tags"
)

const (
	byDefault = 1000    // elements, where a request does not say
	most      = 100_000 // elements, whatever a request says
	cost      = 256     // bytes of an element beside its text
)

// ErrNone is returned for a path that names no list.
var ErrNone = errors.New("no list of tags")

// Request is a list that is asked for.
type Request struct {
	listing tags.Listing
	of      func(*tags.Index, context.Context, *tags.Listing) (tags.List, error)
	answer  func(tags.List) (any, error)
}

// Bytes returns an upper bound of the memory of the list.
func (q *Request) Bytes() int64 { return int64(q.listing.Limit)*cost + tags.MaxListBytes }

// Run makes the list. What is new is so by the clock of the machine.
func (q *Request) Run(ctx context.Context, x *tags.Index) (tags.List, error) {
	q.listing.Now = uint64(time.Now().UnixNano())
	return q.of(x, ctx, &q.listing)
}

// Answer returns a list as JSON shows it, its texts in the escape of package metric. The error is
// for who asked: the list is too long.
func (q *Request) Answer(list tags.List) (any, error) { return q.answer(list) }

// Collections asks for the names of all collections that have a series.
func Collections() *Request {
	return &Request{tags.Listing{Limit: most}, func(x *tags.Index, ctx context.Context, q *tags.Listing) (tags.List, error) {
		return x.Collections(ctx, *q)
	}, texts}
}

// Collection asks for what the original's index had of a collection, or with a key of a metric
// of it: path is namespaces; namespaces, NAMESPACE, tags; or the same and TAG, values.
func Collection(name, key []byte, path []string) (*Request, error) {
	q := &Request{tags.Listing{Collection: name, Metric: key, Limit: most}, (*tags.Index).Namespaces, texts}
	switch {
	case len(path) == 1 || len(path) == 2 && path[1] == "":
	case len(path) == 3 && path[2] == "tags":
		q.listing.Namespace = []byte(path[1])
		q.of = (*tags.Index).Names
	case len(path) == 5 && path[2] == "tags" && path[4] == "values":
		q.of = valuesOf(tags.TagName{Namespace: []byte(path[1]), Name: []byte(path[3])})
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
func texts(list tags.List) (any, error) {
	if list.More {
		return nil, fmt.Errorf("the list has more than %d elements or %d bytes: ask /tags/names or /tags/values with prefix and limit", most, tags.MaxListBytes/2)
	}
	out := []string{}
	for _, e := range list.Elements {
		out = append(out, metric.Escaped(e.Text))
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
	q.answer = func(list tags.List) (any, error) { return answer(list, func(text string) string { return text }) }
	return q, nil
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
func counted(params url.Values, of func(*tags.Index, context.Context, *tags.Listing) (tags.List, error)) (*Request, error) {
	q := &Request{tags.Listing{Limit: byDefault}, of, func(list tags.List) (any, error) { return answer(list, metric.Escaped) }}
	if text := params.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return nil, fmt.Errorf("limit=%s: it is the most elements to list, from 1 to %d", text, most)
		}
		q.listing.Limit = n
	}
	var err error
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
	return q, err
}

type list struct {
	List []element `json:"list"`
	More bool      `json:"more"`
}

type element struct {
	Text   string `json:"text"`
	Series int    `json:"series"`
	New    int    `json:"new"`
}

func answer(from tags.List, escape func(string) string) (any, error) {
	out := list{List: []element{}, More: from.More}
	for _, e := range from.Elements {
		out.List = append(out.List, element{escape(e.Text), e.Series, e.New})
	}
	return out, nil
}

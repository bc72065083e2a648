package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"dalmatiner/internal/httpapi/taglist"
	"dalmatiner/internal/metric"
)

// tagRoutes lists tags. DESIGN.md says what bounds the lists.
type tagRoutes struct{ *api }

// write answers with a list. add, unless it is nil, changes the answer.
func (a tagRoutes) write(w http.ResponseWriter, r *http.Request, q *taglist.Request, err error, add func(any) any) error {
	if err != nil {
		return badRequest("%v", err)
	}
	asked, err := negotiate(r, formJSON, formMsgpack)
	if err != nil {
		return err
	}
	lease := a.Memory.Lease()
	defer lease.Release()
	clientOf(w).lease = lease
	if err := lease.Grow(q.Bytes()); err != nil {
		return err
	}
	written, err := a.lists.take(r.Context())
	if err != nil {
		return err
	}
	list, err := q.Run(r.Context(), a.Tags.Index())
	written()
	if err != nil {
		return err
	}
	answer, err := q.Answer(list)
	if err != nil {
		return badRequest("%v", err)
	}
	if add != nil {
		answer = add(answer)
	}
	return writeValue(w, asked, answer)
}

func (a tagRoutes) names(w http.ResponseWriter, r *http.Request) error {
	q, err := taglist.Names(r.URL.Query())
	return a.write(w, r, q, err, nil)
}

func (a tagRoutes) values(w http.ResponseWriter, r *http.Request) error {
	q, err := taglist.Values(r.URL.Query())
	return a.write(w, r, q, err, nil)
}

// collections lists buckets and whatever tags made collections of.
func (a tagRoutes) collections(w http.ResponseWriter, r *http.Request) error {
	return a.write(w, r, taglist.Collections(), nil, func(answer any) any {
		names, _ := answer.([]string)
		for _, b := range a.Store.Buckets() {
			names = append(names, metric.Escaped(b.Name))
		}
		slices.Sort(names)
		return slices.Compact(names)
	})
}

func (a tagRoutes) namespaces(w http.ResponseWriter, r *http.Request) error {
	return a.ofCollection(w, r, "", strings.Split(behind(r, 1), "/")[1:])
}

// ofCollection lists what the original's index had of a collection, or of a metric of it. path
// is that from namespaces on.
func (a tagRoutes) ofCollection(w http.ResponseWriter, r *http.Request, metricText string, path []string) error {
	var key []byte
	collectionText, _, _ := strings.Cut(behind(r, 1), "/")
	name, err := elementName(collectionText)
	if err == nil && !a.Tags.Index().Known([]byte(name)) {
		_, err = a.bucketAt(collectionText)
	}
	if err == nil && metricText != "" {
		key, _, err = decodeKey(metricText)
	}
	for i := 0; i < len(path) && err == nil; i++ {
		path[i], err = elementName(path[i])
	}
	if err != nil {
		return err
	}
	q, err := taglist.Collection([]byte(name), key, path)
	if errors.Is(err, taglist.ErrNone) {
		return nothing(w, r)
	}
	return a.write(w, r, q, err, nil)
}

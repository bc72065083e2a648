package httpapi

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"dalmatiner/internal/api/httpapi/taglist"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
)

// writeTagList answers with a list.
func (a *api) writeTagList(w http.ResponseWriter, r *http.Request, q *taglist.Request,
	err error) error {
	if err != nil {
		return badRequest("%v", err)
	}
	asked, err := negotiate(r, formJSON, formMsgpack)
	if err != nil {
		return err
	}
	lease := a.Memory.Lease()
	defer lease.Release()
	list, err := a.runTagList(w, r, q, lease)
	if err != nil {
		return err
	}
	answer, err := q.Answer(list)
	if err != nil {
		return badRequest("%v", err)
	}
	if after, ok := q.Next(list); ok {
		linkNext(w, r, after)
	}
	return writeValue(w, asked, answer)
}

// runTagList makes a list. Its memory is charged to the lease.
func (a *api) runTagList(w http.ResponseWriter, r *http.Request, q *taglist.Request,
	lease *memory.Lease) (list tags.List, err error) {
	clientOf(w).lease = lease
	written, err := a.lists.take(r.Context())
	if err != nil {
		return list, err
	}
	defer written()
	return q.Run(r.Context(), a.Tags.Index(), lease)
}

// linkNext says where the next part of a list is.
func linkNext(w http.ResponseWriter, r *http.Request, after string) {
	params := r.URL.Query()
	params.Set("after", after)
	w.Header().Set("Link", "<?"+params.Encode()+`>; rel="next"`)
	w.Header().Set("Access-Control-Expose-Headers", "Link")
}

// pageOf returns the part of a list of texts that is asked for.
func pageOf(r *http.Request) (taglist.Page, error) {
	p, err := taglist.PageOf(r.URL.Query(), metric.Unescape)
	if err != nil {
		return p, badRequest("%v", err)
	}
	return p, nil
}

// counted lists what read asks for.
func (a *api) counted(read func(url.Values) (*taglist.Request, error)) func(http.ResponseWriter,
	*http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		q, err := read(r.URL.Query())
		return a.writeTagList(w, r, q, err)
	}
}

// top lists what has most series.
func (a *api) top(w http.ResponseWriter, r *http.Request) error {
	q, err := taglist.Top(r.URL.Query(), a.Store, a.Arrivals)
	if errors.Is(err, buckets.ErrUnknown) {
		_, err = namedBucket(a.Store, r.URL.Query().Get("bucket"))
		return err
	}
	return a.writeTagList(w, r, q, err)
}

// collectionCost is what a bucket takes in a list of collections beside its name.
const collectionCost = 64

// collections lists buckets and whatever tags made collections of.
func (a *api) collections(w http.ResponseWriter, r *http.Request) error {
	page, err := pageOf(r)
	if err != nil {
		return err
	}
	asked, err := negotiate(r, formJSON, formMsgpack)
	if err != nil {
		return err
	}
	lease := a.Memory.Lease()
	defer lease.Release()
	q := taglist.Collections(page)
	list, err := a.runTagList(w, r, q, lease)
	if err != nil {
		return err
	}
	names := taglist.NewFirst(page, sortedNames, heldBytes)
	for _, e := range list.Elements {
		names.Add([]byte(e.Text))
	}
	for _, b := range a.Store.Buckets() {
		// What is behind the last collection of the list may be behind others, too.
		if n := len(list.Elements); !list.More || n > 0 && b.Name < list.Elements[n-1].Text {
			if err := lease.Grow(collectionCost + 3*int64(len(b.Name))); err != nil { // in three forms
				return err
			}
			names.Add([]byte(b.Name))
		}
	}
	all, more := names.Sorted()
	if more = more || list.More; more && page.Limit == 0 {
		return badRequest("%v", taglist.ErrLong(sortedNames, heldBytes))
	}
	if more && len(all) > 0 {
		linkNext(w, r, metric.Escape(all[len(all)-1]))
	}
	for i, name := range all {
		all[i] = metric.Escape(name)
	}
	return writeValue(w, asked, all)
}

func (a *api) namespaces(w http.ResponseWriter, r *http.Request) error {
	return a.ofCollection(w, r, "", strings.Split(behind(r, 1), "/")[1:])
}

// ofCollection lists what the original's index had of a collection, or of a metric of it. path
// is that from namespaces on.
func (a *api) ofCollection(w http.ResponseWriter, r *http.Request, metricText string,
	path []string) error {
	var key []byte
	collectionText, _, _ := strings.Cut(behind(r, 1), "/")
	name, err := elementName(collectionText)
	if err == nil && !a.Tags.Index().HasCollection([]byte(name)) {
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
	page, err := pageOf(r)
	if err != nil {
		return err
	}
	q, err := taglist.Collection(page, []byte(name), key, path)
	if errors.Is(err, taglist.ErrNone) {
		return nothing(w, r)
	}
	return a.writeTagList(w, r, q, err)
}

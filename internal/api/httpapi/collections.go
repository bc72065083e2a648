package httpapi

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"dalmatiner/internal/api/httpapi/taglist"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
)

// metricList is a request for the metrics of a collection.
type metricList struct {
	name   string
	prefix []byte
	parts  int // of what is listed; 0 for whole metrics
	page   taglist.Page
}

// collectionMetrics lists the metrics of a collection: by the names that tags gave them, and those
// of the bucket of its name that have none there. They are whole ones, or with a prefix or a depth
// the distinct beginnings of that many parts below it.
func (a *api) collectionMetrics(w http.ResponseWriter, r *http.Request) error {
	nameText, _, _ := strings.Cut(behind(r, 1), "/")
	prefixText := behind(r, 3)
	if metricText, rest, ok := strings.Cut("/"+prefixText+"/", "/namespaces/"); ok {
		rest = strings.TrimSuffix("namespaces/"+rest, "/")
		return a.ofCollection(w, r, strings.TrimPrefix(metricText, "/"),
			strings.Split(rest, "/"))
	}
	l, err := metricListOf(r, nameText, prefixText)
	if err != nil {
		return err
	}
	lease := a.Memory.Lease()
	defer lease.Release()
	list, err := newNameList(w, r, appendKey, lease)
	if err != nil {
		return err
	}
	known := a.Tags.Index().HasCollection([]byte(l.name))
	b, err := a.bucketAt(nameText)
	switch {
	case errors.Is(err, buckets.ErrUnknown) && known:
		return a.listCollection(w, r, l, list, known, nil)
	case err != nil:
		return err
	case !known && l.parts == 0 && l.page == (taglist.Page{}):
		if list.written, err = a.lists.take(r.Context()); err != nil {
			return err
		}
		defer list.written()
		err = a.Store.Metrics(r.Context(), b, l.prefix, list.addKey)
		return a.finishList(list, b.Name, err)
	}
	return a.listCollection(w, r, l, list, known, &b)
}

// listCollection lists the metrics that tags put into a collection, where it is known to them, and
// those of a bucket of its name that they do not; nil: there is none.
func (a *api) listCollection(w http.ResponseWriter, r *http.Request, l metricList, list *nameList,
	known bool, b *buckets.Info) (err error) {
	first := taglist.NewFirst(l.page, sortedNames, heldBytes)
	var tagged tags.List
	if known {
		if tagged, err = a.runTagList(w, r,
			taglist.Metrics(l.page, []byte(l.name), l.prefix, l.parts), list.lease); err != nil {
			return err
		}
	}
	if tagged.More && l.page.Limit == 0 {
		return tooLong(tags.MaxListBytes / 2)
	}
	last := "" // what is behind it is left to the next part
	for _, e := range tagged.Elements {
		first.Add([]byte(e.Text))
		last = e.Text
	}
	if list.written, err = a.lists.take(r.Context()); err != nil {
		return err
	}
	defer list.written()
	if b != nil {
		member := tags.Members(a.Tags.Index(), []byte(l.name), b.ID)
		err = a.Store.Metrics(r.Context(), *b, l.prefix, func(key []byte) bool {
			if l.parts > 0 && len(key) == len(l.prefix) || member(key) {
				return true
			}
			if of := l.of(key); !tagged.More || string(of) <= last {
				first.Add(of)
			}
			return list.charge(first.Held())
		})
	}
	if err = cmp.Or(list.err, err); err != nil {
		return err
	}
	keys, more := first.Sorted()
	if more = more || tagged.More; more && l.page.Limit == 0 {
		return tooLong(heldBytes)
	}
	if more && len(keys) > 0 {
		linkNext(w, r, base64.URLEncoding.EncodeToString([]byte(keys[len(keys)-1])))
	}
	list.names = keys
	return list.finish()
}

// tooLong is the error of a list that can only be asked for in parts; it has so many bytes at most.
func tooLong(most int) error {
	return badRequest("%v, or ask with a longer prefix or a smaller depth",
		taglist.ErrLong(sortedNames, most))
}

func metricListOf(r *http.Request, nameText, prefixText string) (l metricList, err error) {
	if l.name, err = elementName(nameText); err != nil {
		return l, err
	}
	parts := 0
	if l.prefix, parts, err = decodeKey(prefixText); err != nil {
		return l, err
	}
	depth, err := taglist.Depth(r.URL.Query())
	if err != nil {
		return l, badRequest("%v", err)
	}
	if depth > 0 || len(l.prefix) > 0 {
		l.parts = parts + max(1, depth)
	}
	l.page, err = taglist.PageOf(r.URL.Query(), func(text string) (string, error) {
		key, err := taglist.Decode64(text)
		return string(key), err
	})
	if err != nil {
		return l, badRequest("%v", err)
	}
	return l, nil
}

// of returns what is listed of a metric.
func (l *metricList) of(key []byte) []byte {
	if l.parts == 0 {
		return key
	}
	return metric.Prefix(key, l.parts)
}

// decodeKey reads a metric as /collections prints it: the key in base64, which
// may be the form for URLs, with or without padding. It must be a list of
// parts, whose number is returned.
func decodeKey(element string) (key []byte, parts int, err error) {
	text, err := unescapeElement(element)
	if err != nil {
		return nil, 0, err
	}
	if key, err = taglist.Decode64(text); err != nil {
		return nil, 0, badRequest("%q in the path is no metric in base64: %v", element, err)
	}
	list, ok := metric.Parts(key)
	if !ok || len(key) > metric.MaxKey {
		return nil, 0, badRequest("%q in the path is no list of parts of up to %d bytes", element,
			metric.MaxKey)
	}
	return key, len(list), nil
}

// appendKey appends {"key","parts"} of a key to dst.
func appendKey(dst []byte, asked form, key string) []byte {
	texts := partTexts([]byte(key))
	encoded := base64.StdEncoding.EncodeToString([]byte(key))
	if asked == formMsgpack {
		dst = mpString(mpHead(dst, mpMap32, 2), "key")
		return mpStrings(mpString(mpString(dst, encoded), "parts"), texts)
	}
	dst = append(append(append(dst, `{"key":"`...), encoded...), `","parts":`...)
	return append(appendStrings(dst, texts), '}')
}

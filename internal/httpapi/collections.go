package httpapi

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"dalmatiner/internal/metric"
)

// notInThisVersion answers for what the original has.
func notInThisVersion(what string) func(http.ResponseWriter, *http.Request) error {
	return func(http.ResponseWriter, *http.Request) error {
		return &statusError{http.StatusNotImplemented, reasonUnsupported, what + " are not in this version"}
	}
}

// collectionMetrics lists the metrics of a collection: whole ones, or with a
// prefix or a depth the distinct beginnings of that many parts below it.
func (a *api) collectionMetrics(w http.ResponseWriter, r *http.Request) error {
	bucketText, _, _ := strings.Cut(behind(r, 1), "/")
	prefixText := behind(r, 3)
	if metricText, rest, ok := strings.Cut("/"+prefixText+"/", "/namespaces/"); ok {
		rest = strings.TrimSuffix("namespaces/"+rest, "/")
		return tagRoutes{a}.ofCollection(w, r, strings.TrimPrefix(metricText, "/"), strings.Split(rest, "/"))
	}
	b, err := a.bucketAt(bucketText)
	if err != nil {
		return err
	}
	prefix, parts, err := decodeKey(prefixText)
	if err != nil {
		return err
	}
	depth := 1
	text := param(r, "depth")
	if text != "" {
		if depth, err = strconv.Atoi(text); err != nil || depth < 1 || depth > metric.MaxKey {
			return badRequest("depth=%s: it is a number of parts, from 1 to %d", text, metric.MaxKey)
		}
	}
	lease := a.Memory.Lease()
	defer lease.Release()
	list, err := newNameList(w, r, appendKey, lease)
	if err != nil {
		return err
	}
	add := list.addKey
	if text != "" || len(prefix) > 0 {
		add = list.distinct(len(prefix), parts+depth)
	}
	if list.written, err = a.lists.take(r.Context()); err != nil {
		return err
	}
	defer list.written()
	err = a.Store.Metrics(r.Context(), b, prefix, add)
	return a.finishList(list, b.Name, err)
}

// decodeKey reads a metric as /collections prints it: the key in base64, which
// may be the form for URLs, with or without padding. It must be a list of
// parts, whose number is returned.
func decodeKey(element string) (key []byte, parts int, err error) {
	text, err := unescapeElement(element)
	if err != nil {
		return nil, 0, err
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	key, err = base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, 0, badRequest("%q in the path is no metric in base64: %v", element, err)
	}
	list, ok := metric.Parts(key)
	if !ok || len(key) > metric.MaxKey {
		return nil, 0, badRequest("%q in the path is no list of parts of up to %d bytes", element, metric.MaxKey)
	}
	return key, len(list), nil
}

// distinct returns a function that adds the first parts of keys, each once.
// Keys that end with the prefix have nothing below it.
func (l *nameList) distinct(prefix, parts int) func(key []byte) bool {
	known := map[string]bool{}
	return func(key []byte) bool {
		if len(key) == prefix {
			return true
		}
		end := prefixLength(key, parts)
		if known[string(key[:end])] {
			return true
		}
		if l.full() {
			l.err = badRequest("there are more than %d different metrics to list, or %d bytes of them: ask with a longer prefix or a smaller depth", sortedNames, heldBytes)
			return false
		}
		name := string(key[:end])
		known[name] = true
		l.hold(name)
		return l.err == nil
	}
}

// prefixLength returns the bytes of the first parts of a key; a key that is no
// list of parts counts as one.
func prefixLength(key []byte, parts int) int {
	n := 0
	for ; parts > 0 && n < len(key); parts-- {
		n += 1 + int(key[n])
	}
	if n > len(key) {
		return len(key)
	}
	return n
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

package httpapi

import (
	"bufio"
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dalmatiner/internal/admin"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/store"
)

// sortedNames is the largest list of metrics that is put in order: longer ones
// go out as the store gives them, so that no list has to fit in memory.
const sortedNames = 100_000

// message returns a bucket as the API shows it.
func message(b store.BucketInfo) admin.Bucket {
	return admin.Bucket{Name: metric.Escaped(b.Name), Resolution: b.Resolution, PPF: b.PPF, Grace: b.Grace, HPTS: b.HPTS, TTL: admin.TTL(b.TTL)}
}

func (a *api) buckets(w http.ResponseWriter, r *http.Request) error {
	if _, err := negotiate(r, formJSON); err != nil {
		return err
	}
	list := []admin.Bucket{}
	for _, b := range a.Store.Buckets() {
		list = append(list, message(b))
	}
	return writeJSON(w, list)
}

// listMetrics lists the metrics below a bucket and parts. rest is what follows
// /buckets/ in the escaped path: every element is percent-decoded, then read
// in the escape of package metric, in which the list prints it. A slash at the
// end is no part.
func (a *api) listMetrics(w http.ResponseWriter, r *http.Request, rest string) error {
	if _, err := negotiate(r, formJSON); err != nil {
		return err
	}
	bucketText, partsText, _ := strings.Cut(strings.TrimSuffix(rest, "/"), "/")
	name, err := decodeName(bucketText)
	if err != nil {
		return err
	}
	b, err := a.Store.BucketByName(name)
	if err != nil {
		return err
	}
	prefix, err := decodePrefix(partsText)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", typeJSON)
	list := &nameList{w: bufio.NewWriterSize(w, replyBuffer)}
	err = a.Store.Metrics(r.Context(), b, prefix, list.add)
	if err == nil {
		err = list.finish()
	}
	if err != nil && list.streaming {
		// The status is out: only a broken connection says that the list is not whole.
		a.Logger.Warn("list of metrics cut short", "bucket", metric.Escaped(name), "err", err)
		panic(http.ErrAbortHandler)
	}
	return err
}

func decodeName(element string) (string, error) {
	text, err := url.PathUnescape(element)
	if err != nil {
		return "", badRequest("%q in the path: %v", element, err)
	}
	name, err := metric.Unescape(text)
	if err != nil {
		return "", badRequest("%q in the path: %v", element, err)
	}
	return name, nil
}

func decodePrefix(elements string) ([]byte, error) {
	if elements == "" {
		return nil, nil
	}
	var parts []string
	for element := range strings.SplitSeq(elements, "/") {
		text, err := url.PathUnescape(element)
		if err != nil {
			return nil, badRequest("%q in the path: %v", element, err)
		}
		parts = append(parts, text)
	}
	key, err := metric.KeyFromQuoted(parts...)
	if err != nil {
		return nil, badRequest("metric in the path: %v", err)
	}
	return key, nil
}

// nameList writes a JSON list of metric names, in order while they are few.
type nameList struct {
	w         *bufio.Writer
	names     []string
	streaming bool // the first names are out
	err       error
	scratch   []byte
}

func (l *nameList) add(key []byte) bool {
	l.names = append(l.names, metric.Text(key))
	if l.streaming || len(l.names) == sortedNames {
		l.drain()
	}
	return l.err == nil
}

// drain writes the names that are held.
func (l *nameList) drain() {
	for _, name := range l.names {
		l.scratch = append(l.scratch[:0], ',')
		if !l.streaming {
			l.streaming = true
			l.scratch[0] = '['
		}
		l.scratch = appendString(l.scratch, name)
		if _, err := l.w.Write(l.scratch); err != nil {
			l.err = cmp.Or(l.err, err)
		}
	}
	l.names = l.names[:0]
}

// finish puts held names in order, writes them and ends the list.
func (l *nameList) finish() error {
	slices.Sort(l.names)
	l.drain()
	end := "]\n"
	if !l.streaming {
		end = "[]\n"
	}
	_, err := l.w.WriteString(end)
	l.streaming = true
	return errors.Join(l.err, err, l.w.Flush())
}

package httpapi

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/api/httpapi/taglist"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// sortedNames is the largest list of metrics that is put in order: longer ones
// go out as the store gives them, so that no list has to fit in memory.
const sortedNames = 100_000

// heldBytes bounds the memory of the names that are put in order, which may be
// long.
const heldBytes = 32 << 20

// message returns a bucket as the API shows it.
func message(b buckets.Info) admin.Bucket {
	return admin.Bucket{
		Name:       metric.Escape(b.Name),
		Resolution: b.Resolution,
		PPF:        b.PPF,
		Grace:      b.Grace,
		HPTS:       b.HPTS,
		TTL:        admin.TTL(b.TTL),
		Copies:     b.Copies,
	}
}

func (a *api) buckets(w http.ResponseWriter, r *http.Request) error {
	asked, err := negotiate(r, formJSON, formMsgpack)
	if err != nil {
		return err
	}
	list := []admin.Bucket{}
	for _, b := range a.Store.Buckets() {
		list = append(list, message(b))
	}
	return writeValue(w, asked, list)
}

// listMetrics lists the metrics below a bucket and parts: every element of the
// path behind /buckets/ is percent-decoded, then read in the escape of package
// metric, in which the list prints it. A slash at the end is no part.
func (a *api) listMetrics(w http.ResponseWriter, r *http.Request) error {
	bucketText, partsText, _ := strings.Cut(strings.TrimSuffix(behind(r, 1), "/"), "/")
	b, err := a.bucketAt(bucketText)
	if err != nil {
		return err
	}
	prefix, err := prefixOf(r, partsText)
	if err != nil {
		return err
	}
	lease := a.Memory.Lease()
	defer lease.Release()
	list, err := newNameList(w, r, appendName, lease)
	if err != nil {
		return err
	}
	wanted, err := taglist.FilterOf(r.URL.Query())
	if err != nil {
		return badRequest("%v", err)
	}
	if list.written, err = a.lists.take(r.Context()); err != nil {
		return err
	}
	defer list.written()
	if wanted.Depth > 0 {
		return a.listBeginnings(r.Context(), list, b, prefix, wanted)
	}
	taken := 0
	err = a.Store.Metrics(r.Context(), b, prefix, func(key []byte) bool {
		name := metric.Text(key)
		if !wanted.Takes(name) {
			return true
		}
		taken++
		return list.add(name) && taken != wanted.Limit
	})
	return a.finishList(list, b.Name, err)
}

// listBeginnings lists what metrics begin with, a prefix and up to a depth of parts more, each
// once.
func (a *api) listBeginnings(ctx context.Context, list *nameList, b buckets.Info, prefix []byte,
	wanted taglist.Filter) error {
	parts, _ := metric.Parts(prefix)
	first := taglist.NewFirst(taglist.Page{Limit: wanted.Limit}, sortedNames, heldBytes)
	var last []byte // neighbours often begin alike
	err := a.Store.Metrics(ctx, b, prefix, func(key []byte) bool {
		of := metric.Prefix(key, len(parts)+wanted.Depth)
		if len(of) == len(prefix) || bytes.Equal(of, last) {
			return true
		}
		last = append(last[:0], of...)
		if name := metric.AppendText(nil, of); wanted.Takes(string(name)) {
			first.Add(name)
		}
		return list.charge(first.Held())
	})
	if err = cmp.Or(list.err, err); err != nil {
		return err
	}
	var more bool
	if list.names, more = first.Sorted(); more && wanted.Limit == 0 {
		return tooLong(heldBytes)
	}
	return list.finish()
}

// finishList ends a list of the metrics of a bucket; err is that of reading
// them.
func (a *api) finishList(list *nameList, bucket string, err error) error {
	if err = cmp.Or(list.err, err); err == nil {
		err = list.finish()
	}
	if err != nil && list.streaming {
		// The status is out: only a broken connection says that the list is not whole.
		a.log.Log(slog.LevelWarn, "list_cut", "list of metrics cut short", "bucket",
			metric.Escape(bucket), "err", err)
		panic(http.ErrAbortHandler)
	}
	return err
}

func appendName(dst []byte, asked form, name string) []byte {
	if asked == formMsgpack {
		return mpString(dst, name)
	}
	return appendString(dst, name)
}

// bucketAt returns the bucket that an element of the path names.
func (a *api) bucketAt(element string) (buckets.Info, error) {
	name, err := elementName(element)
	if err != nil {
		return buckets.Info{}, err
	}
	b, err := a.Store.BucketByName(name)
	return b, nearBuckets(a.Store, name, err)
}

// elementName returns the name that an element of the path is, percent-decoded and then read in
// the escape of package metric.
func elementName(element string) (string, error) {
	text, err := unescapeElement(element)
	if err != nil {
		return "", err
	}
	name, err := metric.Unescape(text)
	if err != nil {
		return "", badRequest("%q in the path: %v", element, err)
	}
	return name, nil
}

// unescapeElement undoes the percent-encoding of an element of the path.
func unescapeElement(element string) (string, error) {
	text, err := url.PathUnescape(element)
	if err != nil {
		return "", badRequest("%q in the path: %v", element, err)
	}
	return text, nil
}

// prefixOf returns the parts that listed metrics begin with: elements of the path, or prefix=. The
// parameter also takes parts that a path does not keep, such as an empty one.
func prefixOf(r *http.Request, elements string) ([]byte, error) {
	text := param(r, "prefix")
	if text == "" {
		return decodePrefix(elements)
	}
	if elements != "" {
		return nil, badRequest("give the parts that metrics begin with in the path or as prefix=, not " +
			"both")
	}
	key, err := metric.ParseText(text)
	if err != nil {
		return nil, badRequest("prefix=%.200s: %v", text, err)
	}
	return key, nil
}

func decodePrefix(elements string) ([]byte, error) {
	if elements == "" {
		return nil, nil
	}
	var parts []string
	for element := range strings.SplitSeq(elements, "/") {
		text, err := unescapeElement(element)
		if err != nil {
			return nil, err
		}
		parts = append(parts, text)
	}
	key, err := metric.KeyFromQuoted(parts...)
	if err != nil {
		return nil, badRequest("metric in the path: %v", err)
	}
	return key, nil
}

// nameList writes a list of metrics, in order while they are few. A list in
// msgpack begins with its length and is therefore never long.
type nameList struct {
	reply     http.ResponseWriter
	asked     form
	encode    func(dst []byte, asked form, name string) []byte
	w         *bufio.Writer
	names     []string
	held      int  // bytes of names
	streaming bool // the first names are out
	err       error
	scratch   []byte

	written func()        // gives its processor back, before the first byte goes out
	lease   *memory.Lease // of the names
	charged int           // bytes
}

// Names are charged for nameCost bytes beside their own, listStep at a time.
const (
	nameCost = 32
	listStep = 256 << 10
)

func newNameList(w http.ResponseWriter, r *http.Request, encode func([]byte, form, string) []byte,
	lease *memory.Lease) (*nameList, error) {
	asked, err := negotiate(r, formJSON, formMsgpack)
	clientOf(w).lease = lease
	return &nameList{
		lease:  lease,
		reply:  w,
		asked:  asked,
		encode: encode,
		w:      bufio.NewWriterSize(w, replyBuffer),
	}, err
}

func (l *nameList) addKey(key []byte) bool { return l.add(string(key)) }

// add adds a name and reports whether to go on.
func (l *nameList) add(name string) bool {
	l.hold(name)
	switch full := l.full(); {
	case full && l.asked == formMsgpack:
		l.err = badRequest("the list has more than %d metrics or %d bytes, the limits in msgpack: ask "+
			"for JSON or with a longer prefix", sortedNames-1, heldBytes)
	case full, l.streaming:
		l.drain()
	}
	return l.err == nil
}

func (l *nameList) hold(name string) {
	l.names = append(l.names, name)
	l.held += len(name)
	l.charge(len(l.names), l.held)
}

// charge takes memory for so many names with so many bytes, and reports whether there is enough.
func (l *nameList) charge(names, bytes int) bool {
	if need := bytes + names*nameCost; need > l.charged {
		l.charged += listStep
		if err := l.lease.Grow(listStep); err != nil {
			l.err = cmp.Or(l.err, err)
		}
	}
	return l.err == nil
}

func (l *nameList) full() bool { return len(l.names) >= sortedNames || l.held > heldBytes }

// begin sends what stands before the first name.
func (l *nameList) begin() {
	l.written()
	l.streaming = true
	if l.asked == formMsgpack {
		l.reply.Header().Set("Content-Type", typeMsgpack)
		l.write(mpHead(nil, mpArray32, len(l.names)))
		return
	}
	l.reply.Header().Set("Content-Type", typeJSON)
	l.write([]byte("["))
}

func (l *nameList) write(p []byte) {
	if _, err := l.w.Write(p); err != nil {
		l.err = cmp.Or(l.err, err)
	}
}

// drain writes the names that are held.
func (l *nameList) drain() {
	first := !l.streaming
	if first {
		l.begin()
	}
	for _, name := range l.names {
		l.scratch = l.scratch[:0]
		if !first && l.asked == formJSON {
			l.scratch = append(l.scratch, ',')
		}
		first = false
		l.scratch = l.encode(l.scratch, l.asked, name)
		l.write(l.scratch)
	}
	l.names, l.held = l.names[:0], 0
}

// finish puts held names in order, writes them and ends the list.
func (l *nameList) finish() error {
	slices.Sort(l.names)
	l.drain()
	if l.asked == formJSON {
		l.write([]byte("]\n"))
	}
	return errors.Join(l.err, l.w.Flush())
}

package httpapi

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"dalmatiner/internal/api/httpapi/running"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/calendar"
)

// param returns a parameter of the URL, or of a form that was read.
func param(r *http.Request, name string) string {
	if r.Form == nil {
		r.Form = r.URL.Query() // read once: every parameter is asked for
	}
	if v, ok := r.Form[name]; ok {
		return v[0]
	}
	return r.PostForm.Get(name)
}

// queryText returns the query of a request: the parameter q of the URL or of a
// form, the field query or q of a JSON object, or the whole body of a POST of
// another type. given is false when there is none.
func queryText(r *http.Request) (text string, given bool, err error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", false, badRequest("malformed parameters: %v; they must be percent-encoded, as by "+
			"curl --data-urlencode", err)
	}
	r.Form = values // and not those of a form too, see param
	if q, ok := values["q"]; ok {
		return q[0], true, nil
	}
	if r.Method != http.MethodPost {
		return "", false, nil
	}
	contentType := r.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(contentType)
	if contentType != "" && err != nil {
		return "", false, unsupported(contentType)
	}
	switch mediaType {
	case "application/x-www-form-urlencoded":
		if err := r.ParseForm(); err != nil {
			return "", false, bodyError(err)
		}
		if q, ok := r.PostForm["q"]; ok {
			return q[0], true, nil
		}
		if err := checkParameters(r.PostForm, queryParameters); err != nil && !isBare(r.PostForm) {
			return "", false, err
		}
		return "", false, badRequest("the form has no field q: send q=SELECT..., percent-encoded, or " +
			"the bare query with Content-Type text/plain")
	case typeJSON:
		text, err = queryFromJSON(r.Body)
		return text, err == nil, err
	case "", "text/plain", "application/dql", "application/octet-stream":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return "", false, bodyError(err)
		}
		if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
			return "", false, badRequest(
				`the body is a JSON object: send it with Content-Type application/json, or the bare query`)
		}
		return string(body), true, nil
	}
	return "", false, unsupported(contentType)
}

// isBare reports whether a form is a bare query: one name without a value that is
// no JSON.
func isBare(form url.Values) bool {
	for name, values := range form {
		return len(form) == 1 && strings.Join(values, "") == "" &&
			!strings.HasPrefix(strings.TrimSpace(name), "{")
	}
	return false
}

func queryFromJSON(body io.Reader) (string, error) {
	var in struct {
		Query *string `json:"query"`
		Q     *string `json:"q"` // as the parameter is called
	}
	err := decodeObject(body, &in)
	if err != nil && strings.Contains(err.Error(), "unknown field") {
		return "", badRequest("%v: there is query, parameters stand in the URL", err)
	}
	if err != nil {
		return "", err
	}
	switch {
	case in.Query != nil && in.Q != nil:
		return "", badRequest(`the JSON object has both query and q: send one of them`)
	case in.Query != nil:
		return *in.Query, nil
	case in.Q != nil:
		return *in.Q, nil
	}
	return "", badRequest(`the JSON object has no query: send {"query": "SELECT..."}`)
}

func unsupported(contentType string) error {
	return &statusError{http.StatusUnsupportedMediaType, reasonType,
		"a query cannot be read from " + contentType +
			`: send a form with q, the bare query as text/plain, or {"query": "SELECT..."} as application/json`}
}

// queryOptions reads what a request asks for beside its query.
func (a *api) queryOptions(r *http.Request) (query.Options, error) {
	o := query.Options{Compat: a.Compat}
	switch compat := param(r, "compat"); compat {
	case "":
	case "0", "1":
		o.Compat = compat == "1"
	default:
		return o, badRequest("compat=%s: known are 1, for the answers of the original, and 0", compat)
	}
	switch explain := param(r, "explain"); explain {
	case "", "0":
	case "1":
		o.Explain = true
	default:
		return o, badRequest("explain=%s: known are 1, for the plan of the query, and 0", explain)
	}
	switch gaps := param(r, "gaps"); gaps {
	case "":
	case "null":
		o.Confidence = o.Compat // which tells what the original filled
	case "carry":
		if !o.Compat {
			return o, badRequest("gaps=carry: only answers of the original carry values into gaps: ask " +
				"with compat=1")
		}
	default:
		return o, badRequest("gaps=%s: known are null, and carry with compat=1", gaps)
	}
	switch damaged := param(r, "damaged"); {
	case damaged == "" || damaged == "hide":
	case damaged != "show":
		return o, badRequest("damaged=%s: known are show, for older values in place of those that "+
			"damage took, and hide, which is the default", damaged)
	case o.Compat:
		return o, badRequest("damaged=show: the answers of the original cannot say which values are " +
			"older: ask with compat=0")
	default:
		o.Older = true
	}
	switch align := param(r, "align"); align {
	case "", "0":
	case "1":
		o.Align = true
	default:
		return o, badRequest("align=%s: known are 1, for steps that begin at full multiples of their "+
			"length, and 0", align)
	}
	switch cache := param(r, "cache"); cache {
	case "", "on":
	case "off":
		o.NoCache = true
	default:
		return o, badRequest("cache=%s: known are off, which computes the answer anew, and on, which "+
			"is the default", cache)
	}
	if id := param(r, "id"); len(id) > running.MaxID {
		return o, badRequest("id: the name of a query has %d bytes, the limit is %d", len(id),
			running.MaxID)
	}
	var err error
	if o.Width, err = widthOf(r); err != nil {
		return o, err
	}
	o.Zone, err = zoneOf(r, o.Compat)
	return o, err
}

// widthOf returns the number of columns that a request asks for; 0 for as many as there are steps.
func widthOf(r *http.Request) (int, error) {
	width := param(r, "width")
	if width == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(width)
	if err != nil || n < 1 || n > query.MaxWidth {
		return 0, badRequest("width=%s: it is the number of columns of a chart, from 1 to %d", width,
			query.MaxWidth)
	}
	return n, nil
}

// zoneOf returns the time zone that a request asks for; nil for none.
func zoneOf(r *http.Request, compat bool) (*time.Location, error) {
	tz := param(r, "tz")
	if tz == "" {
		return nil, nil
	}
	if compat {
		return nil, badRequest("tz: the answers of the original know no time zones: ask with compat=0")
	}
	zone, err := calendar.Zone(tz)
	if err != nil {
		return nil, badRequest("tz: %v", err)
	}
	return zone, nil
}

// unpack decompresses the body of a query that comes with gzip. The limit is the
// one of an uncompressed body, whatever size it was compressed to. Other
// compressed bodies are refused.
func (a *api) unpack(rt route, w http.ResponseWriter, r *http.Request) error {
	encoding := r.Header.Get("Content-Encoding")
	switch coding := strings.ToLower(encoding); {
	case coding == "" || coding == "identity" || rt.sends:
		return nil
	case rt.admin || coding != "gzip" && coding != "x-gzip":
		return &statusError{http.StatusUnsupportedMediaType, reasonType,
			"the body comes with Content-Encoding " + encoding + ": send it as it is, or a query with gzip"}
	}
	unpacked, err := gzip.NewReader(r.Body)
	if err != nil {
		return bodyError(err)
	}
	r.Body = http.MaxBytesReader(w, unpacked, a.MaxBody)
	return nil
}

package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/api/httpapi/figures"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/ingest/ahead"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// readBody decodes the body of an admin request.
func readBody(r *http.Request, out any) error {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != typeJSON {
		return &statusError{http.StatusUnsupportedMediaType, reasonType, "the body must be " + typeJSON}
	}
	return decodeObject(r.Body, out)
}

// decodeObject decodes one JSON object with known fields, and nothing behind it.
func decodeObject(body io.Reader, out any) error {
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(out); err != nil {
		return bodyError(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return badRequest("there is more after the JSON object")
	}
	return nil
}

// wrongType says what stands in a body in place of what.
func wrongType(e *json.UnmarshalTypeError) error {
	if e.Field == "" {
		return badRequest("malformed body: it is a JSON %s, and has to be an object: {...}", e.Value)
	}
	return badRequest("malformed body: %s cannot be a %s", e.Field, e.Value)
}

// bodyError keeps the type of a body beyond the limit, and of one that there is no
// memory for, and calls everything else malformed.
func bodyError(err error) error {
	if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
		return &statusError{http.StatusRequestEntityTooLarge, reasonTooLarge,
			"the body has more than " + strconv.FormatInt(tooBig.Limit, 10) +
				" bytes, the limit is http.max_body"}
	}
	if errors.As(err, new(*memory.Refusal)) {
		return fmt.Errorf("the body is not taken: %w", err)
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return badRequest("malformed body: unknown field %s", field)
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return wrongType(wrong)
	}
	return badRequest("malformed body: %v", err)
}

func bucketName(escaped string) (string, error) {
	if escaped == "" {
		return "", badRequest("no name: the bucket's name is missing")
	}
	name, err := metric.Unescape(escaped)
	if err != nil {
		return "", badRequest("name %q: %v", escaped, err)
	}
	return name, nil
}

// namedBucket finds a bucket by its escaped name.
func namedBucket(s Store, escaped string) (b buckets.Info, err error) {
	name, err := bucketName(escaped)
	if err == nil {
		b, err = s.BucketByName(name)
		err = nearBuckets(s, name, err)
	}
	return b, err
}

func (a *api) createBucket(w http.ResponseWriter, r *http.Request) error {
	var in admin.Bucket
	if err := readBody(r, &in); err != nil {
		return err
	}
	name, err := bucketName(in.Name)
	if err != nil {
		return err
	}
	b, err := a.Store.CreateBucket(buckets.Info{
		Name: name, Resolution: in.Resolution, PPF: in.PPF, TTL: int64(in.TTL), Grace: in.Grace,
		HPTS: in.HPTS, Copies: in.Copies,
	})
	if err != nil {
		return err
	}
	a.Logger.Info("bucket created", "bucket", in.Name, "resolution_ms", b.Resolution, "remote",
		r.RemoteAddr)
	return writeJSON(w, message(b))
}

func (a *api) deleteBucket(w http.ResponseWriter, r *http.Request) error {
	var in admin.BucketName
	if err := readBody(r, &in); err != nil {
		return err
	}
	name, err := bucketName(in.Name)
	if err != nil {
		return err
	}
	if err := a.Store.DeleteBucket(name); err != nil {
		return nearBuckets(a.Store, name, err)
	}
	a.Logger.Info("bucket deleted", "bucket", in.Name, "remote", r.RemoteAddr)
	return writeJSON(w, in)
}

func (a *api) setTTL(w http.ResponseWriter, r *http.Request) error {
	var in admin.BucketTTL
	if err := readBody(r, &in); err != nil {
		return err
	}
	name, err := bucketName(in.Name)
	if err != nil {
		return err
	}
	if in.TTL == nil {
		return badRequest("no ttl: give a number of points or \"infinity\"")
	}
	if err := a.Store.SetTTL(name, int64(*in.TTL)); err != nil {
		return nearBuckets(a.Store, name, err)
	}
	a.Logger.Info("bucket's TTL set", "bucket", in.Name, "points", int64(*in.TTL), "remote",
		r.RemoteAddr)
	return writeJSON(w, in)
}

func (a *api) flush(w http.ResponseWriter, r *http.Request) error {
	f, err := a.Store.Flush(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, admin.Flushed{
		Segment: f.Segment,
		Bytes:   f.Bytes,
		Points:  f.Points,
		Series:  f.Series,
		TookUS:  f.Took.Microseconds(),
	})
}

func (a *api) merge(w http.ResponseWriter, r *http.Request) error {
	m, err := a.Store.Merge(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, admin.Merged{
		Windows:  m.Windows,
		Overlays: m.Overlays,
		Removed:  m.Removed,
		Bytes:    m.Bytes,
		TookUS:   m.Took.Microseconds(),
	})
}

// adminStats lists our own figures of the gatherer.
func (a *api) adminStats(w http.ResponseWriter, _ *http.Request) error {
	list, err := figures.List(a.Registry)
	if err != nil {
		return err
	}
	return writeJSON(w, list)
}

// adminAccount answers with the totals of all buckets or of the one named
// bucket, or with minutes=N the last N rows of each of them.
func (a *api) adminAccount(w http.ResponseWriter, r *http.Request) error {
	params := r.URL.Query()
	minutes := 0
	if text := params.Get("minutes"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > account.RetainedMinutes {
			return badRequest("minutes is %q, it must be from 1 to %d", text, account.RetainedMinutes)
		}
		minutes = n
	}
	bucket := params.Get("bucket")
	points := book{a.Store, a.Store.Account()}
	out := admin.Account{
		Requests: points.account.Requests(),
		TagsLost: a.Tags.Stats().Lost,
		Clocks:   clocksOf(a.Ahead),
	}
	var err error
	if out.Entries, err = points.entries(bucket, minutes); err != nil {
		return err
	}
	if out.Events, err = (book{a.Store, a.EventAccount}).entries(bucket, minutes); err != nil {
		return err
	}
	out.Events.Rows = slices.DeleteFunc(out.Events.Rows, func(r admin.AccountRow) bool {
		return r.Received == 0
	})
	return writeJSON(w, out)
}

// clocksOf returns the senders whose clocks are ahead.
func clocksOf(senders *ahead.Senders) (out []admin.Clock) {
	for _, s := range senders.List() {
		out = append(out, admin.Clock{Sender: s.Addr.String(), Listener: s.Listener, Ahead: s.Count,
			AheadMS: s.Most.Milliseconds(), LastMS: s.Last.UnixMilli()})
	}
	return out
}

// book is the account of points or of events, with the names of buckets.
type book struct {
	Store
	account *account.Account
}

func (b book) Account() *account.Account { return b.account }

// entries returns the totals of all buckets or of one, or with minutes the last rows of each.
func (b book) entries(bucket string, minutes int) (admin.Entries, error) {
	out := admin.Entries{
		Rows:      []admin.AccountRow{},
		Lost:      map[string]uint64{},
		Recovered: map[string]uint64{},
	}
	for _, l := range b.account.Losses() {
		out.Lost[l.Cause], out.Recovered[l.Cause] = l.Points, l.Recovered
	}
	var err error
	switch {
	case bucket != "":
		out.Rows, err = b.bucketRows(bucket, minutes)
	case minutes > 0:
		for _, info := range b.Buckets() {
			out.Rows = append(out.Rows, figures.Minutes(b.account, info, minutes)...)
		}
	default:
		for _, t := range figures.Totals(b) {
			out.Rows = append(out.Rows, figures.Row(t.Bucket, 0, &t.Counts))
		}
	}
	return out, err
}

func (b book) bucketRows(escaped string, minutes int) ([]admin.AccountRow, error) {
	info, err := namedBucket(b.Store, escaped)
	if err != nil {
		return nil, err
	}
	if minutes == 0 {
		total := b.account.Total(info.ID)
		return []admin.AccountRow{figures.Row(metric.Escape(info.Name), 0, &total)}, nil
	}
	return figures.Minutes(b.account, info, minutes), nil
}

package httpapi

import (
	"bufio"
	"errors"
	"net/http"

	"dalmatiner/internal/api/tagline"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
)

// postTags takes changes of tags as lines of JSON: they are durable when the answer is given. A
// body whose stated length is beyond the limit is refused as a whole, so that it can be sent in
// parts.
func (a *api) postTags(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength > a.MaxBody {
		return bodyError(&http.MaxBytesError{Limit: a.MaxBody})
	}
	store, of := a.Store, a.Tags
	ids := make(map[string]uint64)
	out, err := tagline.Import(r.Context(), r.Body, of, func(name string) (uint64, error) {
		if id, ok := ids[name]; ok {
			return id, nil
		}
		b, err := store.BucketByName(name)
		if err == nil {
			ids[name] = b.ID
		}
		return b.ID, err
	}, bodyOf(r).done)
	if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
		return bodyError(err)
	}
	if err == nil {
		err = of.WaitDurable(r.Context(), out.Last)
	}
	if err != nil {
		return err
	}
	return writeJSON(w, out)
}

// exportTags answers with the lines that make all tags, of a bucket, or of one metric of it.
func exportTags(store Store, of Tags, w http.ResponseWriter, r *http.Request) error {
	params := r.URL.Query()
	names, only, key := make(map[uint64]string), uint64(0), []byte(nil)
	for _, b := range store.Buckets() {
		names[b.ID] = b.Name
	}
	if escaped := params.Get("bucket"); escaped != "" {
		b, err := namedBucket(store, escaped)
		if err != nil {
			return err
		}
		only = b.ID
	}
	if text := params.Get("metric"); text != "" {
		var err error
		if key, err = metric.ParseText(text); err != nil {
			return badRequest("%.200q: %v", text, err)
		}
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := bufio.NewWriterSize(w, replyBuffer)
	var line []byte
	write := func(c *tags.Change) (err error) {
		name, ok := names[c.Bucket]
		if !ok || only != 0 && c.Bucket != only {
			return r.Context().Err()
		}
		if line, err = tagline.Append(line[:0], name, c); err == nil {
			_, err = out.Write(line)
		}
		return err
	}
	if key == nil {
		return errors.Join(of.Walk(write), out.Flush())
	}
	for _, b := range store.Buckets() {
		if err := of.Index().WalkSeries(b.ID, key, write); err != nil {
			return err
		}
	}
	return out.Flush()
}

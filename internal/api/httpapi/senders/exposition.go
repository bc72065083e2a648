package senders

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"dalmatiner/internal/ingest/exposition"
	"dalmatiner/internal/ingest/labels"
)

// expositionRoutes are those of VictoriaMetrics and of the Pushgateway.
func (o *Options) expositionRoutes() (out []Route) {
	const path, jobs = "/api/v1/import/prometheus", "/metrics/job"
	plain, inPath := o.bothWays(o.importText)
	for _, prefix := range []string{"", "/prometheus"} {
		out = append(out,
			Route{prefix + path, "POST, PUT", path, plain},
			// The name of the job follows, also in base64.
			Route{prefix + jobs + "/{group...}", "POST, PUT", jobs, o.pushGroup},
			Route{prefix + jobs + "@base64/{group...}", "POST, PUT", jobs, o.pushGroup},
		)
	}
	return append(out, Route{"/prometheus/{bucket}" + path, "POST, PUT", path, inPath})
}

// importText stores exposition text.
func (o *Options) importText(bucket string, w http.ResponseWriter, r *http.Request,
	in Body) error {
	extra, err := extraLabels(r.URL.Query()["extra_label"])
	if err != nil {
		return err
	}
	if err := o.writeText(bucket, r, in, extra); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// pushGroup stores what a job pushes to a Pushgateway, with the labels of its path. The clients of
// Go take no status but 200 and 202.
func (o *Options) pushGroup(w http.ResponseWriter, r *http.Request, in Body) error {
	_, group, _ := strings.Cut(r.URL.EscapedPath(), "/metrics/")
	list, err := groupingLabels(group)
	if err != nil {
		return &Error{Status: http.StatusBadRequest, Text: err.Error()}
	}
	if err := o.writeText(o.RemoteWriteBucket, r, in, list); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// writeText stores a body of exposition text, with labels of all its series.
func (o *Options) writeText(bucket string, r *http.Request, in Body, list []labels.Label) error {
	req := exposition.Request{Labels: list, Time: o.Now().UnixMilli()}
	if text := r.URL.Query().Get("timestamp"); text != "" {
		var err error
		if req.Time, err = strconv.ParseInt(text, 10, 64); err != nil || req.Time < 0 {
			return &Error{Status: http.StatusBadRequest,
				Text: fmt.Sprintf("timestamp=%s: a time is in milliseconds since 1970", text)}
		}
	}
	body, err := o.unpacked(r, in)
	if err != nil {
		return err
	}
	req.Body = body
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // curl sends that of a form
	switch media {
	case "application/openmetrics-text":
		req.Format = exposition.OpenMetrics
	case "application/vnd.google.protobuf": // what clients of Go push
		if req.Body, err = o.textOfMessages(r.Header, body, in); err != nil {
			return err
		}
	}
	_, err = o.Exposition.Write(r.Context(), bucket, peer(r), &req)
	return stored(err)
}

// textOfMessages returns messages of io.prometheus.client.MetricFamily as exposition text.
func (o *Options) textOfMessages(h http.Header, body []byte, in Body) ([]byte, error) {
	messages := expfmt.NewDecoder(bytes.NewReader(body), expfmt.ResponseFormat(h))
	var out bytes.Buffer
	encoder := expfmt.NewEncoder(&out, expfmt.NewFormat(expfmt.TypeTextPlain))
	for {
		var family dto.MetricFamily
		err := messages.Decode(&family)
		if errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		}
		before := out.Len()
		if err == nil {
			err = encoder.Encode(&family)
		}
		if err != nil {
			return nil, &Error{Status: http.StatusBadRequest,
				Text: "the body is not messages of metrics: " + err.Error()}
		}
		if int64(out.Len()) > o.MaxBody {
			return nil, o.tooLarge(int64(out.Len()))
		}
		if err := in.Grow(int64(out.Len() - before)); err != nil {
			return nil, err
		}
	}
}

// extraLabels reads labels of the form name=value.
func extraLabels(texts []string) (list []labels.Label, err error) {
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if list = append(list, labels.Label{Name: []byte(name), Value: []byte(value)}); !ok ||
			name == "" || name == "__name__" {
			return nil, &Error{Status: http.StatusBadRequest,
				Text: fmt.Sprintf("extra_label=%s: a label is name=value", text)}
		}
	}
	return list, nil
}

var (
	errGroup = errors.New("the path of a push is /metrics/job/<job>{/<label>/<value>}")
	errJob   = errors.New("the name of the job is empty")
)

// groupingLabels reads the labels of a path behind /metrics/, which is escaped. The value of a
// label whose name ends in @base64 is in base64 as URLs have it; there a single = is the empty
// value (github.com/prometheus/pushgateway, URL).
func groupingLabels(path string) (list []labels.Label, err error) {
	parts := strings.Split(strings.TrimSuffix(path, "/"), "/")
	if len(parts)%2 != 0 {
		return nil, errGroup
	}
	for i := 0; i < len(parts); i += 2 {
		name, err := url.PathUnescape(parts[i])
		if err != nil {
			return nil, err
		}
		value, err := url.PathUnescape(parts[i+1])
		if err != nil {
			return nil, err
		}
		name, coded := strings.CutSuffix(name, "@base64")
		if coded {
			text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(value, "="))
			if err != nil {
				return nil, fmt.Errorf("label %s: %w", name, err)
			}
			value = string(text)
		}
		if name == "" || name == "__name__" {
			return nil, errGroup
		}
		list = append(list, labels.Label{Name: []byte(name), Value: []byte(value)})
	}
	if len(list[0].Value) == 0 {
		return nil, errJob
	}
	return list, nil
}

// Package jsonlines takes points as JSON, one series with any number of points a line: what
// VictoriaMetrics exports at /api/v1/export and vmctl sends to /api/v1/import
// (docs.victoriametrics.com, JSON line format).
package jsonlines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/model/account"
)

// Listener is the name under which the account counts what was refused.
const Listener = "import"

// Server takes requests. Its methods may be called concurrently.
type Server struct{ writers *acked.Writers }

// New returns a server that stores through writers.
func New(writers *acked.Writers) *Server { return &Server{writers} }

// Written says what became of the lines of a request.
type Written struct {
	Lines  int            // good ones
	Bad    int            // lines that are none, or that no series may have
	Counts account.Counts // of the points
}

// series is one line.
type series struct {
	Metric     map[string]string `json:"metric"`
	Values     []value           `json:"values"`
	Timestamps []int64           `json:"timestamps"` // ms since 1970
}

// value is a number. NaN is null, and so are the infinities texts, which JSON has no numbers for.
type value float64

// UnmarshalJSON reads a number, null or one of the texts.
func (v *value) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "null", `"NaN"`:
		*v = value(math.NaN())
		return nil
	case `"Infinity"`, `"Inf"`, `"+Inf"`:
		*v = value(math.Inf(1))
		return nil
	case `"-Infinity"`, `"-Inf"`:
		*v = value(math.Inf(-1))
		return nil
	}
	number, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return fmt.Errorf("the value %.40s is no number", text)
	}
	*v = value(number)
	return nil
}

var (
	errLengths  = errors.New("values and timestamps are not equally many")
	errNegative = errors.New("a time before 1970")
	errNameless = errors.New("a series without name and labels")
	errRest     = errors.New("there is more behind the object")
)

// Write stores the series of a body, and returns when all of their points are durable. The error
// is a *acked.BadLines, a *acked.Refusal, of the bucket as unacked.Refused says, that of ctx, or it
// means that nothing can be stored any more.
func (s *Server) Write(ctx context.Context, bucket string, peer netip.AddrPort,
	body []byte) (Written, error) {
	to, err := s.writers.Begin(bucket, peer)
	if err != nil {
		return Written{}, err
	}
	var (
		w   Written
		bad acked.BadLines
	)
	for number := 1; len(body) > 0; number++ {
		var line []byte
		line, body, _ = bytes.Cut(body, []byte{'\n'})
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := store(to, line); err != nil {
			bad.Add(number, err)
			s.writers.Refuse("bad_line", peer, line)
			continue
		}
		w.Lines++
	}
	w.Bad = bad.Count
	w.Counts, err = to.End(ctx)
	if err == nil && bad.Count > 0 {
		err = &bad
	}
	return w, err
}

// store hands the points of a line over, all or none.
func store(to *acked.Writer, line []byte) error {
	var one series
	d := json.NewDecoder(bytes.NewReader(line))
	if err := d.Decode(&one); err != nil {
		return err
	}
	if d.More() {
		return errRest
	}
	if len(one.Values) != len(one.Timestamps) {
		return errLengths
	}
	for _, ms := range one.Timestamps {
		if ms < 0 {
			return errNegative
		}
	}
	var list []labels.Label
	for name, text := range one.Metric {
		if name != "__name__" {
			list = append(list, labels.Label{Name: []byte(name), Value: []byte(text)})
		}
	}
	if len(one.Metric) == 0 {
		return errNameless
	}
	if err := to.Series(list, []byte(one.Metric["__name__"])); err != nil {
		return err
	}
	for i, ms := range one.Timestamps {
		to.Point(ms, acked.Word(float64(one.Values[i])))
	}
	return nil
}

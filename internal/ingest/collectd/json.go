package collectd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/model/account"
)

// JSON takes the bodies of write_http. Its methods may be called concurrently.
type JSON struct {
	writers *acked.Writers
	types   *Types
}

// NewJSON returns a taker of bodies that stores through writers.
func NewJSON(writers *acked.Writers, types *Types) *JSON { return &JSON{writers, types} }

// Written says what became of the value lists of a body.
type Written struct {
	Lists  int // good ones
	Bad    int // such as have no host or type
	Counts account.Counts
}

// valueList is an element of a body (collectd.org/wiki, JSON).
type valueList struct {
	Values       []json.Number `json:"values"` // null is unset
	Names        []string      `json:"dsnames"`
	Time         float64       `json:"time"` // s
	Host         string        `json:"host"`
	Plugin       string        `json:"plugin"`
	Instance     string        `json:"plugin_instance"`
	Kind         string        `json:"type"`
	KindInstance string        `json:"type_instance"`
}

var (
	errList   = errors.New("the body is not a list of objects")
	errNumber = errors.New("a value that is no number")
	errEmpty  = errors.New("no values")
)

// Write stores the values of a body, and returns when all are durable. The error is a
// *acked.BadLines, a *acked.Refusal, of the bucket as unacked.Refused says, that of ctx, or it
// means that nothing can be stored any more. Of a body with bad value lists all others are stored.
func (j *JSON) Write(ctx context.Context, bucket string, peer netip.AddrPort, now int64,
	body []byte) (Written, error) {
	to, err := j.writers.Begin(bucket, peer)
	if err != nil {
		return Written{}, err
	}
	var w Written
	bad := acked.BadLines{What: "value list"}
	refuse := func(number int, err error) {
		bad.Add(number, err)
		j.writers.Refuse("bad_values", peer, []byte(err.Error()))
	}
	number := 0
	err = elements(body, func(element []byte) {
		number++
		var list valueList
		err := json.Unmarshal(element, &list)
		if err == nil {
			err = list.store(to, j.types, now)
		}
		if err != nil {
			refuse(number, err)
			return
		}
		w.Lists++
	})
	if err != nil {
		refuse(number+1, err)
	}
	w.Bad = bad.Count
	w.Counts, err = to.End(ctx)
	if err == nil && bad.Count > 0 {
		err = &bad
	}
	return w, err
}

// elements calls fn for each element of a list of JSON. An error is of the list itself.
func elements(body []byte, fn func(element []byte)) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return errList
	}
	for d.More() {
		var element json.RawMessage
		if err := d.Decode(&element); err != nil {
			return fmt.Errorf("the list is malformed, or does not end: %w", err)
		}
		fn(element)
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("the list does not end: %w", err)
	}
	return nil
}

// store hands the values of a list over.
func (l *valueList) store(to *acked.Writer, types *Types, now int64) error {
	if len(l.Values) == 0 {
		return errEmpty
	}
	if !(l.Time >= 0 && l.Time < math.MaxInt64/1_000_000_000) {
		return errTime
	}
	r := reading{identity: identity{[]byte(l.Host), []byte(l.Plugin), []byte(l.Instance),
		[]byte(l.Kind), []byte(l.KindInstance)}, ns: int64(math.Round(l.Time*1e3)) * 1e6}
	for _, v := range l.Values {
		word, err := numberWord(string(v))
		if err != nil {
			return err
		}
		r.words = append(r.words, word)
	}
	for _, name := range l.Names {
		r.names = append(r.names, []byte(name))
	}
	return r.store(to.Appender, types, now)
}

// numberWord returns the word of a number: an integer as it is, null as unset.
func numberWord(text string) (uint64, error) {
	if text == "" {
		return point.Unset, nil
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return point.FromInt(v), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %.40s", errNumber, text)
	}
	return gauge(v), nil
}

package loki

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"dalmatiner/internal/ingest/protobuf"
)

// each calls add for every line of a request, and reject for those that are none. It ends with the
// first error of add.
type each func(add func(e *entry) error, reject func(err error)) error

// jsonStreams reads {"streams": [{"stream": {…}, "values": [["ns", "line", {…}], …]}]}.
func jsonStreams(body []byte) (each, error) {
	var push struct {
		Streams []struct {
			Stream map[string]string   `json:"stream"`
			Values [][]json.RawMessage `json:"values"`
		} `json:"streams"`
	}
	if err := json.Unmarshal(body, &push); err != nil {
		return nil, err
	}
	return func(add func(e *entry) error, reject func(err error)) error {
		for _, s := range push.Streams {
			labels := pairsOf(s.Stream)
			for _, v := range s.Values {
				e, err := jsonEntry(v)
				if err != nil {
					reject(err)
					continue
				}
				e.labels = labels
				if err := add(e); err != nil {
					return err
				}
			}
		}
		return nil
	}, nil
}

func pairsOf(texts map[string]string) (list []pair) {
	for name, value := range texts {
		list = append(list, pair{[]byte(name), []byte(value)})
	}
	// Events are the same where their bytes are.
	slices.SortFunc(list, func(a, b pair) int { return bytes.Compare(a.name, b.name) })
	return list
}

// jsonEntry reads a time, a line, and structured metadata if there is some.
func jsonEntry(v []json.RawMessage) (*entry, error) {
	var ns, line string
	if len(v) < 2 || json.Unmarshal(v[0], &ns) != nil {
		return nil, errTime
	}
	t, err := strconv.ParseInt(ns, 10, 64)
	if err != nil {
		return nil, errTime
	}
	if err := json.Unmarshal(v[1], &line); err != nil {
		return nil, err
	}
	e := &entry{ns: t, line: []byte(line)}
	if len(v) > 2 {
		var metadata map[string]string
		if err := json.Unmarshal(v[2], &metadata); err != nil {
			return nil, err
		}
		e.fields = pairsOf(metadata)
	}
	return e, nil
}

// protobufStreams reads a logproto.PushRequest
// (github.com/grafana/loki/blob/main/pkg/push/push.proto).
func protobufStreams(body []byte) (each, error) {
	if err := protobuf.Each(body, func(f *protobuf.Field) error {
		if f.Key() != protobuf.BytesKey(1) {
			return nil
		}
		return protobuf.Each(f.Data, func(*protobuf.Field) error { return nil })
	}); err != nil {
		return nil, err
	}
	return func(add func(e *entry) error, reject func(err error)) error {
		return protobuf.Each(body, func(f *protobuf.Field) error {
			if f.Key() != protobuf.BytesKey(1) {
				return nil
			}
			return protobufStream(f.Data, add, reject)
		})
	}, nil
}

// protobufStream reads a StreamAdapter: its labels as a text, and its entries.
func protobufStream(msg []byte, add func(e *entry) error, reject func(err error)) error {
	var labels []pair
	var bad error
	_ = protobuf.Each(msg, func(f *protobuf.Field) error { // it was checked
		if f.Key() == protobuf.BytesKey(1) {
			labels, bad = parseLabels(string(f.Data))
			slices.SortStableFunc(labels, func(a, b pair) int { return bytes.Compare(a.name, b.name) })
		}
		return nil
	})
	return protobuf.Each(msg, func(f *protobuf.Field) error {
		if f.Key() != protobuf.BytesKey(2) {
			return nil
		}
		e := entry{labels: labels}
		err := e.parse(f.Data)
		if err == nil {
			err = bad
		}
		if err != nil {
			reject(err)
			return nil
		}
		return add(&e)
	})
}

// parse reads an EntryAdapter.
func (e *entry) parse(msg []byte) error {
	seconds, nanos := int64(0), int64(0)
	err := protobuf.Each(msg, func(f *protobuf.Field) error {
		switch f.Key() {
		case protobuf.BytesKey(1):
			return protobuf.Each(f.Data, func(f *protobuf.Field) error {
				switch f.Key() {
				case protobuf.VarintKey(1):
					seconds = int64(f.Value)
				case protobuf.VarintKey(2):
					nanos = int64(int32(f.Value))
				}
				return nil
			})
		case protobuf.BytesKey(2):
			e.line = f.Data
		case protobuf.BytesKey(3):
			var p pair
			err := protobuf.Each(f.Data, func(f *protobuf.Field) error {
				switch f.Key() {
				case protobuf.BytesKey(1):
					p.name = f.Data
				case protobuf.BytesKey(2):
					p.value = f.Data
				}
				return nil
			})
			e.fields = append(e.fields, p)
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	if seconds < 0 || seconds >= math.MaxInt64/1_000_000_000 || nanos < 0 || nanos >= 1e9 {
		return errTime
	}
	e.ns = seconds*1e9 + nanos
	return nil
}

// parseLabels reads {name="value", …}, with values quoted as in Go.
func parseLabels(text string) (list []pair, err error) {
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return nil, errLabels
	}
	text = text[1 : len(text)-1]
	for text = skip(text); text != ""; text = skip(text) {
		n := 0
		for n < len(text) && text[n] != '=' {
			n++
		}
		if n == 0 || n == len(text) {
			return nil, errLabels
		}
		name := text[:n]
		quoted, err := strconv.QuotedPrefix(text[n+1:])
		if err != nil {
			return nil, errLabels
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, errLabels
		}
		list = append(list, pair{[]byte(name), []byte(value)})
		text = text[n+1+len(quoted):]
	}
	return list, nil
}

// skip passes over blanks and commas between labels.
func skip(text string) string {
	for text != "" && (text[0] == ' ' || text[0] == ',') {
		text = text[1:]
	}
	return text
}

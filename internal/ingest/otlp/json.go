package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// FromJSON returns an ExportMetricsServiceRequest in JSON as the protocol buffers that Write takes
// (opentelemetry.io/docs/specs/otlp, JSON Protobuf encoding). Names that are not known are passed
// over. The error says what is wrong with the text. It takes about ten times the memory of the
// text.
func (s *Server) FromJSON(text []byte) (msg []byte, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("the body is no JSON: %w", err)
	}
	return appendMessage(nil, s.request, v)
}

// kind is how a field is written in protocol buffers.
type kind uint8

const (
	texts   kind = iota
	bools        // varint
	ints         // varint
	zigzags      // varint
	fixed        // 8 bytes
	doubles
	base64s // bytes
	messages
)

// schema is the fields of a message by their names in JSON.
type schema map[string]schemaField

type schemaField struct {
	number protowire.Number
	kind   kind
	of     schema // of messages
}

// newRequestSchema returns the fields of an ExportMetricsServiceRequest.
func newRequestSchema() schema {
	value := schema{
		"stringValue": {1, texts, nil}, "boolValue": {2, bools, nil}, "intValue": {3, ints, nil},
		"doubleValue": {4, doubles, nil}, "bytesValue": {7, base64s, nil},
	}
	pair := schema{"key": {1, texts, nil}, "value": {2, messages, value}}
	value["arrayValue"] = schemaField{5, messages, schema{"values": {1, messages, value}}}
	value["kvlistValue"] = schemaField{6, messages, schema{"values": {1, messages, pair}}}
	return schema{"resourceMetrics": {1, messages, schema{
		"resource":     {1, messages, schema{"attributes": {1, messages, pair}}},
		"scopeMetrics": {2, messages, schema{"metrics": {2, messages, newMetricSchema(pair)}}},
	}}}
}

// newMetricSchema returns the fields of a Metric.
func newMetricSchema(pair schema) schema {
	buckets := schema{"offset": {1, zigzags, nil}, "bucketCounts": {2, ints, nil}}
	// of returns the data of a kind, whose points have fields of their own.
	of := func(kind int, own schema) schemaField {
		n := fieldsOf[kind]
		own["attributes"] = schemaField{protowire.Number(n.attributes), messages, pair}
		own["timeUnixNano"] = schemaField{3, fixed, nil}
		own["flags"] = schemaField{protowire.Number(n.flags), ints, nil}
		if n.exemplars > 0 {
			own["exemplars"] = schemaField{protowire.Number(n.exemplars), messages, schema{}}
		}
		return schemaField{protowire.Number(kind), messages, schema{
			"dataPoints": {1, messages, own}, "aggregationTemporality": {2, ints, nil},
			"isMonotonic": {3, bools, nil}}}
	}
	return schema{
		"name": {1, texts, nil}, "unit": {3, texts, nil},
		"gauge": of(gauge, schema{"asDouble": {4, doubles, nil}, "asInt": {6, fixed, nil}}),
		"sum":   of(sum, schema{"asDouble": {4, doubles, nil}, "asInt": {6, fixed, nil}}),
		"histogram": of(explicit, schema{"count": {4, fixed, nil}, "sum": {5, doubles, nil},
			"bucketCounts": {6, fixed, nil}, "explicitBounds": {7, doubles, nil}}),
		"exponentialHistogram": of(exponential, schema{"count": {4, fixed, nil},
			"sum": {5, doubles, nil}, "scale": {6, zigzags, nil}, "zeroCount": {7, fixed, nil},
			"positive": {8, messages, buckets}, "negative": {9, messages, buckets},
			"zeroThreshold": {14, doubles, nil}}),
		"summary": of(summary, schema{"count": {4, fixed, nil}, "sum": {5, doubles, nil},
			"quantileValues": {6, messages,
				schema{"quantile": {1, doubles, nil}, "value": {2, doubles, nil}}}}),
	}
}

// appendMessage appends the fields of an object.
func appendMessage(dst []byte, s schema, v any) ([]byte, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%.40v stands in place of an object", v)
	}
	for name, value := range object {
		f, ok := s[name]
		if !ok {
			continue
		}
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, one := range list {
			if one == nil {
				continue
			}
			var err error
			if dst, err = f.append(dst, one); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return dst, nil
}

// append appends a field with one value.
func (f *schemaField) append(dst []byte, v any) ([]byte, error) {
	text := fmt.Sprint(v) // of a number or a text: integers of 64 bits are texts
	switch f.kind {
	case messages:
		msg, err := appendMessage(nil, f.of, v)
		return protowire.AppendBytes(protowire.AppendTag(dst, f.number, protowire.BytesType), msg), err
	case texts:
		dst = protowire.AppendTag(dst, f.number, protowire.BytesType)
		return protowire.AppendString(dst, text), nil
	case base64s:
		data, err := base64.StdEncoding.DecodeString(text)
		return protowire.AppendBytes(protowire.AppendTag(dst, f.number, protowire.BytesType), data), err
	case bools:
		on, err := strconv.ParseBool(text)
		dst = protowire.AppendTag(dst, f.number, protowire.VarintType)
		return protowire.AppendVarint(dst, protowire.EncodeBool(on)), err
	case doubles:
		d, err := strconv.ParseFloat(text, 64)
		dst = protowire.AppendTag(dst, f.number, protowire.Fixed64Type)
		return protowire.AppendFixed64(dst, math.Float64bits(d)), err
	}
	n, err := integer(text)
	switch f.kind {
	case fixed:
		dst = protowire.AppendTag(dst, f.number, protowire.Fixed64Type)
		return protowire.AppendFixed64(dst, n), err
	case zigzags:
		n = protowire.EncodeZigZag(int64(n))
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, f.number, protowire.VarintType), n), err
}

// integer reads an integer of 64 bits, signed or not.
func integer(text string) (uint64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return uint64(n), nil
	}
	return strconv.ParseUint(text, 10, 64)
}

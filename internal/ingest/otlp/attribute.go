package otlp

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"dalmatiner/internal/ingest/protobuf"
)

// attribute reads a KeyValue. The value of a text is part of the message, of anything else it is
// valid until the next data point. A list or a map is JSON.
func (d *decoder) attribute(pair []byte) (name, value []byte) {
	_ = protobuf.Each(pair, func(f *protobuf.Field) error { // of a cut one what is there
		switch f.Key() {
		case protobuf.BytesKey(1):
			name = f.Data
		case protobuf.BytesKey(2):
			value = d.value(f.Data)
		}
		return nil
	})
	return name, value
}

// value reads an AnyValue as text.
func (d *decoder) value(msg []byte) (value []byte) {
	from := len(d.text)
	_ = protobuf.Each(msg, func(f *protobuf.Field) error {
		d.text = d.text[:from]
		switch f.Key() {
		case protobuf.BytesKey(1):
			value = f.Data
			return nil
		case protobuf.VarintKey(2):
			d.text = strconv.AppendBool(d.text, f.Value != 0)
		case protobuf.VarintKey(3):
			d.text = strconv.AppendInt(d.text, int64(f.Value), 10)
		case protobuf.Fixed64Key(4):
			d.text = strconv.AppendFloat(d.text, f.Float(), 'g', -1, 64)
		case protobuf.BytesKey(7):
			d.text = base64.StdEncoding.AppendEncode(d.text, f.Data)
		case protobuf.BytesKey(5), protobuf.BytesKey(6):
			text, err := json.Marshal(nested(msg, 0))
			if err != nil {
				return err
			}
			d.text = append(d.text, text...)
		default:
			return nil
		}
		value = d.text[from:len(d.text):len(d.text)]
		return nil
	})
	return value
}

// maxNested is how deep lists and maps in values may be; what is deeper is null.
const maxNested = 16

// nested returns an AnyValue as JSON has it.
func nested(msg []byte, depth int) (out any) {
	if depth == maxNested {
		return nil
	}
	_ = protobuf.Each(msg, func(f *protobuf.Field) error {
		switch f.Key() {
		case protobuf.BytesKey(1):
			out = string(f.Data)
		case protobuf.VarintKey(2):
			out = f.Value != 0
		case protobuf.VarintKey(3):
			out = int64(f.Value)
		case protobuf.Fixed64Key(4):
			out = strconv.FormatFloat(f.Float(), 'g', -1, 64) // JSON has no infinities
		case protobuf.BytesKey(5):
			list := []any{}
			_ = protobuf.Each(f.Data, func(f *protobuf.Field) error {
				list = append(list, nested(f.Data, depth+1))
				return nil
			})
			out = list
		case protobuf.BytesKey(6):
			out = nestedMap(f.Data, depth)
		case protobuf.BytesKey(7):
			out = base64.StdEncoding.EncodeToString(f.Data)
		}
		return nil
	})
	return out
}

// nestedMap returns a KeyValueList.
func nestedMap(msg []byte, depth int) map[string]any {
	out := map[string]any{}
	_ = protobuf.Each(msg, func(f *protobuf.Field) error {
		name, value := "", any(nil)
		_ = protobuf.Each(f.Data, func(f *protobuf.Field) error {
			switch f.Key() {
			case protobuf.BytesKey(1):
				name = string(f.Data)
			case protobuf.BytesKey(2):
				value = nested(f.Data, depth+1)
			}
			return nil
		})
		out[name] = value
		return nil
	})
	return out
}

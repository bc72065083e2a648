// Package protomsg makes messages of protocol buffers for tests, field by field, with the coder of
// the protocol's owner: it shares no code with the readers that are tested.
package protomsg

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Message is the bytes of a message. Its methods return it with one more field, of the number n.
type Message []byte

// Bytes adds bytes, or a message.
func (m Message) Bytes(n protowire.Number, data []byte) Message {
	return protowire.AppendBytes(protowire.AppendTag(m, n, protowire.BytesType), data)
}

// Text adds a text.
func (m Message) Text(n protowire.Number, s string) Message { return m.Bytes(n, []byte(s)) }

// Varint adds an integer.
func (m Message) Varint(n protowire.Number, v uint64) Message {
	return protowire.AppendVarint(protowire.AppendTag(m, n, protowire.VarintType), v)
}

// Zigzag adds a sint32 or sint64.
func (m Message) Zigzag(n protowire.Number, v int64) Message {
	return m.Varint(n, protowire.EncodeZigZag(v))
}

// Float adds a double.
func (m Message) Float(n protowire.Number, v float64) Message {
	return protowire.AppendFixed64(protowire.AppendTag(m, n, protowire.Fixed64Type),
		math.Float64bits(v))
}

// Zigzags adds a repeated field of sint64, packed.
func (m Message) Zigzags(n protowire.Number, list ...int64) Message {
	var data []byte
	for _, v := range list {
		data = protowire.AppendVarint(data, protowire.EncodeZigZag(v))
	}
	return m.Bytes(n, data)
}

// Varints adds a repeated field of integers, packed.
func (m Message) Varints(n protowire.Number, list ...uint64) Message {
	var data []byte
	for _, v := range list {
		data = protowire.AppendVarint(data, v)
	}
	return m.Bytes(n, data)
}

// Floats adds a repeated field of doubles, packed.
func (m Message) Floats(n protowire.Number, list ...float64) Message {
	var data []byte
	for _, v := range list {
		data = protowire.AppendFixed64(data, math.Float64bits(v))
	}
	return m.Bytes(n, data)
}

// Fixed adds a fixed64 or sfixed64.
func (m Message) Fixed(n protowire.Number, v uint64) Message {
	return protowire.AppendFixed64(protowire.AppendTag(m, n, protowire.Fixed64Type), v)
}

// Fixeds adds a repeated field of fixed64, packed.
func (m Message) Fixeds(n protowire.Number, list ...uint64) Message {
	var data []byte
	for _, v := range list {
		data = protowire.AppendFixed64(data, v)
	}
	return m.Bytes(n, data)
}

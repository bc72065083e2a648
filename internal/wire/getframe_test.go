package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// TestParseGetFrame: each frame of a reply as bytes, whole, cut at every length, and
// with a byte more than it has.
func TestParseGetFrame(t *testing.T) {
	padding := uint64(1)<<31 + 5
	header := append([]byte{getHeader, 3}, "sum"...)
	header = binary.BigEndian.AppendUint32(header, 70_000)
	padded := append(binary.BigEndian.AppendUint32([]byte{getPadded}, uint32(padding)), 7, 8)
	old := append(binary.BigEndian.AppendUint64([]byte{getPaddedOld}, padding<<8), 7, 8)
	for _, c := range []struct {
		name     string
		payload  []byte
		want     GetFrame
		shortest int  // that is a frame
		more     bool // a byte more is part of it
	}{
		{"header", header, GetFrame{Kind: GetHeader, Aggr: []byte("sum"), AggrCount: 70_000}, len(header),
			false},
		{"data", []byte{getData, 7, 8}, GetFrame{Kind: GetData, Coded: []byte{7, 8}}, 1, true},
		{"padded", padded, GetFrame{Kind: GetData, Coded: []byte{7, 8}, Padding: padding}, 5, true},
		{"padded, old", old, GetFrame{Kind: GetData, Coded: []byte{7, 8}, Padding: padding << 8}, 9,
			true},
		{"end", []byte{getEnd}, GetFrame{Kind: GetEnd}, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseGetFrame(c.payload)
			if err != nil || got.Kind != c.want.Kind || !bytes.Equal(got.Aggr, c.want.Aggr) ||
				got.AggrCount != c.want.AggrCount ||
				!bytes.Equal(got.Coded, c.want.Coded) || got.Padding != c.want.Padding {
				t.Errorf("%x is %+v, %v, want %+v", c.payload, got, err, c.want)
			}
			for n := range c.payload {
				_, err := ParseGetFrame(c.payload[:n])
				bare := c.want.Kind == GetHeader && n == 1 // a header that says nothing
				if whole := n >= c.shortest || bare; whole != (err == nil) || !whole &&
					!errors.Is(err, ErrMalformed) {
					t.Errorf("%x, of %x: %v", c.payload[:n], c.payload, err)
				}
			}
			if _, err := ParseGetFrame(append(bytes.Clone(c.payload), 9)); c.more != (err == nil) {
				t.Errorf("a byte behind %x: %v", c.payload, err)
			}
		})
	}
	for op := range 256 {
		switch byte(op) {
		case getHeader, getData, getEnd:
		default:
			if _, err := ParseGetFrame([]byte{byte(op)}); !errors.Is(err, ErrMalformed) {
				t.Errorf("a frame of %02x alone: %v", op, err)
			}
		}
	}
}

package wire

import (
	"bytes"
	"strings"
	"testing"

	"dalmatiner/internal/codec/point"
)

func seed(f *testing.F, kinds ...string) {
	for _, v := range vectors(f) {
		for _, k := range kinds {
			if v.kind == k {
				f.Add(v.bytes)
			}
		}
	}
}

func FuzzRequest(f *testing.F) {
	seed(f, "request")
	f.Add([]byte{0x20, 1, 3, 1, 'b'})
	f.Fuzz(func(t *testing.T, payload []byte) {
		q, err := ParseRequest(payload)
		if err != nil {
			return
		}
		again, err := AppendRequest(nil, &q)
		if err != nil || !bytes.Equal(again, payload) {
			t.Fatalf("%x came back as %x, %v", payload, again, err)
		}
	})
}

func FuzzReply(f *testing.F) {
	seed(f, "names", "info", "error", "get", "getold", "getraw")
	f.Add(AppendAck(nil, Ack{1, 2, 3}))
	f.Fuzz(func(t *testing.T, payload []byte) {
		var encodings [][]byte
		if names, err := ParseNames(payload); err == nil {
			list, mark := BeginNames(nil)
			for _, n := range names {
				list = AppendName(list, n)
			}
			EndNames(list, mark)
			encodings = append(encodings, list)
		}
		if in, err := ParseInfo(payload); err == nil && (in.TTL != 0 || len(payload) == 25) {
			encodings = append(encodings, AppendInfo(nil, in))
		}
		if msg, ok := ParseError(payload); ok {
			encodings = append(encodings, AppendError(nil, msg))
		}
		if a, err := ParseAck(payload); err == nil {
			encodings = append(encodings, AppendAck(nil, a))
		}
		for _, e := range encodings {
			if !bytes.Equal(e, payload) {
				t.Errorf("%x came back as %x", payload, e)
			}
		}
		frame, err := ParseGetFrame(payload)
		if err != nil || frame.Kind != GetData {
			return
		}
		const limit = 1000
		var d Decoder
		if words, err := d.AppendWords(nil, frame, limit); err == nil && len(words) > limit {
			t.Errorf("%d words beyond the limit of %d", len(words), limit)
		}
		if pts, err := d.AppendTimestamped(nil, frame, limit); err == nil && len(pts) > limit {
			t.Errorf("%d timestamped points beyond the limit of %d", len(pts), limit)
		}
	})
}

// FuzzStream feeds a stream whole and in pieces: the calls, the bytes consumed
// and the error must be the same.
func FuzzStream(f *testing.F) {
	for _, v := range vectors(f) {
		if v.kind == "stream" || v.kind == "hbatch" {
			f.Add(v.bytes, uint8(1), false)
			f.Add(v.bytes, uint8(7), true)
		}
	}
	batch := AppendBatchPoint(AppendBatchStart(nil, 5), []byte("k"), point.FromInt(1))
	f.Add(AppendFlushAck(AppendBatchEnd(batch), 9), uint8(3), false)
	f.Fuzz(func(t *testing.T, stream []byte, piece uint8, timestamped bool) {
		open := Request{Op: OpAckStream, HPTS: timestamped}
		whole, wantErr, wantUsed := &recorder{timestamped: timestamped}, error(nil), 0
		wantUsed, wantErr = NewStreamParser(&open, MinStreamLimit).Parse(stream, whole, whole)

		pieces, used := &recorder{timestamped: timestamped}, 0
		p := NewStreamParser(&open, MinStreamLimit)
		var err error
		for end := 0; end < len(stream) && err == nil; {
			end = min(len(stream), end+1+int(piece))
			var n int
			n, err = p.Parse(stream[used:end], pieces, pieces)
			used += n
		}
		if used != wantUsed || errText(err) != errText(wantErr) {
			t.Fatalf("in pieces: %d bytes, %v; whole: %d bytes, %v", used, err, wantUsed, wantErr)
		}
		if a, b := strings.Join(pieces.calls, "\n"), strings.Join(whole.calls, "\n"); a != b {
			t.Fatalf("in pieces:\n%s\nwhole:\n%s", a, b)
		}
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func FuzzFrame(f *testing.F) {
	seed(f, "frame")
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, src []byte) {
		const limit = 1 << 10
		payload, rest, err := ParseFrame(src, limit)
		read, readErr := ReadFrame(bytes.NewReader(src), nil, limit)
		if (err == nil) != (readErr == nil) || err == nil && !bytes.Equal(payload, read) {
			t.Fatalf("parsed %x, %v; read %x, %v", payload, err, read, readErr)
		}
		if err == nil && !bytes.Equal(append(AppendFrame(nil, payload), rest...), src) {
			t.Fatalf("%x came back as %x and %x", src, payload, rest)
		}
	})
}

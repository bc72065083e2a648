package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
)

// recorder is a Sink that writes what it is told as text, and encodes it
// again.
type recorder struct {
	PointByPoint
	timestamped bool
	calls       []string
}

func (r *recorder) add(format string, args ...any) {
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func (r *recorder) Point(key []byte, slot, raw uint64) {
	r.add("point %q %d %s", key, slot, valueText(raw))
}

func (r *recorder) Points(key []byte, slot uint64, data []byte) {
	var vals []string
	for len(data) > 0 {
		v := valueText(point.Get(data))
		data = data[point.Size:]
		if r.timestamped {
			v += fmt.Sprintf("@%d", point.Get(data))
			data = data[point.Size:]
		}
		vals = append(vals, v)
	}
	r.add("points %q %d %v", key, slot, vals)
}

func (r *recorder) Flush()              { r.add("flush") }
func (r *recorder) FlushAck(seq uint64) { r.add("flushack %d", seq) }

func valueText(raw uint64) string {
	w, ok := point.Normalize(raw)
	if !ok || point.KindOf(w) != point.KindInt {
		return fmt.Sprintf("%016x", raw)
	}
	return fmt.Sprint(point.Int(w))
}

// streamVector parses b, shows the calls with the batch's borders, and encodes
// what was seen again.
func streamVector(b []byte, timestamped, inBatch bool) (string, []byte, error) {
	p := NewStreamParser(&Request{Op: OpStream2, HPTS: timestamped}, MinStreamLimit)
	if inBatch {
		p.inBatch, p.slot = true, 1500000000
	}
	r := &recorder{timestamped: timestamped}
	n, err := p.Parse(b, r, r)
	if err == nil && n != len(b) {
		err = fmt.Errorf("%d of %d bytes were consumed", n, len(b))
	}
	key := []byte("\x02my\x03key")
	calls := r.calls
	switch Op(b[0]) {
	case OpBatch:
		calls = append(append([]string{fmt.Sprintf("batch %d", p.slot)}, calls...), "end")
		again := AppendBatchPoint(AppendBatchStart(nil, p.slot), key, point.FromInt(7))
		return strings.Join(calls, "; "), AppendBatchEnd(again), err
	case OpFlush:
		return strings.Join(calls, "; "), AppendFlush(nil), err
	case OpEntry:
		again := AppendEntry(nil, key, 1500000000, point.FromInt(1), point.FromInt(2))
		if strings.HasPrefix(calls[0], "point ") {
			haggar := []byte("\x05agent\x06     3\x07metrics\x06    17")
			again = AppendEntry(nil, haggar, 1500000000, point.FromInt(500))
		}
		return strings.Join(calls, "; "), again, err
	}
	return strings.Join(calls, "; "), b, err
}

func TestStreamErrors(t *testing.T) {
	f := func(what string, stream []byte, limit int, kind error, mention ...string) {
		t.Helper()
		p := NewStreamParser(&Request{Op: OpStream}, limit)
		n, err := p.Parse(stream, &recorder{}, &recorder{})
		if !errors.Is(err, kind) {
			t.Errorf("%s: consumed %d, error %v, want %v", what, n, err, kind)
			return
		}
		for _, m := range mention {
			if !strings.Contains(err.Error(), m) {
				t.Errorf("%s: %v, want it to mention %s", what, err, m)
			}
		}
	}
	f("unknown opcode", []byte{6, 6, 7}, MinStreamLimit, ErrUnknownOpcode, "opcode 7", "byte 2")
	f("acknowledged flush on a classic stream", AppendFlushAck(nil, 1), MinStreamLimit,
		ErrUnknownOpcode, "0x21")
	odd := AppendEntry(nil, []byte("k"), 1, 1)
	odd[len(odd)-9] = 7
	f("points of 7 bytes", odd, MinStreamLimit, ErrMalformed, "7 bytes")
	big := AppendEntry(nil, []byte("k"), 1, make([]uint64, 20000)...)
	f("a long entry", big[:100], 100_000, ErrTooLarge, "160016", "100000")
}

func TestEntryAtTheLimit(t *testing.T) {
	const limit = 80_016
	words := make([]uint64, 10_000)
	p := NewStreamParser(&Request{Op: OpStream}, limit)
	r := &recorder{}
	stream := AppendEntry(nil, []byte("k"), 1, words...)
	if n, err := p.Parse(stream, r, r); err != nil || n != limit || len(r.calls) != 1 {
		t.Errorf("an entry of %d bytes with that limit: consumed %d, %d calls, %v", len(stream), n,
			len(r.calls), err)
	}
	stream = AppendEntry(nil, []byte("kk"), 1, words...)
	if _, err := p.Parse(stream, r, r); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte more: %v, want %v", err, ErrTooLarge)
	}
}

func TestNoMessageInsideABatch(t *testing.T) {
	p := NewStreamParser(&Request{Op: OpAckStream}, MinStreamLimit)
	r := &recorder{}
	stream := AppendBatchStart(nil, 9)
	stream = AppendBatchPoint(stream, []byte("a"), point.FromInt(1))
	if n, err := p.Parse(stream, r, r); n != len(stream) || err != nil || !p.inBatch {
		t.Fatalf("an open batch: consumed %d of %d, %v, in batch %t", n, len(stream), err, p.inBatch)
	}
	// What looks like a flush is the length of a name here.
	if n, err := p.Parse([]byte{6, 6}, r, r); n != 0 || err != nil {
		t.Fatalf("06 inside a batch: consumed %d, %v", n, err)
	}
	tail := AppendFlushAck(AppendBatchEnd(nil), 77)
	if n, err := p.Parse(tail, r, r); n != len(tail) || err != nil || p.inBatch {
		t.Fatalf("the end: consumed %d, %v, in batch %t", n, err, p.inBatch)
	}
	if got := strings.Join(r.calls, "; "); got != `point "a" 9 1; flushack 77` {
		t.Errorf("calls: %s", got)
	}
}

// drawStream draws a valid stream together with the calls it must cause.
func drawStream(t *rapid.T) (stream []byte, want []string) {
	key := rapid.SliceOfN(rapid.Byte(), 1, 40)
	val := rapid.Int64Range(-1000, 1000)
	slot := rapid.Uint64()
	for range rapid.IntRange(1, 12).Draw(t, "messages") {
		switch rapid.IntRange(0, 3).Draw(t, "message") {
		case 0:
			k, s := key.Draw(t, "key"), slot.Draw(t, "slot")
			vals := rapid.SliceOfN(val, 0, 5).Draw(t, "values")
			words := make([]uint64, len(vals))
			for i, v := range vals {
				words[i] = point.FromInt(v)
			}
			stream = AppendEntry(stream, k, s, words...)
			switch {
			case len(vals) == 1:
				want = append(want, fmt.Sprintf("point %q %d %d", k, s, vals[0]))
			case len(vals) > 1:
				want = append(want, fmt.Sprintf("points %q %d %v", k, s, vals))
			}
		case 1:
			s := slot.Draw(t, "slot")
			stream = AppendBatchStart(stream, s)
			for range rapid.IntRange(0, 5).Draw(t, "points") {
				k, v := key.Draw(t, "key"), val.Draw(t, "value")
				stream = AppendBatchPoint(stream, k, point.FromInt(v))
				want = append(want, fmt.Sprintf("point %q %d %d", k, s, v))
			}
			stream = AppendBatchEnd(stream)
		case 2:
			stream = AppendFlush(stream)
			want = append(want, "flush")
		case 3:
			s := slot.Draw(t, "seq")
			stream = AppendFlushAck(stream, s)
			want = append(want, fmt.Sprintf("flushack %d", s))
		}
	}
	return stream, want
}

func TestStreamSurvivesAnyCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream, want := drawStream(t)
		p := NewStreamParser(&Request{Op: OpAckStream}, MinStreamLimit)
		r := &recorder{}
		var buf []byte
		for len(stream) > 0 {
			n := rapid.IntRange(1, len(stream)).Draw(t, "piece")
			buf = append(buf, stream[:n]...)
			stream = stream[n:]
			used, err := p.Parse(buf, r, r)
			if err != nil {
				t.Fatal(err)
			}
			buf = buf[used:]
		}
		if got := strings.Join(r.calls, "\n"); got != strings.Join(want, "\n") || len(buf) > 0 {
			t.Fatalf("got\n%s\nwant\n%s\nand %d bytes left", got, strings.Join(want, "\n"), len(buf))
		}
	})
}

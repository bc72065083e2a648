package corpus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// magic begins a file; what follows it is one zstd frame with a checksum.
const magic = "dalmatiner corpus 1\n"

// maxPlain bounds what a file may hold, before compression.
const maxPlain = 1 << 26

var errCut = errors.New("it ends within a field")

// Encode returns the file of a corpus.
func Encode(c *Corpus) ([]byte, error) {
	plain, err := Plain(c)
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression),
		zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return z.EncodeAll(plain, []byte(magic)), z.Close()
}

// Plain returns what the file of a corpus compresses: a dump of its columns, one
// after the other, as differences. What a general compressor makes of it is a
// bound to compare a store with.
func Plain(c *Corpus) ([]byte, error) {
	out := appendString(nil, c.Name)
	out = appendString(out, c.About)
	out = binary.AppendVarint(out, c.Interval)
	out = binary.AppendUvarint(out, uint64(len(c.Series)))
	var last []int64
	for i := range c.Series {
		s := &c.Series[i]
		if len(s.Times) != len(s.Values) {
			return nil, fmt.Errorf("series %s has %d times and %d values", s, len(s.Times), len(s.Values))
		}
		out = binary.AppendUvarint(out, uint64(len(s.Labels)))
		for _, l := range s.Labels {
			out = appendString(appendString(out, l.Name), l.Value)
		}
		out = appendTimes(out, s.Times, last, c.Interval)
		last = s.Times
		out = appendValues(out, s.Values)
	}
	if len(out) > maxPlain {
		return nil, fmt.Errorf("it has %d bytes before compression, the limit is %d", len(out), maxPlain)
	}
	return out, nil
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// How the times of a series stand in a file.
const (
	sameTimes = 0 // as those of the series before
	ownTimes  = 1 // a count; the first; then how much more than the distance before each distance is
)

func appendTimes(dst []byte, times, last []int64, interval int64) []byte {
	if len(times) > 0 && equal(times, last) {
		return append(dst, sameTimes)
	}
	dst = append(dst, ownTimes)
	dst = binary.AppendUvarint(dst, uint64(len(times)))
	at, distance := int64(0), int64(0)
	for i, t := range times {
		dst = binary.AppendVarint(dst, t-at-distance)
		at, distance = t, t-at
		if i == 0 {
			distance = interval
		}
	}
	return dst
}

func equal(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Decode reads a file. Damage is an error; what is allocated is bounded by what
// the file holds.
func Decode(raw []byte) (*Corpus, error) {
	frame, ok := bytes.CutPrefix(raw, []byte(magic))
	if !ok {
		return nil, errors.New("it is no corpus of this format")
	}
	z, err := zstd.NewReader(bytes.NewReader(frame), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	plain, err := io.ReadAll(io.LimitReader(z, maxPlain+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > maxPlain {
		return nil, fmt.Errorf("it has more than %d bytes before compression", maxPlain)
	}
	d := decoder{rest: plain}
	c := d.corpus()
	switch {
	case d.err != nil:
		return nil, d.err
	case len(d.rest) > 0:
		return nil, fmt.Errorf("%d bytes follow its end", len(d.rest))
	}
	return c, nil
}

// decoder takes fields off the front of rest. After an error it returns zeros.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.rest = nil
}

func (d *decoder) number() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail(errCut)
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count reads a number of things that take at least a byte each.
func (d *decoder) count() int {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > uint64(len(d.rest)-n) {
		d.fail(errCut)
		return 0
	}
	d.rest = d.rest[n:]
	return int(v)
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.rest) {
		d.fail(errCut)
		return nil
	}
	out := d.rest[:n]
	d.rest = d.rest[n:]
	return out
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) text() string { return string(d.bytes(d.count())) }

func (d *decoder) corpus() *Corpus {
	c := &Corpus{Name: d.text(), About: d.text(), Interval: d.number()}
	if d.err == nil && c.Interval <= 0 {
		d.fail(fmt.Errorf("its interval is %d ms", c.Interval))
	}
	var last []int64
	for range d.count() {
		s := Series{}
		for range d.count() {
			s.Labels = append(s.Labels, Label{d.text(), d.text()})
		}
		if d.err == nil && len(s.Labels) == 0 {
			d.fail(errors.New("a series has no name"))
		}
		s.Times = d.times(last, c.Interval)
		last = s.Times
		s.Values = d.values(len(s.Times))
		if d.err != nil {
			return nil
		}
		c.Series = append(c.Series, s)
	}
	return c
}

func (d *decoder) times(last []int64, interval int64) []int64 {
	switch form := d.byte(); form {
	case sameTimes:
		return last
	case ownTimes:
	default:
		d.fail(fmt.Errorf("times have the unknown form %d", form))
		return nil
	}
	out := make([]int64, d.count())
	at, distance := int64(0), int64(0)
	for i := range out {
		out[i] = at + distance + d.number()
		at, distance = out[i], out[i]-at
		if i == 0 {
			distance = interval
		} else if distance <= 0 {
			d.fail(errors.New("times do not ascend"))
		}
		if d.err != nil {
			return nil
		}
	}
	return out
}

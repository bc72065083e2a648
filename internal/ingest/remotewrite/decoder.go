package remotewrite

import (
	"errors"
	"fmt"
	"net/netip"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/histogram"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/ingest/protobuf"
)

// decoder is the way of one request.
type decoder struct {
	server  *Server
	peer    netip.AddrPort
	v       Version
	n       numbers
	to      *acked.Writer
	written Written
	bad     error // of the first series that is none

	symbols [][]byte // of V2

	// Of the series under way.
	name                []byte
	list                []labels.Label
	samples, histograms [][]byte // their messages

	h       native
	classic histogram.Series
}

// numbers are those of fields.
type numbers struct {
	series, metadata                       int // of a request
	labels, samples, histograms, exemplars int // of a series
}

var fieldNumbers = [...]numbers{
	V1: {series: 1, metadata: 3, labels: 1, samples: 2, exemplars: 3, histograms: 4},
	V2: {series: 5, metadata: -1, labels: 1, samples: 2, histograms: 3, exemplars: 4},
}

// symbolsField is that of the texts of V2.
const symbolsField = 4

var (
	errSymbols  = errors.New("the first symbol is not the empty text")
	errSymbol   = errors.New("a label that is none of the symbols")
	errNegative = errors.New("a time before 1970")
)

// check reads a whole message, so that nothing is stored of one that is cut off, and collects its
// symbols.
func (d *decoder) check(msg []byte) error {
	for len(msg) > 0 {
		f, rest, err := protobuf.Next(msg)
		switch {
		case err != nil:
			return err
		case d.v == V2 && f.Number == symbolsField && f.Wire == protobuf.Bytes:
			d.symbols = append(d.symbols, f.Data)
		case f.Number == d.n.series && f.Wire == protobuf.Bytes:
			for part := f.Data; len(part) > 0; {
				if _, part, err = protobuf.Next(part); err != nil {
					return err
				}
			}
		}
		msg = rest
	}
	if len(d.symbols) > 0 && len(d.symbols[0]) > 0 {
		return errSymbols
	}
	return nil
}

// store stores the series of a message that was checked.
func (d *decoder) store(msg []byte) {
	for len(msg) > 0 {
		f, rest, err := protobuf.Next(msg)
		if err != nil {
			return // it was checked
		}
		switch {
		case f.Number == d.n.series && f.Wire == protobuf.Bytes:
			d.series(f.Data)
		case f.Number == d.n.metadata:
			d.server.writers.Count("metadata_not_kept", 1)
		}
		msg = rest
	}
}

// refuse counts what of a request is not stored.
func (d *decoder) refuse(reason string, err error) {
	if d.bad == nil {
		d.bad = fmt.Errorf("series %q: %w", d.name, err)
	}
	d.server.writers.Refuse(reason, d.peer, []byte(err.Error()))
}

// series stores a series, whose labels may stand anywhere in it.
func (d *decoder) series(msg []byte) {
	d.name, d.list = nil, d.list[:0]
	d.samples, d.histograms = d.samples[:0], d.histograms[:0]
	exemplars := 0
	rest := msg
	if d.v == V1 {
		rest = d.shortLabels(msg)
	}
	for len(rest) > 0 {
		f, behind, _ := protobuf.Next(rest) // it was checked
		rest = behind
		switch {
		case f.Number == d.n.labels: // those of V2 are packed or not
			if err := d.label(&f); err != nil {
				d.refuse("bad_labels", err)
				return
			}
		case f.Key() == protobuf.BytesKey(d.n.samples):
			d.samples = append(d.samples, f.Data)
		case f.Key() == protobuf.BytesKey(d.n.histograms):
			d.histograms = append(d.histograms, f.Data)
		case f.Number == d.n.exemplars:
			exemplars++
		}
	}
	if len(d.samples) > 0 {
		if err := d.to.Series(d.list, d.name); err != nil {
			d.refuse("bad_labels", err)
			return
		}
	}
	d.storeAll(d.samples, d.sample)
	d.storeAll(d.histograms, d.histogram) // their series have other names
	if exemplars > 0 {
		d.server.writers.Count("exemplar_not_kept", exemplars)
	}
}

// storeAll stores samples or histograms. A bad one is refused alone.
func (d *decoder) storeAll(messages [][]byte, store func(msg []byte) error) {
	for _, msg := range messages {
		if err := store(msg); err != nil {
			d.refuse("bad_value", err)
		}
	}
}

// shortLabels takes labels off the begin of a series of V1, as long as they have the form that
// all senders give them: name and value in this order, of less than 128 bytes together. Most of
// the bytes of a message are these.
func (d *decoder) shortLabels(msg []byte) (rest []byte) {
	const (
		label = 1<<3 | protobuf.Bytes
		name  = 1<<3 | protobuf.Bytes
		value = 2<<3 | protobuf.Bytes
	)
	for len(msg) > 2 && msg[0] == label && msg[1] < 0x80 && 2+int(msg[1]) <= len(msg) {
		end := 2 + int(msg[1])
		l := msg[2:end]
		if len(l) < 4 || l[0] != name || 4+int(l[1]) > len(l) {
			break
		}
		n := 2 + int(l[1])
		if l[n] != value || n+2+int(l[n+1]) != len(l) {
			break
		}
		d.add(labels.Label{Name: l[2:n], Value: l[n+2:]})
		msg = msg[end:]
	}
	return msg
}

// label takes a label of V1, or the numbers of those of V2.
func (d *decoder) label(f *protobuf.Field) error {
	var l labels.Label
	if d.v == V1 {
		for part := f.Data; len(part) > 0; {
			f, rest, err := protobuf.Next(part)
			if err != nil {
				return err
			}
			switch f.Key() {
			case protobuf.BytesKey(1):
				l.Name = f.Data
			case protobuf.BytesKey(2):
				l.Value = f.Data
			}
			part = rest
		}
		d.add(l)
		return nil
	}
	odd, bad := false, false
	err := protobuf.Packed(f, func(ref uint64) {
		if ref >= uint64(len(d.symbols)) {
			bad = true
			return
		}
		if odd = !odd; odd {
			l.Name = d.symbols[ref]
			return
		}
		l.Value = d.symbols[ref]
		d.add(l)
	})
	if err == nil && (bad || odd) {
		err = errSymbol
	}
	return err
}

func (d *decoder) add(l labels.Label) {
	if string(l.Name) == "__name__" {
		d.name = l.Value
		return
	}
	d.list = append(d.list, l)
}

func (d *decoder) sample(msg []byte) error {
	v, ms := 0.0, int64(0)
	for len(msg) > 0 {
		f, rest, err := protobuf.Next(msg)
		if err != nil {
			return err
		}
		switch f.Key() {
		case protobuf.Fixed64Key(1):
			v = f.Float()
		case protobuf.VarintKey(2):
			ms = int64(f.Value)
		}
		msg = rest
	}
	if ms < 0 {
		return errNegative
	}
	d.to.Point(ms, acked.Word(v))
	d.written.Samples++
	return nil
}

// histogram stores a native histogram as the series of a classic one: name_bucket with the label
// le, name_sum and name_count.
func (d *decoder) histogram(msg []byte) error {
	h := &d.h
	if err := h.parse(msg); err != nil {
		return err
	}
	if h.ms < 0 {
		return errNegative
	}
	if acked.IsStale(h.Sum) {
		h.Count, h.ZeroCount = h.Sum, 0
		h.Positive, h.Negative = histogram.Side{}, histogram.Side{}
	}
	list, err := h.Classic()
	if err != nil {
		return err
	}
	whole := histogram.Labelled{Name: d.name, Labels: d.list, Count: h.Count, Sum: h.Sum,
		Boundaries: list}
	err = d.classic.Store(d.to.Appender, &whole, func(word uint64) { d.to.Point(h.ms, word) })
	if err != nil {
		return err
	}
	d.written.Histograms++
	return nil
}

package histogram

import (
	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/appender"
	"dalmatiner/internal/ingest/labels"
)

// Series stores histograms as the series of classic ones. It keeps memory for the next one, and is
// not for concurrent use.
type Series struct {
	name  []byte
	list  []labels.Label
	bound []byte // le
}

// Labelled is a histogram with its name and labels.
type Labelled struct {
	Name       []byte
	Labels     []labels.Label
	Count, Sum float64
	Boundaries []Boundary
}

// Store begins each series of a histogram and calls point with its word, which hands the point
// over: name_count, name_sum, and name_bucket for each boundary, with the label le. The error is
// one of the appender.
func (s *Series) Store(to *appender.Appender, h *Labelled, point func(word uint64)) error {
	one := func(suffix string, v float64) error {
		s.name = append(append(s.name[:0], h.Name...), suffix...)
		s.list = append(s.list[:0], h.Labels...)
		if s.bound != nil {
			s.list = append(s.list, labels.Label{Name: le, Value: s.bound})
		}
		if err := to.Series(s.list, s.name); err != nil {
			return err
		}
		point(acked.Word(v))
		return nil
	}
	s.bound = nil
	if err := one("_count", h.Count); err != nil {
		return err
	}
	if err := one("_sum", h.Sum); err != nil {
		return err
	}
	for _, b := range h.Boundaries {
		s.bound = AppendBound(s.bound[:0], b.LE)
		if err := one("_bucket", b.Count); err != nil {
			return err
		}
	}
	return nil
}

var le = []byte("le")

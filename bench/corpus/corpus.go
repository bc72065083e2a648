// Package corpus keeps recordings of real series in files: what was measured,
// when, and the values in the digits in which they were told. The files are in
// data; DESIGN.md says what is in them, and how they are made.
package corpus

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// Dir is where the recordings of the repository lie, seen from its root.
const Dir = "bench/corpus/data"

const suffix = ".corpus"

// Corpus is a recording.
type Corpus struct {
	Name     string
	About    string // what was recorded, a sentence
	Interval int64  // milliseconds between two samples of a series, as it was wanted
	Series   []Series
}

// Series is what was recorded of one series.
type Series struct {
	Labels []Label  // the first is the name; its own name is __name__
	Times  []int64  // Unix milliseconds, ascending; series of one scrape share the slice
	Values []string // as many, in the digits of the source
}

// Label is a name and its value.
type Label struct{ Name, Value string }

// String returns a series' labels as Prometheus writes them.
func (s *Series) String() string {
	var b strings.Builder
	for i, l := range s.Labels {
		switch i {
		case 0:
			b.WriteString(l.Value)
			continue
		case 1:
			b.WriteByte('{')
		default:
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s=%q", l.Name, l.Value)
	}
	if len(s.Labels) > 1 {
		b.WriteByte('}')
	}
	return b.String()
}

// Key returns a series' key in the store: the name, and a part for each other
// label.
func (s *Series) Key() []byte {
	var key []byte
	for i, l := range s.Labels {
		if i == 0 {
			key = metric.AppendPart(key, l.Value)
			continue
		}
		key = metric.AppendPart(key, l.Name+"="+l.Value)
	}
	return key
}

// Word returns the store's word of a value: an integer where the digits are
// one, else a float.
func Word(value string) (uint64, error) {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		return point.FromInt(n), nil
	}
	f, err := strconv.ParseFloat(value, 64)
	return point.FromFloat(f), err
}

// Points returns the number of samples of all series.
func (c *Corpus) Points() int64 {
	n := int64(0)
	for i := range c.Series {
		n += int64(len(c.Series[i].Values))
	}
	return n
}

// Span returns the times of the first sample and of the last; zeros of a corpus
// without samples.
func (c *Corpus) Span() (first, last int64) {
	for i := range c.Series {
		t := c.Series[i].Times
		if len(t) == 0 {
			continue
		}
		if first == 0 || t[0] < first {
			first = t[0]
		}
		last = max(last, t[len(t)-1])
	}
	return first, last
}

// Thin leaves out samples that come in the same interval as the one before:
// a store of slots keeps one of each. It returns how many.
func (c *Corpus) Thin() int {
	out := 0
	for i := range c.Series {
		s := &c.Series[i]
		kept := Series{Labels: s.Labels}
		for j, at := range s.Times {
			if n := len(kept.Times); n > 0 && at/c.Interval == kept.Times[n-1]/c.Interval {
				out++
				continue
			}
			kept.Times, kept.Values = append(kept.Times, at), append(kept.Values, s.Values[j])
		}
		*s = kept
	}
	return out
}

// Move adds to the time of every sample.
func (c *Corpus) Move(by int64) {
	for i := range c.Series {
		moved := slices.Clone(c.Series[i].Times)
		for j := range moved {
			moved[j] += by
		}
		c.Series[i].Times = moved
	}
}

// Each calls fn for every time at which there are samples, in order, with the
// series that have one then and the index of it. The slices are reused.
func (c *Corpus) Each(fn func(at int64, series, index []int) error) error {
	next := make([]int, len(c.Series))
	var series, index []int
	for {
		var at int64
		series, index = series[:0], index[:0]
		for i := range c.Series {
			t := c.Series[i].Times
			if next[i] == len(t) || len(series) > 0 && t[next[i]] > at {
				continue
			}
			if len(series) > 0 && t[next[i]] < at {
				series, index = series[:0], index[:0]
			}
			at = t[next[i]]
			series, index = append(series, i), append(index, next[i])
		}
		if len(series) == 0 {
			return nil
		}
		for k, i := range series {
			next[i] = index[k] + 1
		}
		if err := fn(at, series, index); err != nil {
			return err
		}
	}
}

// Names returns the names of the recordings in a directory, sorted.
func Names(dir string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s has no recording: run from the root of the repository", dir)
	}
	for i, path := range found {
		found[i] = strings.TrimSuffix(filepath.Base(path), suffix)
	}
	return found, err
}

// Load reads a recording of a directory.
func Load(dir, name string) (*Corpus, error) {
	raw, err := os.ReadFile(filepath.Join(dir, name+suffix))
	if errors.Is(err, fs.ErrNotExist) {
		names, _ := Names(dir) // the error below says more
		return nil, fmt.Errorf("there is no recording %q in %s, there are %q", name, dir, names)
	}
	if err != nil {
		return nil, err
	}
	c, err := Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", name, err)
	}
	return c, nil
}

// Save writes a recording to its place in a directory and returns the number of
// bytes.
func Save(dir string, c *Corpus) (int, error) {
	raw, err := Encode(c)
	if err != nil {
		return 0, err
	}
	return len(raw), os.WriteFile(filepath.Join(dir, c.Name+suffix), raw, 0o644)
}

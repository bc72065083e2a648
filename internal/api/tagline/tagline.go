// Package tagline reads and writes changes of tags as lines of JSON.
//
//	{"bucket":"b","metric":["a","b"],"collection":"b","name":["cpu"],"tags":{"ns:host":"web1"},"remove":["old"],"replace":false}
//
// Names and values have the text escape of the query language; a namespace ends at the first
// colon that is not escaped.
package tagline

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
)

// MaxLine is the longest line in bytes.
const MaxLine = 1 << 20

// written is a change as it is written as JSON.
type written struct {
	Bucket     string            `json:"bucket"`
	Metric     []string          `json:"metric"`
	Collection *string           `json:"collection,omitempty"`
	Name       []string          `json:"name,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
	Remove     []string          `json:"remove,omitempty"`
	Replace    bool              `json:"replace,omitempty"`
}

// parse returns the change that a line says, except its clock. bucketID returns the id of a bucket;
// its errors are returned. The change is valid (tags.Change.Check) and the caller's. The memory of
// l is used again.
func (l *line) parse(src []byte,
	bucketID func(name string) (uint64, error)) (c tags.Change, err error) {
	p := parser{src: string(src)}
	if err := p.line(l); err != nil {
		return c, err
	}
	bucket, err := metric.Unescape(l.bucket)
	if err != nil || bucket == "" {
		return c, fmt.Errorf("bucket %q: want the name of a bucket", l.bucket)
	}
	if c.Bucket, err = bucketID(bucket); err != nil {
		return c, err
	}
	if len(l.metric) == 0 {
		return c, fmt.Errorf("metric: want the parts of a metric")
	}
	if c.Key, err = metric.KeyFromQuoted(l.metric...); err != nil {
		return c, fmt.Errorf("metric %.200q: %w", l.metric, err)
	}
	c.Collection = []byte(bucket)
	if l.hasCollection {
		if c.Collection, err = unescape("collection", l.collection); err != nil {
			return c, err
		}
	}
	if len(l.name) > 0 {
		if c.Name, err = metric.KeyFromQuoted(l.name...); err != nil {
			return c, fmt.Errorf("name %q: %w", l.name, err)
		}
	}
	c.Replace = l.replace
	if err := l.parseTags(&c); err != nil {
		return c, err
	}
	return c, c.Check()
}

func (l *line) parseTags(c *tags.Change) (err error) {
	if len(l.tags) > 0 {
		c.Set = make([]tags.Tag, len(l.tags))
	}
	for i, from := range l.tags {
		t := &c.Set[i]
		if t.TagName, err = ParseName(from.name); err == nil {
			t.Value, err = unescape("value", from.value)
		}
		if err == nil && tags.IsImplied(t.Namespace, t.Name) {
			err = sameAsKey(t, c.Key)
		}
		if err != nil {
			return fmt.Errorf("tag %.200q: %w", from.name, err)
		}
	}
	if twice := twice(l.tags); twice != "" {
		return fmt.Errorf("tag %.200q is there twice", twice)
	}
	for _, text := range l.remove {
		n, err := ParseName(text)
		if err != nil {
			return err
		}
		if tags.IsImplied(n.Namespace, n.Name) {
			return fmt.Errorf("tag %.200q: the metric says it, and it cannot be removed", text)
		}
		c.Removed = append(c.Removed, n)
	}
	return nil
}

// sameAsKey refuses an implied tag that is not as the key of its series says. Proxies of the
// original send those that are, which say nothing new.
func sameAsKey(t *tags.Tag, key []byte) error {
	switch is := tags.ImpliedValue(t.TagName, key); {
	case is == nil:
		return errors.New("the metric has no such part")
	case string(is) != string(t.Value):
		return fmt.Errorf("it is %q by the metric, and cannot be %.200q", is, t.Value)
	}
	return nil
}

// twice returns a name that two tags have, or nothing.
func twice(list []textTag) string {
	if len(list) > 16 {
		seen := make(map[string]bool, len(list))
		for _, t := range list {
			if seen[t.name] {
				return t.name
			}
			seen[t.name] = true
		}
		return ""
	}
	for i := range list {
		for j := range i {
			if list[i].name == list[j].name {
				return list[i].name
			}
		}
	}
	return ""
}

func unescape(what, text string) ([]byte, error) {
	s, err := metric.Unescape(text)
	if err != nil {
		return nil, fmt.Errorf("%.200s: %w", what, err)
	}
	return []byte(s), nil
}

// ParseName reads a tag's name as TagName.Text writes it: the namespace ends at the first colon
// that is not escaped.
func ParseName(text string) (n tags.TagName, err error) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case ':':
			if n.Namespace, err = unescape(text, text[:i]); err != nil {
				return n, err
			}
			n.Name, err = unescape(text, text[i+1:])
			return n, err
		}
	}
	n.Name, err = unescape(text, text)
	return n, err
}

// Append appends the line that says what a change does, with its end. bucket is the name of its
// bucket. A change that takes a series out of its collection has no line: dst is returned.
func Append(dst []byte, bucket string, c *tags.Change) ([]byte, error) {
	if c.Leave {
		return dst, nil
	}
	l := written{Bucket: metric.Escape(bucket), Metric: elements(c.Key), Replace: c.Replace}
	if string(c.Collection) != bucket {
		text := metric.Escape(string(c.Collection))
		l.Collection = &text
	}
	if len(c.Name) > 0 {
		l.Name = elements(c.Name)
	}
	if len(c.Set) > 0 {
		l.Tags = make(map[string]string, len(c.Set))
	}
	for i := range c.Set {
		l.Tags[c.Set[i].TagName.Text()] = metric.Escape(string(c.Set[i].Value))
	}
	for _, n := range c.Removed {
		l.Remove = append(l.Remove, n.Text())
	}
	slices.Sort(l.Remove)
	text, err := json.Marshal(&l)
	return append(append(dst, text...), '\n'), err
}

// elements returns the texts that KeyFromQuoted makes a key of.
func elements(key []byte) []string {
	parts, ok := metric.Parts(key)
	if !ok || len(parts) == 0 {
		return []string{`\=` + metric.Escape(string(key))}
	}
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = metric.Escape(string(p))
	}
	return out
}

package plan

import (
	"bytes"
	"slices"
	"strings"

	"dalmatiner/internal/query/dql"
)

// Choice is what chose metrics of a bucket: a pattern, or the key of one. A result depends on no
// other names.
type Choice struct {
	Bucket string
	key    []byte
	parts  []dql.Part // of a pattern; nil for a key
	compat bool       // of the pattern only what stands before the first * counts
}

// choiceSize is what a choice takes, in bytes, beside its key or pattern.
const choiceSize = 96

// Bytes returns the memory of the choice.
func (c *Choice) Bytes() int64 {
	n := choiceSize + int64(len(c.Bucket)+len(c.key))
	for _, part := range c.parts {
		n += 24 + int64(len(part.Text))
	}
	return n
}

// choose notes what metrics are chosen by.
func (p *planner) choose(s *dql.Select) {
	c := Choice{Bucket: s.Bucket, key: s.Metric.Key, parts: s.Metric.Parts, compat: p.opt.Compat}
	if !slices.ContainsFunc(p.out.Chosen, c.same) {
		p.out.Chosen = append(p.out.Chosen, c)
	}
}

func (c *Choice) same(o Choice) bool {
	return c.Bucket == o.Bucket && bytes.Equal(c.key, o.key) && slices.Equal(c.parts, o.parts)
}

// MayTake reports whether a key that begins with a prefix may be chosen.
func (c *Choice) MayTake(prefix string) bool {
	if c.parts == nil {
		return strings.HasPrefix(string(c.key), prefix)
	}
	for _, part := range c.parts {
		if prefix == "" || part.Any && c.compat {
			return true
		}
		n := 1 + int(prefix[0])
		if !part.Any {
			// The prefix may end within the part.
			if int(prefix[0]) != len(part.Text) ||
				!strings.HasPrefix(part.Text, prefix[1:min(n, len(prefix))]) {
				return false
			}
		}
		if len(prefix) < n {
			return true
		}
		prefix = prefix[n:]
	}
	return prefix == "" || c.compat
}

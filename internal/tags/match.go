package tags

import "dalmatiner/internal/tags/match"

// matcherOf returns what tells the values of Equal, Glob and Regexp.
func matcherOf(c *Cond) (*match.Matcher, error) {
	switch {
	case c.Op == Equal:
		return &match.Matcher{Exact: [][]byte{c.Value}}, nil
	case c.Op == Glob && len(c.Pieces) == 1:
		return &match.Matcher{Exact: c.Pieces}, nil
	case c.Op == Glob:
		return &match.Matcher{Pieces: c.Pieces}, nil
	}
	return match.Regexp(c.Pattern)
}

package reference

import (
	"errors"
	"slices"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/dql"
)

// ErrPairs is returned for an operator between patterns where it is not known which of their
// series belong together.
var ErrPairs = errors.New("which series belong together is not known")

// pairs applies an operator to the series of both sides that belong together: whose stars
// stand for the same, or each with the only one of a side without stars.
//
// It combines them as diff does: both have to take part in a step, also in a sum.
func (e *evaluator) pairs(b *dql.Binary, before lookback) ([]Series, error) {
	left, err := e.eval(b.L, withHeld(before))
	if err != nil {
		return nil, err
	}
	right, err := e.eval(b.R, withHeld(before))
	if err != nil || len(left) == 0 || len(right) == 0 {
		return nil, err
	}
	l, r := starsOf(left), starsOf(right)
	all := b.On == nil && (len(left) == 1 && l == 0 || len(right) == 1 && r == 0)
	if !all && !joinable(b, left, l, right, r) {
		return nil, ErrPairs
	}
	f := combination{name: between[b.Op], all: true}
	var list []Series
	for _, x := range left {
		for _, y := range right {
			if !all && !same(b, x, y) {
				continue
			}
			one, err := combine(f, []Series{x, y}, before)
			if err != nil {
				return nil, err
			}
			one[0].stars = x.stars
			if len(x.stars) == 0 {
				one[0].stars = y.stars
			}
			list = append(list, one...)
		}
	}
	return list, nil
}

// joinable reports whether it is known which series belong together: both sides have as many
// stars, or as many as ON asks for, and each series is the only one of its side for the other.
func joinable(b *dql.Binary, left []Series, l int, right []Series, r int) bool {
	if b.On == nil && (l != r || l == 0) {
		return false
	}
	for _, k := range b.On {
		if k.Star > int64(min(l, r)) {
			return false
		}
	}
	for _, side := range [][]Series{left, right} {
		for i := range side {
			for k := range i {
				if same(b, side[i], side[k]) {
					return false
				}
			}
		}
	}
	return true
}

// same reports whether two series stand for the same.
func same(b *dql.Binary, x, y Series) bool {
	for _, k := range b.On {
		if x.stars[k.Star-1] != y.stars[k.Star-1] {
			return false
		}
	}
	return b.On != nil || slices.Equal(x.stars, y.stars)
}

// starsOf returns how many stars all of some series have, 0 where they differ.
func starsOf(list []Series) int {
	n := len(list[0].stars)
	for _, s := range list {
		if len(s.stars) != n {
			return 0
		}
	}
	return n
}

// standFor returns what the stars of a pattern stand for in a key.
func standFor(pattern []dql.Part, key []byte) []string {
	var list []string
	parts, _ := metric.Parts(key)
	for i, p := range pattern {
		if p.Any {
			list = append(list, string(parts[i]))
		}
	}
	return list
}

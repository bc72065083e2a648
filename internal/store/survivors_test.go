package store

import (
	"slices"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
)

// place is a slot of a series of a model.
type place struct {
	series int
	slot   int64
}

// survivors says which of the last points sent a crash has left, when it has left n.
// Of each place these are the first ones, after which it holds what is read there.
// before is what places held before these points; one that cannot be read may hold
// anything. Several choices can explain what is read, since a point may make no
// difference; it is false when none does.
func survivors(last []churnPoint, n int, before map[place]uint64,
	is func(place) (word uint64, read bool)) (left []bool, ok bool) {
	places := make(map[place][]int)
	var order []place
	for i, p := range last {
		at := place{p.series, p.slot}
		if places[at] == nil {
			order = append(order, at)
		}
		places[at] = append(places[at], i)
	}
	left = make([]bool, len(last))
	var open []place
	ways := make(map[place][]int) // of those that are open: how many points there can be
	for _, at := range order {
		possible := possible(last, places[at], before[at], at, is)
		switch len(possible) {
		case 0:
			return nil, false
		case 1:
			n -= possible[0]
			choose(left, places[at], possible[0])
		default:
			open, ways[at] = append(open, at), possible
		}
	}
	return left, n >= 0 && chooseAll(left, n, open, ways, places)
}

// possible returns how many of the points of a place with the given numbers there
// can be.
func possible(last []churnPoint, numbers []int, before uint64, at place,
	is func(place) (uint64, bool)) (n []int) {
	word, read := is(at)
	for k, state := 0, before; ; k++ {
		if !read || state == word {
			n = append(n, k)
		}
		if k == len(numbers) {
			return n
		}
		state = point.Overwrite(last[numbers[k]].word, state)
	}
}

func choose(left []bool, numbers []int, n int) {
	for _, i := range numbers[:n] {
		left[i] = true
	}
}

// chooseAll chooses of open places one of their ways each, so that the points are n.
func chooseAll(left []bool, n int, open []place, ways map[place][]int,
	places map[place][]int) bool {
	reached := make([][]int, len(open)+1) // by place and sum: the way taken there + 1
	reached[0] = make([]int, n+1)
	reached[0][0] = 1
	for i, at := range open {
		reached[i+1] = make([]int, n+1)
		for sum, ok := range reached[i] {
			for _, k := range ways[at] {
				if ok != 0 && sum+k <= n {
					reached[i+1][sum+k] = k + 1
				}
			}
		}
	}
	if reached[len(open)][n] == 0 {
		return false
	}
	for i := len(open); i > 0; i-- {
		k := reached[i][n] - 1
		choose(left, places[open[i-1]], k)
		n -= k
	}
	return true
}

// commit says that the writes so far were handed to the log. In between, those of
// different places may have come there in any order.
func (h *history) commit() { h.commits = append(h.commits, len(h.writes)) }

// total returns the points of the first n writes.
func (h *history) total(n int) int {
	if n == 0 {
		return 0
	}
	return h.points[n-1]
}

// around returns the last commit at which no more than the given points had been
// sent, and the next one. Where no commits are noted, each write is one.
func (h *history) around(points int) (whole, next int) {
	commits := append(slices.Clone(h.commits), len(h.writes))
	if len(h.commits) == 0 {
		for i := range h.writes {
			commits = append(commits, i)
		}
		slices.Sort(commits)
	}
	for _, next = range commits {
		if h.total(next) > points {
			return whole, next
		}
		whole = next
	}
	return whole, whole
}

// left returns what there is of the history, by the account and by what is read:
// all of some commits, and of the one behind them the first points of each place.
func (h *history) left(t fataler, s *Store, info buckets.Info) history {
	t.Helper()
	counts := s.Account().Total(info.ID)
	n := int(counts.ReceivedPoints())
	whole, next := h.around(n)
	var l history
	for _, w := range h.writes[:whole] {
		l.add(w)
	}
	if rest := n - h.total(whole); rest > 0 {
		for _, w := range l.torn(t, s, h.writes[whole:next], rest) {
			l.add(w)
		}
	}
	if len(h.commits) > 0 {
		l.commit()
	}
	return l
}

// torn returns the points of a commit that are there behind the history.
func (h *history) torn(t fataler, s *Store, commit []call, points int) (there []call) {
	t.Helper()
	var last []churnPoint
	words := make(map[int][]uint64)
	for _, w := range commit {
		if words[w.Series] == nil {
			words[w.Series] = readAll(t, s, "b", w.Series, modelFrom, modelSlots)
		}
		for i, v := range w.Words {
			last = append(last, churnPoint{w.Series, w.Slot + int64(i), v})
		}
	}
	before := make(map[place]uint64)
	for at, w := range h.state(len(h.writes)) {
		before[place{int(at[0]), at[1]}] = w
	}
	left, ok := survivors(last, points, before, func(p place) (uint64, bool) {
		if p.slot < modelFrom || p.slot >= modelFrom+modelSlots {
			return 0, false
		}
		return words[p.series][p.slot-modelFrom], true
	})
	if !ok {
		t.Fatalf("the account holds %d points of %d behind a commit, which no crash leaves (I3)", points,
			len(last))
	}
	for i, p := range last {
		if left[i] {
			there = append(there, call{Series: p.series, Slot: p.slot, Words: []uint64{p.word}})
		}
	}
	return there
}

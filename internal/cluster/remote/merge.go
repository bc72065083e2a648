package remote

import (
	"slices"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/query/source"
)

// latestAnswers returns the answers of the highest incarnation. What the others have was deleted.
func latestAnswers(answers []*answer) []*answer {
	highest := uint64(0)
	for _, a := range answers {
		highest = max(highest, a.incarnation)
	}
	if !slices.ContainsFunc(answers, func(a *answer) bool { return a.incarnation < highest }) {
		return answers
	}
	var some []*answer
	for _, a := range answers {
		if a.incarnation == highest {
			some = append(some, a)
		}
	}
	return some
}

// merge lays the words of copies over each other by rule 1, from slot from on. Where damage took a
// slot of every copy it is unknown, and dst has the largest of what may be out of date.
func merge(answers []*answer, from int64, dst, times []uint64) (cost source.Cost) {
	for _, a := range answers {
		cost.Add(a.cost)
	}
	copies := latestAnswers(answers)
	for i, a := range copies {
		switch {
		case times != nil:
			for s, w := range a.words {
				v := replication.Larger(replication.Value{Word: dst[s], Time: times[s]},
					replication.Value{Word: w, Time: a.times[s]})
				dst[s], times[s] = v.Word, v.Time
			}
		case i == 0:
			copy(dst, a.words)
		default:
			for s, w := range a.words {
				dst[s] = max(dst[s], w)
			}
		}
	}
	cost.Unknown = unknownToAll(copies, from, dst)
	return cost
}

// unknownToAll returns the slots that no copy knows. A current word of one copy beats what another
// has below a hole. Who has hints only knows nothing of the slots that they do not name.
func unknownToAll(answers []*answer, from int64, dst []uint64) (all []source.Unknown) {
	var copies, hints []*answer
	for _, a := range answers {
		if a.hints {
			hints = append(hints, a)
		} else {
			copies = append(copies, a)
		}
	}
	if !slices.ContainsFunc(copies, func(a *answer) bool { return len(a.cost.Unknown) > 0 }) {
		return nil
	}
	lost := make([]int, len(dst)) // by how many
	for _, a := range copies {
		for _, u := range clipUnknown(a.cost.Unknown, from, from+int64(len(dst))) {
			for s := u.From - from; s < u.Past-from; s++ {
				lost[s]++
			}
		}
	}
	hinted := func(s int64) (word uint64) {
		for _, a := range hints {
			word = max(word, a.words[s])
		}
		return word
	}
	for _, u := range copies[0].cost.Unknown {
		for slot := max(u.From, from); slot < min(u.Past, from+int64(len(dst))); slot++ {
			if lost[slot-from] < len(copies) {
				continue
			}
			if word := hinted(slot - from); word > point.Stale {
				dst[slot-from] = word
				continue
			}
			if n := len(all); n > 0 && all[n-1].Past == slot && all[n-1].Why == u.Why {
				all[n-1].Past++
			} else {
				all = append(all, source.Unknown{From: slot, Past: slot + 1, Why: u.Why})
			}
		}
	}
	for s, n := range lost {
		if n == 0 || n == len(copies) {
			continue
		}
		dst[s] = hinted(int64(s))
		for _, a := range copies {
			if len(clipUnknown(a.cost.Unknown, from+int64(s), from+int64(s)+1)) == 0 {
				dst[s] = max(dst[s], a.words[s])
			}
		}
	}
	return all
}

// eachDiffering calls fn with the chunks [first, past) in which copies have other words, of those
// that all know.
func eachDiffering(answers []*answer, from int64, count int, fn func(first, past int64)) {
	copies := latestAnswers(answers)
	if len(copies) < len(answers) {
		fn(from/chunk.Slots, (from+int64(count)-1)/chunk.Slots+1)
		return
	}
	for at := from; at < from+int64(count); {
		number := at / chunk.Slots
		end := min((number+1)*chunk.Slots, from+int64(count))
		for _, a := range copies[1:] {
			if !slices.Equal(a.words[at-from:end-from], copies[0].words[at-from:end-from]) {
				fn(number, number+1)
				break
			}
		}
		at = end
	}
}

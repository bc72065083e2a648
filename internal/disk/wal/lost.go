package wal

import (
	"bytes"
	"cmp"
	"slices"
)

// mostLost bounds the records of damaged places that are told one by one; of the
// others only the bytes are.
const mostLost = 1 << 18

// lostRecords are the damaged and missing places of a replay, and what is known of the
// records in them: from themselves, where the head is whole, or from copies behind.
type lostRecords struct {
	places []span
	known  []knownRecord // in the order of their discovery; their heads are their own memory
}

// span is a range of LSNs.
type span struct{ from, to LSN }

func (l *lostRecords) miss(from, to LSN) {
	if from < to {
		l.places = append(l.places, span{from, to})
	}
}

// addCopied takes what is known of a record, whether or not it is lost.
func (l *lostRecords) addCopied(k knownRecord) {
	i, _ := slices.BinarySearchFunc(l.places, k.lsn, func(s span, lsn LSN) int {
		return cmp.Compare(s.to, lsn+1)
	})
	if i == len(l.places) || k.lsn < l.places[i].from || len(l.known) >= mostLost {
		return
	}
	k.head = bytes.Clone(k.head)
	l.known = append(l.known, k)
}

// settle returns the records with a head in order, each once, and the places of which nothing
// is known: how many bytes they are, and the range that holds all of them.
func (l *lostRecords) settle() (out []LostRecord, unknown int64, within span) {
	slices.SortStableFunc(l.known, func(a, b knownRecord) int { return cmp.Compare(a.lsn, b.lsn) })
	past := LSN(0) // of what is known
	uncovered := func(from, to LSN) {
		if from = max(from, past); from >= to {
			return
		}
		if unknown == 0 {
			within.from = from
		}
		within.to = max(within.to, to)
		unknown += int64(to - from)
	}
	rest := l.known
	for _, s := range l.places {
		at := s.from
		for ; len(rest) > 0 && rest[0].lsn < s.to; rest = rest[1:] {
			k := &rest[0]
			if k.head != nil && (len(out) == 0 || out[len(out)-1].LSN != k.lsn) {
				out = append(out, LostRecord{LSN: k.lsn, Head: k.head})
			}
			uncovered(at, k.lsn)
			past = max(past, k.lsn+LSN(k.size))
		}
		uncovered(at, s.to)
	}
	return out, unknown, within
}

// LostNow reads the log again and returns which of the records that were in it when it was
// opened are lost by now: those at or above from, as Report.Lost has them. It may run while
// records are appended. An error is a failed read.
func (l *Log) LostNow(from LSN) ([]LostRecord, error) {
	p := l.newReplay(from, func(LSN, []byte) error { return nil })
	err := p.run()
	return p.report.Lost, err
}

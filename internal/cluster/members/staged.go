package members

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"dalmatiner/internal/cluster/ring"
)

// entry is a change that is staged, or was. Of two with one subject the later one stays.
type entry struct {
	Subject string `json:"subject"` // a member has one change at a time, n has one
	Clock   uint64 `json:"clock"`   // grows with every entry of the subject
	Gone    bool   `json:"gone"`    // it was committed or cleared
	Change  Change `json:"change"`
}

// Change is what an operator asks for, by names: who has a name is looked up when the plan is made.
type Change struct {
	Action ring.Action `json:"action"`
	Node   string      `json:"node,omitempty"` // who leaves, is replaced or removed
	New    string      `json:"new,omitempty"`  // who joins
	Copies int         `json:"copies,omitempty"`
}

// String returns the change in the words of the command that stages it.
func (c Change) String() string {
	switch c.Action {
	case ring.Join:
		return c.Action.String() + " " + c.New
	case ring.Replace:
		return c.Action.String() + " " + c.Node + " " + c.New
	case ring.SetCopies:
		return fmt.Sprint(c.Action, " ", c.Copies)
	}
	return c.Action.String() + " " + c.Node
}

// copiesSubject is the subject of a change of n. It is no name of a node, because these are not
// empty.
const copiesSubject = ""

// subject returns what a later change replaces.
func (c Change) subject() string {
	switch c.Action {
	case ring.SetCopies:
		return copiesSubject
	case ring.Join:
		return c.New
	case ring.Replace: // of a member that is removed in the same plan, perhaps by one of its name
		return c.Action.String() + " " + c.Node
	}
	return c.Node
}

// maxSubjects bounds the value: that is how many members and names of former ones there can be.
const maxSubjects = 4 * ring.MaxMembers

// stagedEntries is the gossiped value: entries in the order of their subjects.
type stagedEntries []entry

var errMalformed = errors.New("malformed")

// parseStaged reads a value. Nil is an empty one.
func parseStaged(b []byte) (s stagedEntries, err error) {
	if len(b) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("staged changes: %w: %w", errMalformed, err)
	}
	if len(s) > maxSubjects {
		return nil, fmt.Errorf("staged changes: %w: %d, at most %d are kept", errMalformed, len(s),
			maxSubjects)
	}
	for i := range s {
		if e := &s[i]; e.Change.Action > ring.SetCopies || e.Subject != e.Change.subject() || i > 0 &&
			s[i-1].Subject >= e.Subject {
			return nil, fmt.Errorf("staged changes: %w", errMalformed)
		}
	}
	return s, nil
}

func (s stagedEntries) encode() ([]byte, error) {
	if len(s) > maxSubjects {
		return nil, fmt.Errorf("%d changes of members are remembered, that is the limit: restart all "+
			"nodes one after the other", len(s))
	}
	return json.Marshal(s)
}

// compareEntries orders entries of one subject. Two that were made at once are told apart by what
// they say.
func compareEntries(a, b entry) int {
	gone := func(e entry) int {
		if e.Gone {
			return 1
		}
		return 0
	}
	c, d := a.Change, b.Change
	return cmp.Or(cmp.Compare(a.Clock, b.Clock), cmp.Compare(c.Action, d.Action),
		strings.Compare(c.Node, d.Node), strings.Compare(c.New, d.New),
		cmp.Compare(c.Copies, d.Copies), cmp.Compare(gone(a), gone(b)))
}

// mergeStaged is gossip.Value.Merge.
func mergeStaged(a, b []byte) ([]byte, error) {
	return mergeEncoded(a, b, parseStaged, func(x, y stagedEntries) stagedEntries {
		return mergeSorted(x, y, func(e entry) string { return e.Subject }, compareEntries)
	}, stagedEntries.encode)
}

// mergeEncoded merges two encoded values.
func mergeEncoded[T any](a, b []byte, parse func([]byte) (T, error), merge func(x, y T) T,
	encode func(T) ([]byte, error)) ([]byte, error) {
	x, err := parse(a)
	if err != nil {
		return nil, err
	}
	y, err := parse(b)
	if err != nil {
		return nil, err
	}
	return encode(merge(x, y))
}

// mergeSorted merges two lists that are in the order of their keys. Of two with one key the later
// one stays.
func mergeSorted[E any, K cmp.Ordered](x, y []E, key func(E) K, later func(a, b E) int) []E {
	all := slices.Concat(x, y)
	slices.SortFunc(all, func(a, b E) int { return cmp.Or(cmp.Compare(key(a), key(b)), later(b, a)) })
	return slices.CompactFunc(all, func(a, b E) bool { return key(a) == key(b) })
}

// withEntry returns the value after an entry was added.
func (s stagedEntries) withEntry(e entry) stagedEntries {
	return mergeSorted(s, stagedEntries{e}, func(e entry) string { return e.Subject }, compareEntries)
}

// clock returns one behind all that are known.
func (s stagedEntries) clock(now uint64) uint64 {
	for i := range s {
		now = max(now, s[i].Clock+1)
	}
	return now
}

// open returns the entries that wait for a commit, in the order in which they were staged.
func (s stagedEntries) open() (out stagedEntries) {
	for _, e := range s {
		if !e.Gone {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Clock, b.Clock), strings.Compare(a.Subject, b.Subject))
	})
	return out
}

// markGone returns these entries as such that were committed or cleared. What was staged anew since
// stays.
func (s stagedEntries) markGone() (out stagedEntries) {
	for _, e := range s {
		e.Gone = true
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.Subject, b.Subject) })
	return out
}

// digest says which entries wait. Those who plan have to mean the same.
func (s stagedEntries) digest() (uint64, error) {
	b, err := json.Marshal(s.open())
	return xxh3.Hash(b), err
}

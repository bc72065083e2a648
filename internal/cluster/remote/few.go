package remote

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// tooFewError is the error of a series of which not enough copies answer.
func (g *gather) tooFewError(t *target) error {
	name := func(id ring.ID) string {
		if m, ok := g.view.Member(id); ok {
			return m.Name
		}
		return id.String()
	}
	var answered, not []string
	for _, a := range t.answers {
		answered = append(answered, name(a.node))
	}
	owners := g.view.Owners(nil, t.partition, ring.Current, g.r.o.Copies(g.info.ID))
	hints := 0
	for _, id := range append(owners, g.r.o.Holders(t.partition)...) {
		if !slices.Contains(owners, id) {
			hints++
		}
		if slices.ContainsFunc(t.answers, func(a *answer) bool { return a.node == id }) {
			continue
		}
		switch err := g.failed[id]; {
		case err != nil:
			not = append(not, fmt.Sprintf("%s (%s)", name(id), reason(err)))
		case g.r.o.Up(id):
			not = append(not, name(id)+" (not asked: it would not be enough)")
		case slices.Contains(owners, id):
			not = append(not, name(id)+" (not reached)")
		default:
			not = append(not, name(id)+" (keeps hints, and is not reached)")
		}
	}
	err := error(&FewError{
		Bucket:   g.info.Name,
		Key:      t.key,
		R:        t.copies,
		Hints:    hints,
		Answered: answered,
		Missing:  not,
	})
	if g.behind {
		err = fmt.Errorf("%w: %w", err, errBehind)
	}
	return err
}

// reason is what a node said, without its id.
func reason(err error) string {
	if e := (*call.Error)(nil); errors.As(err, &e) {
		return e.Text
	}
	return err.Error()
}

// FewError is the error of a read that fewer copies answer than it needs.
type FewError struct {
	Bucket   string
	Key      []byte // of the metric; nil: those of a partition
	R        int
	Hints    int      // nodes that may keep hints beside the owners
	Answered []string // names of nodes
	Missing  []string // owners and nodes that may keep hints, each with the reason
}

// Error names the series, who answered and who did not, and the remedy.
func (e *FewError) Error() string {
	of := "the metrics"
	if e.Key != nil {
		of = metric.Text(e.Key)
	}
	needs := fmt.Sprintf("%d copies (r)", e.R)
	if e.Hints > 0 {
		needs = fmt.Sprintf("%d nodes (r is %d, and %d may keep hints)", e.R+e.Hints, e.R, e.Hints)
	}
	return fmt.Sprintf("%s of bucket %s: a read needs the answers of %s, and got %s; no answer from "+
		"%s: bring these nodes back, or try again",
		of, metric.Quote(e.Bucket), needs, orNone(e.Answered), orNone(e.Missing))
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

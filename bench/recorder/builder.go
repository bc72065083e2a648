// Package recorder makes the recordings of package corpus: of the numbers in
// /proc, and of what Prometheus, telegraf and the store tell.
package recorder

import (
	"fmt"
	"slices"
	"strings"

	"dalmatiner/bench/corpus"
)

// builder collects samples in the order of their times.
type builder struct {
	series []corpus.Series
	index  map[string]int // by the text of the labels
}

// private are labels that name a host, its users or its addresses.
var private = []string{"address", "broadcast", "nodename", "domainname", "host", "instance",
	"machine_id", "mountaddr", "system_uuid", "boot_id"}

// add adds a sample. A second one of a series at the same time is left out, and
// so are file systems mounted below the root, whose names tell of the host. Its
// other names are replaced.
func (b *builder) add(labels []corpus.Label, at int64, value string) {
	if b.index == nil {
		b.index = map[string]int{}
	}
	for i, l := range labels {
		if slices.Contains(private, l.Name) || strings.Contains(l.Name, "serial") {
			labels[i].Value = "host-1"
		}
		if (l.Name == "mountpoint" || l.Name == "path") && l.Value != "/" {
			return
		}
	}
	id := (&corpus.Series{Labels: labels}).String()
	i, ok := b.index[id]
	if !ok {
		i = len(b.series)
		b.index[id] = i
		b.series = append(b.series, corpus.Series{Labels: slices.Clone(labels)})
	}
	s := &b.series[i]
	if n := len(s.Times); n > 0 && s.Times[n-1] >= at {
		return
	}
	s.Times, s.Values = append(s.Times, at), append(s.Values, value)
}

// corpus returns what was added, sorted by name.
func (b *builder) corpus(name, about string, interval int64) (*corpus.Corpus, error) {
	if len(b.series) == 0 {
		return nil, fmt.Errorf("nothing was recorded for %s", name)
	}
	slices.SortFunc(b.series, func(a, b corpus.Series) int {
		return strings.Compare(a.String(), b.String())
	})
	return &corpus.Corpus{Name: name, About: about, Interval: interval, Series: b.series}, nil
}

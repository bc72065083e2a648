package figures

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"dalmatiner/internal/api/admin"
)

// List returns our own figures of a gatherer that have one value, by name.
func List(from prometheus.Gatherer) ([]admin.Stat, error) {
	families, err := from.Gather()
	if err != nil {
		return nil, fmt.Errorf("gathering figures: %w", err)
	}
	out := []admin.Stat{}
	for _, f := range families {
		name, ours := strings.CutPrefix(f.GetName(), Namespace)
		if !ours {
			continue
		}
		for _, m := range f.GetMetric() {
			if v, ok := plainValue(m); ok {
				out = append(out, admin.Stat{Name: name + labelText(m.GetLabel()), Value: v})
			}
		}
	}
	slices.SortFunc(out, func(a, b admin.Stat) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// plainValue returns the value of a metric that has just one.
func plainValue(m *dto.Metric) (float64, bool) {
	switch {
	case m.Counter != nil:
		return m.GetCounter().GetValue(), true
	case m.Gauge != nil:
		return m.GetGauge().GetValue(), true
	case m.Untyped != nil:
		return m.GetUntyped().GetValue(), true
	}
	return 0, false
}

func labelText(labels []*dto.LabelPair) string {
	if len(labels) == 0 {
		return ""
	}
	var parts []string
	for _, l := range labels {
		parts = append(parts, l.GetName()+`="`+l.GetValue()+`"`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

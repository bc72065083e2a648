package otlp

import (
	"sync"

	"github.com/prometheus/otlptranslator"
)

// names turns names of OpenTelemetry into those of Prometheus, by Prometheus' own package: dots
// become underscores, units and _total are appended. Each is turned once.
type names struct {
	metric otlptranslator.MetricNamer
	label  otlptranslator.LabelNamer

	mu      sync.RWMutex
	metrics map[string][]byte // by name, unit and kind, with zeros between them
	labels  map[string][]byte
}

// maxNames is how many names are remembered, of each sort, with keys of maxName bytes at most.
// Beyond them they begin anew.
const (
	maxNames = 10_000
	maxName  = 512
)

func newNames() *names {
	return &names{
		metric:  otlptranslator.MetricNamer{WithMetricSuffixes: true},
		metrics: make(map[string][]byte),
		labels:  make(map[string][]byte),
	}
}

// metricName returns the name of a metric. key is that of metrics. ok is false where there is
// none, such as of an empty name.
func (n *names) metricName(key []byte, m otlptranslator.Metric) (name []byte, ok bool) {
	return n.known(n.metrics, key, func() (string, error) { return n.metric.Build(m) })
}

// labelName returns the name of a label.
func (n *names) labelName(attribute []byte) (name []byte, ok bool) {
	return n.known(n.labels, attribute,
		func() (string, error) { return n.label.Build(string(attribute)) })
}

func (n *names) known(list map[string][]byte, key []byte,
	build func() (string, error)) (name []byte, ok bool) {
	n.mu.RLock()
	name, ok = list[string(key)]
	n.mu.RUnlock()
	if ok {
		return name, len(name) > 0
	}
	text, err := build()
	if err != nil {
		text = ""
	}
	if len(key) > maxName {
		return []byte(text), text != ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(list) >= maxNames {
		clear(list)
	}
	name = []byte(text)
	list[string(key)] = name
	return name, len(name) > 0
}

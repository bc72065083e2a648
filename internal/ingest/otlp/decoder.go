package otlp

import (
	"bytes"
	"errors"
	"math"
	"net/netip"
	"slices"

	"github.com/prometheus/otlptranslator"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/histogram"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/ingest/protobuf"
)

// decoder is the way of one request.
type decoder struct {
	server *Server
	peer   netip.AddrPort
	to     *acked.Writer

	points, rejected, exemplars int
	why                         error // of the first data point that was rejected

	// Of the resource under way.
	attributes []labels.Label // of the resource, with the names of OpenTelemetry
	shared     []labels.Label // job, instance and those promoted: of all its series
	newest     int64          // ns

	// Of the metric under way.
	key, name []byte
	list      []labels.Label
	text      []byte // of values that are no texts, and of joined ones
	classic   histogram.Series
	buckets   []histogram.Bucket
}

// What is wrong with data points.
var (
	errMalformed = errors.New("a data point is cut off")
	errName      = errors.New("a metric without a name")
	errTime      = errors.New("a time before 1970, or beyond 2262")
	errDelta     = errors.New("a sum or histogram of differences: set the temporality of the " +
		"exporter to cumulative, or use the deltatocumulative processor of the collector")
	errBounds = errors.New("a histogram whose bounds and counts do not agree, or with more than " +
		"1000 buckets")
	errScale = errors.New("an exponential histogram of a scale beyond -10 to 20")
)

// isMessage reports whether all bytes of a message are fields.
func isMessage(msg []byte) bool {
	return protobuf.Each(msg, func(*protobuf.Field) error { return nil }) == nil
}

// messages calls fn with each message of a field. One whose bytes are no fields ends the loop: then
// the rest of the parent is no message either, and is rejected as one data point.
func (d *decoder) messages(parent []byte, number int, fn func(msg []byte)) {
	err := protobuf.Each(parent, func(f *protobuf.Field) error {
		if f.Key() == protobuf.BytesKey(number) {
			fn(f.Data)
		}
		return nil
	})
	if err != nil {
		d.reject(errMalformed)
	}
}

// reject counts a data point that is not stored.
func (d *decoder) reject(err error) {
	if d.why == nil {
		d.why = err
	}
	d.rejected++
	reason, ok := reasons[err]
	if !ok {
		reason = "bad_labels"
	}
	d.server.writers.Refuse(reason, d.peer, append([]byte(err.Error()+": "), d.name...))
}

// reasons are those of the account. Any other error is one of the labels.
var reasons = map[error]string{errMalformed: "malformed", errName: "bad_name", errTime: "bad_time",
	errDelta: "delta", errBounds: "bad_histogram", errScale: "bad_histogram"}

// request stores an ExportMetricsServiceRequest.
func (d *decoder) request(msg []byte) {
	d.messages(msg, 1, func(resource []byte) {
		d.attributes, d.shared, d.newest = d.attributes[:0], d.shared[:0], 0
		d.messages(resource, 1, d.resource)
		d.messages(resource, 2, func(scope []byte) {
			d.messages(scope, 2, d.metric)
		})
		d.targetInfo()
	})
}

// resource takes the attributes of a resource apart.
func (d *decoder) resource(msg []byte) {
	d.messages(msg, 1, func(pair []byte) {
		name, value := d.attribute(pair)
		d.attributes = append(d.attributes, labels.Label{Name: name, Value: bytes.Clone(value)})
	})
	if service := d.resourceValue("service.name"); service != nil {
		if space := d.resourceValue("service.namespace"); space != nil {
			service = slices.Concat(space, []byte("/"), service)
		}
		d.shared = append(d.shared, labels.Label{Name: []byte("job"), Value: service})
	}
	if id := d.resourceValue("service.instance.id"); id != nil {
		d.shared = append(d.shared, labels.Label{Name: []byte("instance"), Value: id})
	}
	for _, a := range d.attributes {
		if d.server.promote[string(a.Name)] {
			if name, ok := d.server.names.labelName(a.Name); ok {
				d.shared = d.join(d.shared, labels.Label{Name: name, Value: a.Value})
			}
		}
	}
}

func (d *decoder) resourceValue(name string) []byte {
	for _, a := range d.attributes {
		if string(a.Name) == name && len(a.Value) > 0 {
			return a.Value
		}
	}
	return nil
}

// targetInfo stores the series target_info of a resource, which has the attributes that are no
// labels of its series.
func (d *decoder) targetInfo() {
	if d.newest == 0 || len(d.shared) == 0 {
		return
	}
	d.list = append(d.list[:0], d.shared...)
	rest := 0
	for _, a := range d.attributes {
		switch string(a.Name) {
		case "service.name", "service.namespace", "service.instance.id":
			continue
		}
		if name, ok := d.server.names.labelName(a.Name); ok && !d.server.promote[string(a.Name)] {
			d.list = d.join(d.list, labels.Label{Name: name, Value: a.Value})
			rest++
		}
	}
	if rest == 0 {
		return
	}
	if err := d.to.Series(d.list, []byte("target_info")); err == nil {
		d.to.PointAt(d.newest, point.FromInt(1))
	}
}

// The kinds of metrics, by the fields of Metric that have their data.
const (
	gauge       = 5
	sum         = 7
	explicit    = 9
	exponential = 10
	summary     = 11
)

// metric stores the data points of a Metric.
func (d *decoder) metric(msg []byte) {
	var name, unit, data []byte
	kind := 0
	_ = protobuf.Each(msg, func(f *protobuf.Field) error { // of a cut one what is there
		switch f.Key() {
		case protobuf.BytesKey(1):
			name = f.Data
		case protobuf.BytesKey(3):
			unit = f.Data
		case protobuf.BytesKey(gauge), protobuf.BytesKey(sum), protobuf.BytesKey(explicit),
			protobuf.BytesKey(exponential), protobuf.BytesKey(summary):
			kind, data = f.Number, f.Data
		}
		return nil
	})
	if kind == 0 {
		return // nothing was measured
	}
	temporality, monotonic := uint64(0), false
	_ = protobuf.Each(data, func(f *protobuf.Field) error {
		switch f.Key() {
		case protobuf.VarintKey(2):
			temporality = f.Value
		case protobuf.VarintKey(3):
			monotonic = f.Value != 0
		}
		return nil
	})
	ok := d.named(name, unit, kind, monotonic)
	const delta = 1
	d.messages(data, 1, func(msg []byte) {
		switch {
		case !ok:
			d.reject(errName)
		case temporality == delta && kind != gauge && kind != summary:
			d.reject(errDelta)
		default:
			if err := d.dataPoint(kind, msg); err != nil {
				d.reject(err)
				return
			}
			d.points++
		}
	})
}

// named finds the name of a metric.
func (d *decoder) named(name, unit []byte, kind int, monotonic bool) (ok bool) {
	m := otlptranslator.Metric{Name: string(name), Unit: string(unit)}
	switch {
	case kind == sum && monotonic:
		m.Type = otlptranslator.MetricTypeMonotonicCounter
	case kind == sum:
		m.Type = otlptranslator.MetricTypeNonMonotonicCounter
	case kind == gauge:
		m.Type = otlptranslator.MetricTypeGauge
	case kind == explicit:
		m.Type = otlptranslator.MetricTypeHistogram
	case kind == exponential:
		m.Type = otlptranslator.MetricTypeExponentialHistogram
	case kind == summary:
		m.Type = otlptranslator.MetricTypeSummary
	}
	d.key = append(append(append(append(d.key[:0], name...), 0), unit...), 0, byte(m.Type))
	if len(name) == 0 {
		d.name = nil
		return false
	}
	d.name, ok = d.server.names.metricName(d.key, m)
	return ok
}

// data is the fields that data points of all kinds have, by their numbers.
type data struct {
	attributes, flags, exemplars int
}

var fieldsOf = map[int]data{
	gauge:       {7, 8, 5},
	sum:         {7, 8, 5},
	explicit:    {9, 10, 8},
	exponential: {1, 10, 11},
	summary:     {7, 8, -1},
}

// dataPoint stores one data point of the metric under way.
func (d *decoder) dataPoint(kind int, msg []byte) error {
	n := fieldsOf[kind]
	d.list, d.text = append(d.list[:0], d.shared...), d.text[:0]
	ns, stale := uint64(0), false
	err := protobuf.Each(msg, func(f *protobuf.Field) error {
		switch {
		case f.Key() == protobuf.BytesKey(n.attributes):
			d.addAttribute(f.Data)
		case f.Key() == protobuf.Fixed64Key(3):
			ns = f.Value
		case f.Key() == protobuf.VarintKey(n.flags):
			stale = f.Value&1 != 0 // nothing was recorded
		case f.Key() == protobuf.BytesKey(n.exemplars):
			d.exemplars++
		}
		return nil
	})
	if err != nil {
		return errMalformed
	}
	if ns == 0 || ns > math.MaxInt64 {
		return errTime
	}
	d.newest = max(d.newest, int64(ns))
	switch kind {
	case explicit:
		return d.explicit(msg, int64(ns), stale)
	case exponential:
		return d.exponential(msg, int64(ns), stale)
	case summary:
		return d.summary(msg, int64(ns), stale)
	}
	return d.number(msg, int64(ns), stale)
}

// addAttribute adds a label.
func (d *decoder) addAttribute(pair []byte) {
	attribute, value := d.attribute(pair)
	if name, ok := d.server.names.labelName(attribute); ok {
		d.list = d.join(d.list, labels.Label{Name: name, Value: value})
	}
}

// join adds a label to a list. Attributes that have one name as labels become one, with a
// semicolon between the values, as in Prometheus. Those of the resource stay what they are.
func (d *decoder) join(list []labels.Label, l labels.Label) []labels.Label {
	for i := range list {
		if !bytes.Equal(list[i].Name, l.Name) {
			continue
		}
		if i >= len(d.shared) {
			from := len(d.text)
			d.text = append(append(append(d.text, list[i].Value...), ';'), l.Value...)
			list[i].Value = d.text[from:len(d.text):len(d.text)]
		}
		return list
	}
	return append(list, l)
}

// number stores a NumberDataPoint.
func (d *decoder) number(msg []byte, ns int64, stale bool) error {
	word := point.FromInt(0)
	err := protobuf.Each(msg, func(f *protobuf.Field) error {
		switch f.Key() {
		case protobuf.Fixed64Key(4):
			word = acked.Word(f.Float())
		case protobuf.Fixed64Key(6):
			word = point.FromInt(int64(f.Value))
		}
		return nil
	})
	if err != nil {
		return errMalformed
	}
	if stale {
		word = point.Stale
	}
	if err := d.to.Series(d.list, d.name); err != nil {
		return err
	}
	d.to.PointAt(ns, word)
	return nil
}

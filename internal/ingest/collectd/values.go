package collectd

import (
	"errors"
	"math"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/appender"
	"dalmatiner/internal/ingest/labels"
)

// identity names a thing of a host, as collectd does. Its texts belong to the input.
type identity struct {
	host, plugin, instance, kind, kindInstance []byte
}

// reading is the values of one thing at one time.
type reading struct {
	identity
	ns    int64    // since 1970; 0 where the sender gave none
	words []uint64 // one for each data source; point.Unset where it has none now
	names [][]byte // of the data sources; nil: those of the type

	list []labels.Label
}

var (
	errIdentity = errors.New("a value without host, plugin or type")
	errNames    = errors.New("values and names of data sources are not equally many")
)

// store hands the values over, as series of plugin, type and data source. A type with the one data
// source `value` has no third part.
func (r *reading) store(to *appender.Appender, types *Types, now int64) error {
	if len(r.host) == 0 || len(r.plugin) == 0 || len(r.kind) == 0 {
		return errIdentity
	}
	names := r.names
	if names == nil {
		names = types.names(r.kind, len(r.words))
	}
	if len(names) != len(r.words) {
		return errNames
	}
	ns := r.ns
	if ns == 0 {
		ns = now
	}
	name := [3][]byte{r.plugin, r.kind}
	for i, word := range r.words {
		parts := 2
		if len(names) > 1 || string(names[i]) != single {
			name[2], parts = names[i], 3
		}
		r.list = append(r.list[:0], labels.Label{Name: labelHost, Value: r.host},
			labels.Label{Name: labelInstance, Value: r.instance},
			labels.Label{Name: labelKindInstance, Value: r.kindInstance})
		if err := to.Series(r.list, name[:parts]...); err != nil {
			return err
		}
		to.PointAt(ns, word)
	}
	return nil
}

// The labels are the fields of collectd's identifiers.
var (
	labelHost         = []byte("host")
	labelInstance     = []byte("plugin_instance")
	labelKindInstance = []byte("type_instance")
)

// gauge returns the word of a gauge. NaN is unset: collectd sends it while it knows none.
func gauge(v float64) uint64 {
	if math.IsNaN(v) {
		return point.Unset
	}
	return acked.Word(v)
}

// counter returns the word of a counter, which a double holds where an integer does not.
func counter(v uint64) uint64 {
	if v > math.MaxInt64 {
		return acked.Word(float64(v))
	}
	return point.FromInt(int64(v))
}

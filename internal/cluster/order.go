package cluster

import (
	"sync/atomic"

	"dalmatiner/internal/cluster/names"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/model/metric"
)

// order is the series of a sender, which sends them in one order again and again.
type order struct {
	names  *names.Registry
	all    *atomic.Int64 // bytes of all orders
	bucket uint64
	hpts   bool

	list   []orderEntry
	keys   []byte                     // of list, one behind the other
	spans  []kernel.Span              // theirs, in keys
	at     int                        // of the series that is expected
	places map[metric.SeriesID]uint32 // in list
	period uint32                     // of the registry, in which names are to be noted
	group  *replication.Group         // of the first series of list
}

// orderEntry is a series of a sender.
type orderEntry struct {
	key    []byte
	id     metric.SeriesID
	period uint32 // in which its name was noted
}

// The bounds of what is known of orders. What is not known is computed again.
const (
	orderSeries = 1 << 16  // of a stream
	orderBytes  = 64 << 20 // of all streams
	notedBytes  = 120      // with its place, and the id in a group, but for its key
)

// expectedRun returns the place of the series that comes next while the sender keeps its order, and
// the keys from there on, n at most, for kernel.MatchBatch: up to the first whose name is to be
// noted.
func (o *order) expectedRun(n int) (place int, keys []byte, spans []kernel.Span) {
	if place = o.at; place == len(o.list) {
		place = 0 // it begins anew
	}
	past := place
	for past < len(o.list) && past < place+n && o.list[past].period == o.period {
		past++
	}
	return place, o.keys, o.spans[place:past]
}

// series returns the id of a series, whose name is known in this period, and its place in the
// order, -1 if it has none.
func (o *order) series(key []byte) (id metric.SeriesID, place int) {
	if o.at < len(o.list) && string(o.list[o.at].key) == string(key) {
		o.at++
		return o.renewEntry(o.at - 1)
	}
	if o.at > 0 && string(o.list[o.at-1].key) == string(key) {
		return o.renewEntry(o.at - 1)
	}
	if o.at == len(o.list) && o.at > 0 && string(o.list[0].key) == string(key) {
		o.at = 1 // it begins anew
		return o.renewEntry(0)
	}
	return o.find(key)
}

// renewEntry returns a series of the order, whose name it notes if need be.
func (o *order) renewEntry(place int) (metric.SeriesID, int) {
	n := &o.list[place]
	if n.period != o.period {
		n.key, n.period = o.names.Note(n.id, o.bucket, n.key), o.period
	}
	return n.id, place
}

// find is series for one that was not expected.
func (o *order) find(key []byte) (metric.SeriesID, int) {
	id := metric.ValuesOf(o.bucket, key, o.hpts)
	n := orderEntry{o.names.Note(id, o.bucket, key), id, o.period}
	at, known := o.places[id]
	switch {
	case n.key == nil: // no metric can have it
		return id, -1
	case known:
		o.list[at], o.at = n, int(at)+1
		return id, int(at)
	case len(o.list) == orderSeries:
		return id, -1
	case o.all.Add(notedBytes+int64(len(key))) > orderBytes:
		o.all.Add(-notedBytes - int64(len(key)))
		return id, -1
	}
	if o.places == nil {
		o.places = make(map[metric.SeriesID]uint32)
	}
	o.places[id] = uint32(len(o.list))
	o.list = append(o.list, n)
	o.keys = append(o.keys, key...)
	o.spans = append(o.spans,
		kernel.Span{From: uint32(len(o.keys) - len(key)), To: uint32(len(o.keys))})
	o.at = len(o.list)
	return id, o.at - 1
}

// first returns a group with the first series of the order, n at least.
func (o *order) first(n int) *replication.Group {
	if o.group == nil || len(o.group.Series) < n {
		o.group = &replication.Group{Series: make([]metric.SeriesID, len(o.list))}
		for i := range o.list {
			o.group.Series[i] = o.list[i].id
		}
	}
	return o.group
}

// forget lets everything go.
func (o *order) forget() {
	o.all.Add(-notedBytes*int64(len(o.list)) - int64(len(o.keys)))
	o.list, o.keys, o.spans, o.places, o.group, o.at = nil, nil, nil, nil, nil, 0
}

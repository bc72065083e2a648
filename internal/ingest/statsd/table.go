package statsd

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"

	"dalmatiner/internal/ingest/labels"
)

// table is the series of the interval under way. Between begin and end it belongs to one sender,
// or to the writer.
type table struct {
	mu      sync.Mutex
	limits  limits
	index   map[string]*entry
	list    []*entry // in the order in which they came: the store expects them in one order
	keys    int      // bytes of all keys
	kept    int      // values and members of the interval
	skipped int      // of them, beyond the limit, in the interval
	key     []byte
	closed  bool // nothing is flushed any more
}

// limits bound the memory of a table.
type limits struct {
	series    int // series
	kept      int // units that distributions and sets keep in an interval
	idle      int // intervals after which a silent series is forgotten
	idleGauge int // the same for a gauge, whose value is needed for a relative one
}

const (
	keyBytes   = 256     // of each series, on average
	mostKept   = 2 << 20 // units of 16 bytes
	memberUnit = 3       // units that a member of a set takes
	smallSet   = 64      // members up to which the memory of a set is kept for the next interval
	entryBytes = 400     // memory of a series beside its key, about
	unitBytes  = 16
)

// entry is one series. Its name and tags never change.
type entry struct {
	kind    kind
	key     string
	parts   [][]byte // of its name; the last one is for the writer
	tags    []labels.Label
	samples int // of the interval; 0: it is silent
	silent  int // intervals

	total   total // of a counter in the interval, or what a gauge is
	timing  *distribution
	size    int // of the last distribution
	members map[xxh3.Uint128]struct{}
}

// distribution is the values of an interval.
type distribution struct {
	list         []weighted // all of them, as far as the limit allows
	count, sum   total
	lower, upper float64
}

// weighted is a value, and how many it stands for.
type weighted struct{ value, weight float64 }

func newTable(l limits) *table { return &table{limits: l, index: make(map[string]*entry)} }

// Reasons for which a sample is refused.
const (
	badLine     = "bad_line"
	seriesLimit = "series_limit"
	queueFull   = "queue_full"
	shutDown    = "shutdown"
)

// add takes a sample. The reason is empty, or says why it is refused.
func (t *table) add(m *sample) (reason string) {
	e, reason := t.entry(m)
	if e == nil {
		return reason
	}
	ok := true
	switch m.kind {
	case counter:
		ok = m.eachValue(func(_ []byte, n number) { e.total.add(n, m.rate) })
	case gauge:
		ok = m.eachValue(func(text []byte, n number) {
			if !isRelative(text) {
				e.total = total{}
			}
			e.total.add(n, rate{1, 1})
		})
	case timing:
		ok = m.eachValue(func(_ []byte, n number) { t.measure(e, n, m.rate) })
	case set:
		t.member(e, m.values)
	}
	if !ok {
		return badLine
	}
	e.samples++
	return ""
}

// entry returns the series of a sample; nil: there is a reason to refuse it.
func (t *table) entry(m *sample) (e *entry, reason string) {
	if t.closed {
		return nil, shutDown
	}
	t.key, _ = labels.AppendKey(append(t.key[:0], byte(m.kind)), m.tags, m.name)
	if e = t.index[string(t.key)]; e != nil {
		return e, ""
	}
	if len(t.list) >= t.limits.series || t.keys+len(t.key) > keyBytes*t.limits.series {
		return nil, seriesLimit
	}
	if !m.eachValue(func([]byte, number) {}) && m.kind != set {
		return nil, badLine // it would be a series without values
	}
	e = &entry{kind: m.kind, key: string(t.key), parts: parts(bytes.Clone(m.name)),
		tags: make([]labels.Label, len(m.tags))}
	for i, l := range m.tags {
		e.tags[i] = labels.Label{Name: bytes.Clone(l.Name), Value: bytes.Clone(l.Value)}
	}
	t.index[e.key] = e
	t.list = append(t.list, e)
	t.keys += len(e.key)
	return e, ""
}

// measure takes a value of a distribution.
func (t *table) measure(e *entry, n number, r rate) {
	d := e.timing
	if d == nil {
		d = &distribution{list: make([]weighted, 0, max(e.size, 1)), lower: n.float, upper: n.float}
		e.timing = d
	}
	d.count.add(number{1, 1, true}, r)
	d.sum.add(n, r)
	d.lower, d.upper = min(d.lower, n.float), max(d.upper, n.float)
	if t.kept >= t.limits.kept {
		t.skipped++
		return
	}
	t.kept++
	d.list = append(d.list, weighted{n.float, r.each})
}

// member takes a member of a set, of which the hash is kept: 128 bits, of which no two members
// will ever share one.
func (t *table) member(e *entry, text []byte) {
	id := xxh3.Hash128(text)
	if _, known := e.members[id]; known {
		return
	}
	if t.kept+memberUnit > t.limits.kept {
		t.skipped++
		return
	}
	if e.members == nil {
		e.members = make(map[xxh3.Uint128]struct{})
	}
	t.kept += memberUnit
	e.members[id] = struct{}{}
}

// result is what came of a series in an interval.
type result struct {
	*entry
	samples int
	total   total
	timing  *distribution
	members int
}

// take ends the interval: it appends the results of all series that were not silent to dst.
// skipped is how many values and members were beyond the limit.
func (t *table) take(dst []result) (list []result, skipped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	live := t.list[:0]
	for _, e := range t.list {
		if e.samples == 0 && t.isOver(e) {
			delete(t.index, e.key)
			t.keys -= len(e.key)
			continue
		}
		live = append(live, e)
		if e.samples == 0 {
			e.size = 0
			continue
		}
		dst = append(dst, result{e, e.samples, e.total, e.timing, len(e.members)})
		if e.timing != nil {
			e.size = len(e.timing.list)
		}
		if e.kind != gauge {
			e.total = total{}
		}
		e.samples, e.silent, e.timing = 0, 0, nil
		if clear(e.members); dst[len(dst)-1].members > smallSet {
			e.members = nil // its buckets would stay
		}
	}
	clear(t.list[len(live):])
	t.list = live
	skipped = t.skipped
	t.kept, t.skipped = 0, 0
	return dst, skipped
}

// isOver counts an interval in which a series was silent, and reports whether it is forgotten.
func (t *table) isOver(e *entry) bool {
	e.silent++
	if e.kind == gauge {
		return e.silent > t.limits.idleGauge
	}
	return e.silent > t.limits.idle
}

// isPending reports whether any sample came in the interval under way.
func (t *table) isPending() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.list, func(e *entry) bool { return e.samples > 0 })
}

// size returns how many series there are.
func (t *table) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.list)
}

// bytes returns the memory of the table, about.
func (t *table) bytes() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(t.keys*2 + len(t.list)*entryBytes + t.kept*unitBytes)
}

// sort brings the values into order, once for all percentiles.
func (d *distribution) sort() {
	slices.SortFunc(d.list, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
}

// percentile returns the smallest value up to which a share of all values lies, in percent: the
// nearest rank. The values are sorted. ok is false where none was kept.
func (d *distribution) percentile(percent float64) (value float64, ok bool) {
	sum := 0.0
	for _, w := range d.list {
		sum += w.weight
	}
	before := 0.0
	for _, w := range d.list {
		if before += w.weight; before*100 >= percent*sum {
			return w.value, true
		}
	}
	return 0, false
}

// close refuses what comes from now on.
func (t *table) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

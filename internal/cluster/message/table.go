package message

import (
	"fmt"

	"dalmatiner/internal/cluster/names"
	"dalmatiner/internal/model/metric"
)

// table numbers series, in the order in which they are asked for first.
type table struct {
	index map[metric.SeriesID]uint32
	ids   []metric.SeriesID
	// After a series mostly comes the one that came after it last time: next is its number.
	next []uint32
	at   uint32 // the series that was asked for last

	groups numberedGroups

	define func(id metric.SeriesID) error // called for a series before it gets its number
}

func newTable(define func(metric.SeriesID) error) *table {
	return &table{index: make(map[metric.SeriesID]uint32), define: define}
}

// number returns that of a series.
func (t *table) number(id metric.SeriesID) (uint32, error) {
	if int(t.at) < len(t.next) {
		if n := t.next[t.at]; int(n) < len(t.ids) && t.ids[n] == id {
			t.at = n
			return n, nil
		}
	}
	n, ok := t.index[id]
	if !ok {
		if err := t.define(id); err != nil {
			return 0, err
		}
		n = uint32(len(t.ids))
		t.index[id] = n
		t.ids, t.next = append(t.ids, id), append(t.next, n+1)
	}
	if int(t.at) < len(t.next) {
		t.next[t.at] = n
	}
	t.at = n
	return n, nil
}

// cut takes all numbers from one on back.
func (t *table) cut(from int) {
	if from < len(t.ids) {
		t.groups = numberedGroups{}
	}
	for _, id := range t.ids[from:] {
		delete(t.index, id)
	}
	t.ids, t.next = t.ids[:from], t.next[:from]
}

// otherID is the error for a name that does not belong to the id it was found by.
func otherID(id metric.SeriesID, bucket uint64, key []byte) error {
	return fmt.Errorf("series %x: %w: %s in bucket %016x has another id", id[:], ErrName,
		metric.Text(key), bucket)
}

// definition is a name that a frame or a record brings.
type definition struct {
	id     metric.SeriesID
	bucket uint64
	key    []byte // of the frame
}

// knownName is a name that an earlier frame brought.
type knownName struct {
	id     metric.SeriesID
	period uint32 // of the registry, when it was looked up there; 0: nothing is known
}

const pageNames = 1024

// pages are the names of earlier frames, by number.
type pages [MaxNames / pageNames]*[pageNames]knownName

func (p *pages) nameAt(number uint32) *knownName {
	if page := p[number/pageNames]; page != nil {
		return &page[number%pageNames]
	}
	return nil
}

func (p *pages) set(number uint32, to knownName) {
	page := p[number/pageNames]
	if page == nil {
		page = new([pageNames]knownName)
		p[number/pageNames] = page
	}
	page[number%pageNames] = to
}

// lookup finds the series of numbers: those that come with what is being read, and older ones.
type lookup struct {
	first   uint32 // number of the first fresh one
	fresh   []definition
	known   *pages  // nil: there are none
	groups  *groups // of known; nil: there are none
	names   *names.Registry
	period  uint32
	missing bool // somebody asked for what is not there
}

// resolve returns the series of a number. A series of which the registry has let the name go is
// missing, too.
func (r *reader) resolve(number uint32) (id metric.SeriesID) {
	if i := number - r.first; i < uint32(len(r.fresh)) {
		return r.fresh[i].id
	}
	if r.known != nil && number < MaxNames {
		if k := r.known.nameAt(number); k != nil && k.period != 0 {
			if k.period == r.period || r.renewName(k) {
				return k.id
			}
		}
	}
	r.lacks()
	return id
}

// lacks ends reading because of what is missing, unless it has ended for another reason.
func (r *reader) lacks() {
	if !r.Bad {
		r.missing = true
		r.Check(false)
	}
}

func (r *reader) renewName(k *knownName) bool {
	_, _, ok := r.names.Lookup(k.id)
	if ok {
		k.period = r.period
	}
	return ok
}

package series

import (
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/model/metric"
)

// Arrivals knows which series are new: those that came in the present hour of the clock and in
// the one before, since Begin. Its methods may be called concurrently.
type Arrivals struct {
	mu    sync.RWMutex
	began int64 // unix ns
	most  int64 // series of an hour; more are not remembered
	hour  int64
	of    [2]*hourArrivals // in the hour, in the one before
}

// hourArrivals is the series that came in an hour.
type hourArrivals struct {
	index  Index
	n      atomic.Int64
	missed atomic.Bool // one that came was not remembered
}

const (
	hourNS = int64(time.Hour)

	// arrivalBytes is the most that an index takes for a series, behind its growth.
	arrivalBytes = indexEntrySize * 8 / 3
)

// Begin sets when Arrivals begins to be told of new series, and how much memory it may take. It
// remembers nothing before that.
func (a *Arrivals) Begin(now, bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began, a.hour, a.most = now, now/hourNS, bytes/(2*arrivalBytes)
	a.of = [2]*hourArrivals{new(hourArrivals), new(hourArrivals)}
}

// Add notes that a series came at a time, in unix nanoseconds.
func (a *Arrivals) Add(id metric.SeriesID, now int64) {
	hour := now / hourNS
	a.mu.RLock()
	if hour > a.hour {
		a.mu.RUnlock()
		a.advance(hour)
		a.mu.RLock()
	}
	defer a.mu.RUnlock()
	age := a.hour - hour // the clock may be set back
	if a.most == 0 || age > 1 {
		return
	}
	of := a.of[age]
	if of.n.Add(1) > a.most {
		of.missed.Store(true)
		return
	}
	of.index.Define(id, 0)
}

func (a *Arrivals) advance(hour int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[0] == nil || hour <= a.hour {
		return
	}
	last := new(hourArrivals)
	if hour == a.hour+1 {
		last = a.of[0]
	}
	a.hour, a.of = hour, [2]*hourArrivals{new(hourArrivals), last}
}

// Bytes returns the memory of it all.
func (a *Arrivals) Bytes() (n int64) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, of := range a.of {
		if of != nil {
			n += of.index.Bytes()
		}
	}
	return n
}

// RecentSeries is the series that are new at a moment.
type RecentSeries struct {
	Since  time.Time // what came before is not new
	Missed bool      // there were too many to remember: others are new, too
	of     []*hourArrivals
}

// RecentSeries returns the series that came since the hour before that of now, in unix nanoseconds.
func (a *Arrivals) RecentSeries(now int64) RecentSeries {
	a.mu.RLock()
	defer a.mu.RUnlock()
	from := now/hourNS - 1
	r := RecentSeries{Since: time.Unix(0, max(a.began, from*hourNS))}
	for age, of := range a.of {
		if of != nil && a.hour-int64(age) >= from && of.n.Load() > 0 {
			r.of = append(r.of, of)
			r.Missed = r.Missed || of.missed.Load()
		}
	}
	return r
}

// Empty reports whether no series is new.
func (r *RecentSeries) Empty() bool { return len(r.of) == 0 }

// Lookup is memory for HasAll.
type Lookup struct {
	refs  [lookupMost]Ref
	order [lookupMost]uint16
}

const lookupMost = 512

// HasAll says of each of up to 512 series whether it is new.
func (r *RecentSeries) HasAll(ids []metric.SeriesID, isNew []bool, memory *Lookup) {
	clear(isNew)
	for _, of := range r.of {
		of.index.LookupAll(ids, memory.refs[:len(ids)], memory.order[:len(ids)])
		for i := range ids {
			isNew[i] = isNew[i] || memory.refs[i] != NoColumn
		}
	}
}

package events

import (
	"slices"
	"time"

	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/write/logrecord"
)

// Limits of a record of the log: what one write of the log takes, and what is under the lock at a
// time.
const (
	recordBytes  = 1 << 20
	recordEvents = 4096
)

// PartOf returns how many events from the start of a list are stored at a time: one at least, if
// there are any.
func PartOf(list []Event) (n int) {
	for bytes := 0; n < len(list) && n < recordEvents; n++ {
		if bytes += len(list[n].Body); n > 0 && bytes > recordBytes {
			break
		}
	}
	return n
}

// Write implements Store.
func (s *Local) Write(bucket string, list []Event) (Written, error) {
	info, err := s.o.Bucket(bucket)
	if err != nil {
		return Written{}, err
	}
	s.o.Wait()
	var w Written
	now := s.o.Now()
	arrived := arrive(list, now, now+int64(s.o.MaxFuture), &w)
	s.ahead.Add(int64(w.Ahead.Events))
	all, from := s.admit(&info, list, &w)
	fresh := all
	if w.Counts.RefusedTotal() > 0 {
		lsn, err := s.o.Log.RefuseEvents(info.ID, &w.Counts)
		if err != nil {
			return Written{}, err
		}
		w.Token.Position = uint64(lsn)
	}
	for at := from; len(fresh) > 0; {
		n := PartOf(fresh)
		classes := make([]Class, n)
		c, lsn, err := s.put(bucket, &info, fresh[:n], classes, arrived.of(at[:n]))
		if err != nil {
			return Written{}, err
		}
		w.Token.Position = max(w.Token.Position, uint64(lsn))
		w.Counts.Add(&c)
		fresh, at = fresh[n:], at[n:]
	}
	for i, at := range from {
		list[at].ID = all[i].ID
	}
	return w, nil
}

// arrivals say which events of a list have the time of arrival; nil is none of them.
type arrivals []bool

// of returns the arrivals of some of the events.
func (a arrivals) of(at []int) arrivals {
	out := make(arrivals, len(at))
	for i := range at {
		out[i] = a != nil && a[at[i]]
	}
	return out
}

// class returns what became of an event: one that the node timed cannot be late.
func (a arrivals) class(i int, c Class) Class {
	if c == Late && a[i] {
		return Accepted
	}
	return c
}

// arrive gives events the time of arrival if they have none or are too far ahead. The latter keep
// their own time as a field: an event is worth more than its time.
func arrive(list []Event, now, ahead int64, w *Written) (arrived arrivals) {
	for i := range list {
		e := &list[i]
		if e.Time != 0 && e.Time <= ahead {
			continue
		}
		if arrived == nil {
			arrived = make(arrivals, len(list))
		}
		if e.Time != 0 {
			if w.Ahead.Events++; w.Ahead.Events == 1 {
				w.Ahead.Sent = e.Time
			}
			e.Body = term.WithField(e.Body, "sent", time.Unix(0, e.Time).UTC().Format(time.RFC3339Nano))
		}
		arrived[i], e.Time = true, now
	}
	return arrived
}

// admit returns the events that can be stored, and notes the others as refused. They are the list
// itself where that is all of them; from says where in the list each of them is.
func (s *Local) admit(info *buckets.Info, list []Event, w *Written) (fresh []Event, from []int) {
	lives, full := s.o.livesFrom(info), s.o.DiskFull()
	refused := func(e *Event) (why account.Reason, refused bool) {
		switch {
		case e.Time < 1:
			return account.BadTimestamp, true
		case len(e.Body) > MaxBody:
			return account.TooLarge, true
		case e.Time < lives:
			return account.Expired, true
		}
		return account.DiskFull, full
	}
	for i := range list {
		if why, is := refused(&list[i]); is {
			w.Counts.Refused[why]++
			w.Refused = append(w.Refused, Refused{i, why})
		} else {
			from = append(from, i)
		}
	}
	if len(from) == len(list) {
		return list, from
	}
	fresh = make([]Event, len(from))
	for i, at := range from {
		fresh[i] = list[at]
	}
	return fresh, from
}

// put stores the events of one record of the log, and says what became of each. Where they are this
// node's own, and no copies, it counts them, enters that in the account, and shows them to live
// tails: own says which of them have the time of arrival, and is nil for copies.
func (s *Local) put(bucket string, info *buckets.Info, list []Event, classes []Class,
	own arrivals) (c account.Counts, lsn wal.LSN, err error) {
	var known repeats
	if err := s.findRepeats(info.ID, list, &known); err != nil {
		return c, 0, err
	}
	err = s.o.Log.AppendHeaded(func(put func(head, body []byte) (wal.LSN, error)) error {
		s.writing.Lock()
		defer s.writing.Unlock()
		if _, ok := s.o.ByID(info.ID); !ok {
			return buckets.UnknownError(bucket)
		}
		for known.epoch != s.nowEpoch() { // a flush has moved events into a file
			if err := s.findRepeats(info.ID, list, &known); err != nil {
				return err
			}
		}
		stored := s.insert(info, list, &known, classes, own != nil)
		for i := range own {
			own.class(i, classes[i]).Count(&c)
		}
		minute := s.o.Now() / int64(time.Minute)
		if lsn, err = put(logrecord.AppendEvents(nil, info.ID, minute, &c, stored)); err != nil {
			return err
		}
		s.o.Account.Add(info.ID, minute, &c)
		return nil
	})
	return c, lsn, err
}

func (s *Local) nowEpoch() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.epoch
}

// insert puts events into the active table, says what became of each, and offers own ones to live
// tails. It returns those that were stored.
func (s *Local) insert(info *buckets.Info, list []Event, known *repeats, classes []Class,
	own bool) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := list[:0:0]
	before := s.active.bytes
	var tails []*Follower
	if own {
		tails = s.followers[info.ID]
	}
	for i := range list {
		e := &list[i]
		given := e.ID == ID{}
		if given {
			e.ID = s.ids.next()
		}
		if !given && known.has(keyOf(e)) || !s.insertOne(info.ID, e) {
			classes[i] = Duplicate
			continue
		}
		newest := s.newest[info.ID]
		if classes[i] = Accepted; e.Time < newest && newest-e.Time > info.Grace {
			classes[i] = Late
		}
		s.newest[info.ID] = max(newest, e.Time)
		stored = append(stored, *e)
		for _, f := range tails {
			f.offer(e)
		}
	}
	s.o.Pending(s.active.bytes - before)
	return stored
}

// insertOne puts an event into the active table, unless a table has it. Under the lock.
func (s *Local) insertOne(bucket uint64, e *Event) bool {
	for _, t := range s.frozen {
		if t.has(bucket, keyOf(e)) {
			return false
		}
	}
	return s.active.insert(bucket, e)
}

// repeats are the events of a list that files have.
type repeats struct {
	epoch uint64 // that the files are of
	keys  map[key]struct{}
}

func (r *repeats) has(k key) bool {
	_, ok := r.keys[k]
	return ok
}

// findRepeats finds the events of a list that files have. Most lists take no look into a file: they
// have no ids of their senders, or are newer than everything in files.
func (s *Local) findRepeats(bucket uint64, list []Event, known *repeats) error {
	s.mu.RLock()
	newest := int64(0)
	for _, f := range s.files {
		if r, ok := f.RangeOf(bucket); ok {
			newest = max(newest, r.Last)
		}
	}
	known.epoch, known.keys = s.epoch, nil
	s.mu.RUnlock()
	if slices.ContainsFunc(list, func(e Event) bool { return e.ID != ID{} && e.Time <= newest }) {
		return s.lookUp(bucket, list, known)
	}
	return nil
}

// lookUp finds the events of a list with ids of their senders that files have. What damage hides is
// not found: such a repeat is stored as if it were new.
func (s *Local) lookUp(bucket uint64, list []Event, known *repeats) error {
	var keys []key
	for i := range list {
		if list[i].ID != (ID{}) {
			keys = append(keys, keyOf(&list[i]))
		}
	}
	known.keys = make(map[key]struct{})
	slices.SortFunc(keys, key.compare)
	v, err := s.pin(bucket, keys[0].time, after(keys[len(keys)-1].time))
	if err != nil {
		return err
	}
	defer s.unpin(v)
	known.epoch = v.epoch
	var buf eventfile.Buffer
	for _, f := range v.files {
		read := -1 // block in buf
		var in []Event
		for _, k := range keys {
			for i, past := f.reader.BlockRange(bucket, k.time, after(k.time)); i < past; i++ {
				if read != i {
					in, _ = s.keys(f, i, &buf) // damage is reported, and hides the block
					read = i
				}
				if _, found := slices.BinarySearchFunc(in, k, func(e Event, k key) int {
					return keyOf(&e).compare(k)
				}); found {
					known.keys[k] = struct{}{}
				}
			}
		}
	}
	return nil
}

package events

import (
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/logrecord"
)

// Class says what became of an event that was not refused.
type Class uint8

// The classes, each the row of the account that it is counted in.
const (
	Accepted Class = iota
	Late
	Duplicate
	Classes = iota // how many there are
)

// Count counts an event of the class.
func (c Class) Count(to *account.Counts) {
	switch c {
	case Accepted:
		to.Accepted++
	case Late:
		to.Late++
	default:
		to.Duplicate++
	}
}

// Copies is a store as the nodes of a cluster see it, of which each has some of the events.
type Copies struct{ *Local }

// Received is what a node may store of the events of a sender, here or elsewhere.
type Received struct {
	Bucket  buckets.Info
	Fresh   []Event // each with its id; their bodies are those of the list
	From    []int   // where each of them is in the list
	Counts  account.Counts
	Refused []Refused
	Ahead   Ahead

	arrived arrivals // of Fresh
}

// Class returns what became of an event of Fresh, from the class c that it has for its owner: an
// event whose time is its arrival is not late.
func (r *Received) Class(i int, c Class) Class { return r.arrived.class(i, c) }

// Receive judges events as Write does, gives those an id that have none, in the list as well, and
// stores nothing. It waits while senders are held back.
func (s Copies) Receive(bucket string, list []Event) (r Received, err error) {
	if r.Bucket, err = s.o.Bucket(bucket); err != nil {
		return r, err
	}
	s.o.Wait()
	var w Written
	now := s.o.Now()
	arrived := arrive(list, now, now+int64(s.o.MaxFuture), &w)
	s.ahead.Add(int64(w.Ahead.Events))
	r.Fresh, r.From = s.admit(&r.Bucket, list, &w)
	r.Counts, r.Refused, r.Ahead, r.arrived = w.Counts, w.Refused, w.Ahead, arrived.of(r.From)
	s.writing.Lock()
	defer s.writing.Unlock()
	for i := range r.Fresh {
		if e := &r.Fresh[i]; e.ID == (ID{}) {
			e.ID = s.ids.next()
			list[r.From[i]].ID = e.ID
		}
	}
	return r, nil
}

// Enter enters what became of events in log and account, without an event: other nodes have them.
// The token is that of WaitDurable.
func (s Copies) Enter(bucket uint64, c *account.Counts) (write.Token, error) {
	lsn, err := s.o.Log.RefuseEvents(bucket, c)
	return write.Token{Position: uint64(lsn)}, err
}

// Adopt stores copies of events that another node has received and counted: they are in no account
// of this one, and no live tail shows them. classes say what became of each. The token stands for
// all of them, also for those that were here already. An error that wraps buckets.ErrUnknown says
// that the bucket is gone.
func (s Copies) Adopt(bucket uint64, list []Event) (classes []Class, token write.Token, err error) {
	info, ok := s.o.ByID(bucket)
	if !ok {
		return nil, token, buckets.UnknownError("")
	}
	s.o.Wait()
	classes = make([]Class, len(list))
	for at := 0; at < len(list); {
		n := PartOf(list[at:])
		_, lsn, err := s.put(info.Name, &info, list[at:at+n], classes[at:at+n], nil)
		if err != nil {
			return nil, token, err
		}
		token.Position = uint64(lsn)
		at += n
	}
	return classes, token, nil
}

// Sync returns the token of a record that is behind everything that was stored before.
func (s Copies) Sync(bucket uint64) (t write.Token, err error) {
	err = s.o.Log.AppendHeaded(func(put func(head, body []byte) (wal.LSN, error)) error {
		lsn, err := put(logrecord.AppendEvents(nil, bucket, 0, new(account.Counts), nil))
		t.Position = uint64(lsn)
		return err
	})
	return t, err
}

// Show offers events that were stored elsewhere to the live tails of a bucket, and counts missed
// ones.
func (s Copies) Show(bucket uint64, list []Event, missed uint64) {
	s.mu.RLock()
	tails := s.followers[bucket]
	s.mu.RUnlock()
	for _, f := range tails {
		for i := range list {
			f.offer(&list[i])
		}
		f.miss(missed)
	}
}

// Followed returns the buckets that have live tails.
func (s Copies) Followed() (list []uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for id := range s.followers {
		list = append(list, id)
	}
	return list
}

// Buckets returns the buckets of which there may be events.
func (s Copies) Buckets() (list []buckets.Info) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for id := range s.newest {
		if info, ok := s.o.ByID(id); ok {
			list = append(list, info)
		}
	}
	return list
}

// Leases returns the memory that reads take.
func (s Copies) Leases() *memory.Leases { return s.o.Memory }

// DiskFull reports whether events are refused.
func (s Copies) DiskFull() bool { return s.o.DiskFull() }

// Lives returns the range of time in which a bucket may have events: end is no part of it.
func (s Copies) Lives(info *buckets.Info) (start, end int64) {
	return max(s.o.livesFrom(info), 1), s.o.Now() + int64(s.o.MaxFuture) + 1
}

// WholeFrom returns the time from which on no event of a bucket has expired, rounded up to a
// multiple of step.
func (s Copies) WholeFrom(info *buckets.Info, step int64) int64 {
	from := s.o.livesFrom(info)
	if from < 1 {
		return 0
	}
	return (from/step + 1) * step
}

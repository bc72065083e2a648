package events

import (
	"dalmatiner/internal/account"
	"dalmatiner/internal/eventfile"
	"dalmatiner/internal/logrecord"
)

// Replay does again what a record of events says. Events that are there already are passed over.
// Where counted is true the counts of the record are in the account already. It is called in a
// moment of a flush.
func (s *Local) Replay(r *logrecord.Record, counted bool) error {
	bucket := r.Bucket
	if _, ok := s.o.ByID(bucket); !ok {
		bucket = account.DeletedBuckets
	} else if err := s.replay(bucket, r.Events); err != nil {
		return err
	}
	if !counted {
		s.o.Account.Add(bucket, r.Minute, &r.Counts)
	}
	return nil
}

func (s *Local) replay(bucket uint64, list []Event) error {
	var known repeats
	if err := s.findRepeats(bucket, list, &known); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.active.bytes
	for i := range list {
		if e := &list[i]; !known.has(keyOf(e)) && s.insertOne(bucket, e) {
			s.newest[bucket] = max(s.newest[bucket], e.Time)
		}
	}
	s.o.Pending(s.active.bytes - before)
	return nil
}

// ReplayLost takes what is known of events of the log that damage took. The next flush notes it in
// its file.
func (s *Local) ReplayLost(l eventfile.Lost) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active.lost = append(s.active.lost, l)
}

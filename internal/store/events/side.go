package events

import (
	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write/logrecord"
)

// Side is the store of a data directory as flushes and the replay of the log see it: flush.Side and
// replay.Side.
type Side struct{ *Local }

// Write is WriteFile.
func (s Side) Write(seq uint64, e *manifest.FileChanges) error { return s.WriteFile(seq, e) }

// Replay does again what a record of events says, and passes over others. Events that are there
// already are passed over. It is called in a moment of a flush.
func (s Side) Replay(lsn wal.LSN, r *logrecord.Record) error {
	counted := uint64(lsn) < s.counted
	if r.Kind != logrecord.Events || counted && !s.incomplete {
		return nil
	}
	return s.replay(r, counted)
}

// replay takes a record of the log. Where counted is true its counts are in the account already.
func (s *Local) replay(r *logrecord.Record, counted bool) error {
	bucket := r.Bucket
	if _, ok := s.o.ByID(bucket); !ok {
		bucket = account.DeletedBuckets
	} else if err := s.replayEvents(bucket, r.Events); err != nil {
		return err
	}
	if !counted {
		s.o.Account.Add(bucket, r.Minute, &r.Counts)
	}
	return nil
}

func (s *Local) replayEvents(bucket uint64, list []Event) error {
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

// LostRecord is the cause under which the events of damaged records of the log are lost.
const LostRecord = "log_record_damaged"

// ReplayLost takes what a reading of the log found. What records of events had that damage took
// from it is a gap of every answer, and the next flush notes it in its file. Files have what lies
// below their position. It is called in a moment of a flush.
func (s *Local) ReplayLost(report *wal.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range logrecord.LostEvents(report, s.counted) {
		if _, ok := s.o.ByID(h.Bucket); !ok || h.Events == 0 {
			continue
		}
		s.o.Account.Add(h.Bucket, h.Minute, &account.Counts{Accepted: h.Events})
		s.o.Account.Lose(LostRecord, h.Events)
		s.active.lost = append(s.active.lost, eventfile.LostRange{
			Bucket: h.Bucket,
			First:  h.First,
			Last:   h.Last,
			Events: int64(h.Events),
		})
	}
}

package store

import (
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/flush"
)

// Events returns the store of events. What Write returns as a token is for WaitDurable of
// Intake.
func (s *Store) Events() *events.Local { return s.events }

// eventReadsPart of the memory limit is what reads of events hold of files, maxEventReads without
// one.
const (
	eventReadsPart = 8
	maxEventReads  = 512 << 20
)

// newEvents returns the store of events of a node, without its files.
func newEvents(s *Store) (*events.Local, error) {
	known := knownSeries{s}
	return events.New(events.Options{
		FS: s.o.FS, Dir: s.o.Dir, Of: s.dir.Origin(), Logger: s.o.Logger, Now: s.clock.Unix,
		MaxFuture: s.o.MaxFuture, MaxFile: s.o.maxMergedFile, TakeNumber: s.dir.TakeNumber,
		Bucket: s.BucketByName, ByID: func(id uint64) (buckets.Info, bool) {
			return known.BucketByID(id)
		},
		Log: s.ledger, Account: s.ledger.Events(),
		Wait: s.pressure.Wait, DiskFull: s.pressure.DiskFull, Pending: s.pressure.AddEvents,
		Damage: s.damage.Report,
		Memory: s.o.Memory.NewLeases(memory.LeaseOptions{
			Name:  "event-reads",
			Holds: "blocks of files of events that are being read; at the limit reads wait",
			Limit: s.o.Memory.Share(eventReadsPart, maxEventReads), Small: 2 << 20,
		}),
		Yields: func(busy bool) bool { return s.upkeep.Yields(busy) },
		Commit: func(c manifest.FileChanges) error {
			gate := s.flusher.Gate()
			gate.Lock()
			defer gate.Unlock()
			if gate.IsClosed() {
				return version.ErrClosed
			}
			err := s.flusher.Commit(manifest.Edit{Files: c, NextSeq: s.dir.NextNumber()})
			if err == nil {
				s.o.flushStep(flush.StepMerged)
			}
			return err
		},
		Stopped: func() bool {
			select {
			case <-s.stop:
				return true
			default:
				return s.pressure.Failure() != nil || s.pressure.DiskFull()
			}
		},
	})
}

package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/store/reader"
	"dalmatiner/internal/store/replay"
	"dalmatiner/internal/store/startup"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/store/upkeep"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/backpressure"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/intake"
	"dalmatiner/internal/write/ledger"
)

// Store is an open data directory. Its methods may be called concurrently.
//
// Lock order: that of merges, the gate of flushes, the creation of a bucket, bucket.mu,
// ledger.commit, versions.publishing, a group's lock, the log's, buckets.mu, groups.mu, that of
// what is unflushed, versions.mu.
type Store struct {
	Member

	o     Options
	clock *clock.Clock

	// The way of a point.
	intake   *intake.Intake
	pressure *backpressure.Control
	buckets  *buckets.Registry[*columns.Bucket]
	columns  *columns.Table
	arenas   head.Arenas
	ledger   *ledger.Ledger // of log and account
	sealers  *backpressure.Sealers
	flusher  *flush.Flusher

	// What is on disk, and how it is read.
	disk     *startup.Directory // log, MANIFEST and catalogue
	dir      *version.Dir       // of segments
	files    *segment.Files     // of segments that are open
	versions *version.Versions
	reader   *reader.Reader
	tags     *tagstore.Store

	// What changes it beside points.
	replay    *replay.Replay // of the log, after a start
	merges    *compaction.Compactor
	deletions *deletion.Deleter
	upkeep    *upkeep.Upkeep

	events *events.Local

	damage  damage.Notes
	stop    chan struct{}
	workers sync.WaitGroup
}

// Close makes everything durable and closes the store: blocks are sealed and
// flushed, so that the next start replays nothing.
func (s *Store) Close() error {
	_, flushErr := s.Flush(context.Background())
	if s.pressure.Failure() != nil {
		flushErr = s.pressure.Failure()
	}
	return errors.Join(flushErr, s.shutdown(true))
}

// startWorkers starts what runs beside the store. Merges begin when the replay is over: only then
// is it known what is deleted.
func (s *Store) startWorkers() {
	s.sealers.Start()
	s.workers.Go(func() { s.flusher.Run(s.stop) })
	s.upkeep.Start(&s.workers, s.stop)
	if s.o.BackgroundMerge {
		s.workers.Go(func() { s.events.Merger.Run(s.stop) })
		s.workers.Go(func() { s.tags.Run(s.stop) })
	}
}

// shutdown stops the workers and closes the files. Without orderly it leaves what a kill would
// leave, but for what the operating system holds.
func (s *Store) shutdown(orderly bool) error {
	close(s.stop)
	s.replay.Stop()
	s.events.Close()
	s.workers.Wait()
	s.flusher.Gate().Close() // a caller of Flush may still be on the way
	s.sealers.Close()
	if orderly {
		s.ledger.LogRefusals()
	}
	err := s.disk.Close()
	for _, g := range s.columns.Groups.All() {
		g.Kill()
	}
	s.arenas.Release()
	return err
}

// ReleaseSenders lets the senders go on that are held back, as backpressure.Control.Release.
func (s *Store) ReleaseSenders() { s.pressure.Release() }

// DeleteSeries deletes series with all their points, as deletion.Deleter.Delete.
func (s *Store) DeleteSeries(ctx context.Context, bucket string, choice deletion.Choice,
	dryRun bool) (deletion.Result, error) {
	return s.deletions.Delete(ctx, bucket, choice, dryRun)
}

// Account returns the account of the node.
func (s *Store) Account() *account.Account { return s.ledger.Points() }

// Now returns the coarse clock, at most a tick behind.
func (s *Store) Now() time.Time { return time.Unix(0, s.clock.Unix()) }

// Intake is the way of points into the store.
func (s *Store) Intake() *intake.Intake { return s.intake }

// NewSession starts a session for the bucket, as its intake does. Close must be called.
func (s *Store) NewSession(info buckets.Info) (*intake.Session, error) {
	return s.intake.NewSession(info, write.Options{})
}

// Damage returns what was found damaged since the start, and how often.
func (s *Store) Damage() (names []string, count uint64) { return s.damage.Names() }

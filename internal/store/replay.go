package store

import (
	"context"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/store/replay"
	"dalmatiner/internal/write/columns"
)

// newReplay returns the replay of the log behind what a start has found.
func (s *Store) newReplay(found replay.Found, ownerless, lost *flush.Losses) *replay.Replay {
	return replay.New(replay.Options{
		Log: s.disk.Log, Ledger: s.ledger, Columns: s.columns, Buckets: s.buckets, Dir: s.dir,
		Clock:   s.clock,
		Flusher: s.flusher, Pressure: s.pressure, Sealers: s.sealers, Damage: &s.damage,
		Logger:    s.o.Logger,
		Ownerless: ownerless, Lost: lost, Sides: []replay.Side{s.tags, events.Side{Local: s.events}},
		LostEvents: s.events.ReplayLost,
		NewBucket:  s.newBucket, DropGroups: s.dropGroups,
		Deleted:  func(d *columns.Deletion) { s.deletions.Count(d) },
		AddHoles: s.addHoles,
		DropIdle: func(ctx context.Context) error { return s.merges.DropIdle(ctx) },
		Over: func() {
			if s.o.BackgroundMerge {
				s.workers.Go(func() { s.merges.Run(s.stop) })
			}
		},
		FlushBytes: s.o.FlushBytes, MaxPositions: s.o.maxPositions, Stop: s.stop, Hold: s.o.holdReplay,
	}, found)
}

// addHoles makes the holes that lost records of the log leave permanent, as far as
// the disk has room, and shows them to readers.
func (s *Store) addHoles(holes []hole.Hole) error {
	if len(holes) == 0 {
		return nil
	}
	if permanent, err := s.disk.Manifest.Settle(manifest.Edit{
		AddHoles: holes, NextSeq: s.dir.NextNumber()}); err != nil {
		return err
	} else if !permanent {
		s.o.Logger.Warn("the holes that lost records of the log leave wait for room on the disk", "holes",
			len(holes))
	}
	s.versions.Publish(func(v *version.Version) { v.ShowHoles(s.Buckets(), s.disk.Manifest.Holes()) })
	return nil
}

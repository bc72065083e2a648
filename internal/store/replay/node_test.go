package replay

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/store/reader"
	"dalmatiner/internal/write/backpressure"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/ledger"
)

// node is what a store has around its replay.
type node struct {
	log      *wal.Log
	registry *buckets.Registry[*columns.Bucket]
	columns  *columns.Table
	account  *account.Account
	sealers  *backpressure.Sealers
	damage   *damage.Notes
	reader   *reader.Reader // of the head as it is
	stop     chan struct{}
	hold     chan struct{}
	replay   *Replay
}

func (s *script) open(again *Again) error {
	s.T.Helper()
	s.openLog()
	logger := slog.New(slog.DiscardHandler)
	now := func() time.Time { return time.Unix(1000, 0) }
	n := s.node
	n.stop, n.hold, n.account, n.damage = make(chan struct{}), make(chan struct{}), account.New(),
		&damage.Notes{Logger: logger}
	n.registry = buckets.NewRegistry[*columns.Bucket]()
	budget, clock := memory.New(0, now, nil), clock.New(now)
	control := backpressure.New(backpressure.Options{
		FS: s.fs, Dir: "/data", Logger: logger, FlushBytes: 1 << 20, LateMemory: 1 << 20, Memory: budget,
		HeadBytes: func() int64 { return 0 }, NewSeries: func() int64 { return 0 },
		Stop: n.stop, OnFatal: func(err error) { s.T.Error(err) },
	})
	n.sealers = backpressure.NewSealers(control)
	n.sealers.Start()
	books := ledger.New(ledger.Options{
		Account: n.account, Clock: clock, Exists: func(id uint64) bool {
			return n.registry.ID(id) != nil
		},
		DiskFull: func() bool { return false }, FreeSpace: func() (int64, bool) { return 0, false },
	})
	books.Use(n.log)
	versions := version.New(func(*version.Segment) {})
	n.columns = columns.New(columns.Options{
		Buckets: n.registry, Log: books, Clock: clock, Versions: versions, NewSeries: func() {},
		Names: budget.NewStock(memory.StockOptions{Name: "names"}),
	})
	n.reader = reader.New(reader.Options{
		Versions: versions, Index: &n.columns.Index, Groups: &n.columns.Groups, Damage: n.damage,
		Replay: func(context.Context, metric.SeriesID) error { return nil },
	})
	dir := version.NewDir(s.fs, "/data", segment.NewFiles(s.fs, 1, 0), logger)
	dir.RaiseNumber(1)
	var beside []Side
	var lostEvents func(*wal.Report)
	if s.sides != nil {
		beside = s.sides.open(logger, books, control, budget)
		lostEvents = s.sides.events.ReplayLost
	}
	s.replay = New(Options{
		Sides: beside, LostEvents: lostEvents,
		Log: n.log, Ledger: books, Columns: n.columns, Buckets: n.registry, Dir: dir, Clock: clock,
		Flusher: &flusher{script: s}, Pressure: control, Sealers: n.sealers, Damage: n.damage,
		Logger:    logger,
		Ownerless: flush.NewLosses(n.account, books.Copies(), LostRecord),
		Lost:      flush.NewLosses(n.account, books.Copies(), LostInReplay),
		NewBucket: s.newBucket, DropGroups: func(b *columns.Bucket) {
			n.columns.DropGroups(b)
			books.DeleteBucket(b.ID)
			if s.sides != nil {
				s.sides.dropped(b)
			}
		},
		Deleted: func(d *columns.Deletion) {
			s.Printf("  deleted %d series, %d points of the head\n", len(d.Series), d.Head.Points)
		},
		AddHoles: s.printHoles, DropIdle: func(context.Context) error { return nil }, Over: func() {},
		FlushBytes: 1 << 20, MaxPositions: s.positions, Stop: n.stop, Hold: n.hold,
	}, Found{State: &s.state, Owners: s.owners(), Again: again})
	return s.replay.Run()
}

// owners knows what a flush has committed.
func (s *script) owners() *columns.Ownership {
	owners := s.columns.NewOwnership(s.state.ReplayFrom(), s.damage)
	for _, b := range s.buckets {
		if b.Since < s.state.AccountLSN {
			s.registry.Add(s.newBucket(*bucketInfo(b.Bucket)))
		}
	}
	for _, e := range s.series {
		if e.Since < s.state.AccountLSN {
			if err := owners.Restore(e); err != nil {
				s.T.Fatal(err)
			}
		}
	}
	owners.Settle()
	return owners
}

func (s *script) newBucket(info buckets.Info) *columns.Bucket {
	b := columns.NewBucket(info, 10, head.NewArena(10))
	if slot, ok := s.settled[b.ID]; ok {
		b.RaiseHighest(slot)
	}
	return b
}

func (s *script) close() {
	close(s.stop)
	s.replay.Stop()
	s.sealers.Close()
	if err := s.log.Close(); err != nil {
		s.T.Error(err)
	}
}

func (s *script) end() {
	s.T.Helper()
	if s.replay != nil {
		s.close()
	} else if err := s.log.Close(); err != nil {
		s.T.Error(err)
	}
}

// losses is the memory of losses, which stay until a flush has settled them.
func (s *script) losses() int64 { return s.replay.o.Ownerless.Bytes() + s.replay.o.Lost.Bytes() }

const slots = 64 // that a script uses, from 0

// flusher says what is in the head, and takes it away.
type flusher struct {
	*script
	gate version.Gate
}

func (f *flusher) Gate() *version.Gate { return &f.gate }

func (f *flusher) KeepPositions(keep bool) { f.Printf("  keep positions %t\n", keep) }

func (f *flusher) All(ctx context.Context) (r flush.Result, err error) {
	return r, f.flush(ctx)
}

func (s *script) flush(ctx context.Context) error {
	type flushed struct {
		name, words string
	}
	var all []flushed
	for _, g := range s.columns.Groups.All() {
		cols := g.Columns()
		for col := range cols.Len() {
			words := make([]uint64, slots)
			if !cols.Has(col) {
				continue
			}
			if err := s.reader.Read(ctx, reader.Series{Bucket: g.Bucket, ID: cols.ID(col)}, 0, words,
				nil); err != nil {
				return err
			}
			text := ""
			for slot, word := range words {
				if word != point.Unset {
					text += fmt.Sprintf(" %d=%d", slot, point.Int(word))
				}
			}
			if text != "" {
				all = append(all, flushed{metric.Text(cols.Key(col)), text})
			}
		}
		s.sealers.HandleWrite(g, head.WriteResult{Closed: g.CloseBlocks(func(uint64, int64, int64) bool {
			return true
		})})
		if c := g.BeginFlush(); c.Highest >= 0 {
			s.registry.ID(g.Bucket).RaiseHighest(c.Highest)
		}
		g.EndFlush()
	}
	slices.SortFunc(all, func(a, b flushed) int { return cmp.Compare(a.name, b.name) })
	s.Printf("  flush\n")
	for _, f := range all {
		s.Printf("    %s:%s\n", f.name, f.words)
	}
	return nil
}

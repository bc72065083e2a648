package upkeep_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/store/flushtest"
	"dalmatiner/internal/store/upkeep"
	"dalmatiner/internal/testkit/golden"
	"dalmatiner/internal/write/head"
)

// The options of the tests: a block of 60 slots of a second closes 10 s after its last write, or
// after 90 s.
const (
	headGrace     = 10 * time.Second
	headMaxAge    = 90 * time.Second
	maxLog        = 16 << 10
	flushInterval = 12 * time.Minute
	memoryLimit   = 1 << 30
)

// world is upkeep, and what it keeps up.
type world struct {
	*flushtest.World
	upkeep *upkeep.Upkeep
	used   int64 // bytes of memory beside what the world has
}

func newWorld(s *golden.Script, limit int64, logger *slog.Logger) *world {
	w := &world{World: flushtest.New(s, flushtest.Options{Memory: limit})}
	w.Memory.Add(memory.Pool{Name: "used", Use: func() int64 { return w.used }})
	w.upkeep = upkeep.New(upkeep.Options{
		Logger: logger, Clock: w.Clock, HeadGrace: headGrace, HeadMaxAge: headMaxAge, MaxLog: maxLog,
		FlushInterval: flushInterval,
		Log:           w.Log, Ledger: w.Ledger, Memory: w.Memory, Arenas: &w.Arenas, Buckets: w.Buckets,
		Columns: w.Columns, Files: w.Files,
		Versions: w.Versions, Flusher: w.Flusher, Pressure: w.Pressure, Sealers: w.Sealers,
	})
	return w
}

// TestScripts goes through the scripts in testdata and compares what upkeep does. Beside the
// commands of flushtest.World there are:
//
//	second                    EverySecond: says how many blocks it closes, and whether it wants a flush
//	relieve urgent            Relieve, at a level
//	use 70                    so many percent of the memory are in use
//	sealed 500                so many KiB more are encoded
//	late 500                  so many KiB more of late points wait
//	flush                     flushes what is sealed
//	index                     loads the indexes of all segments
//	yields [busy]             whether merges yield
//	queue 129                 so many blocks more wait for the sealers
func TestScripts(t *testing.T) {
	golden.Scripts(t, "testdata/*.txt", func(s *golden.Script) func(string, []string) {
		return newWorld(s, memoryLimit, flushtest.Quiet).run
	})
}

var levels = map[string]memory.Level{"urgent": memory.Urgent, "no_queries": memory.NoQueries,
	"no_series": memory.NoSeries, "hold": memory.Hold}

func (w *world) run(command string, args []string) {
	w.T.Helper()
	switch command {
	case "second":
		w.step(w.upkeep.EverySecond)
	case "relieve":
		w.step(func() { w.upkeep.Relieve(levels[args[0]]) })
	case "use":
		w.used = memoryLimit / 100 * w.Number(args[0])
		w.Printf("  %s\n", w.Memory.Look())
	case "sealed":
		w.Pressure.AddSealed(w.Number(args[0]) << 10)
	case "late":
		w.Pressure.AddLate(w.Number(args[0]) << 10)
	case "flush":
		if err := w.Flusher.Sealed(); err != nil {
			w.Printf("  error: %v\n", err)
		}
	case "index":
		w.loadIndexes()
		w.upkeep.WatchIndexes()
		w.indexes()
	case "yields":
		w.Printf("  %v\n", w.upkeep.Yields(len(args) > 0))
	case "queue":
		w.Sealers.HandleWrite(w.Columns.Groups.All()[0], head.WriteResult{Closed: int(w.Number(args[0]))})
	default:
		if !w.Run(command, args) {
			w.T.Fatalf("command %q", command)
		}
	}
}

// step prints what a step does.
func (w *world) step(do func()) {
	queued := w.Sealers.QueuedBlocks()
	do()
	var what []string
	if n := w.Sealers.QueuedBlocks() - queued; n > 0 {
		what = append(what, fmt.Sprintf("closes %d", n))
	}
	select {
	case <-w.Pressure.FlushWanted():
		what = append(what, "wants a flush")
	default:
	}
	if len(what) == 0 {
		what = []string{"does nothing"}
	}
	w.Printf("  %s\n", strings.Join(what, ", "))
	w.indexes()
	w.Seal(0)
}

func (w *world) loadIndexes() {
	for _, seg := range w.Versions.Latest().Segments {
		for _, b := range w.Buckets.All() {
			w.Must(seg.Reader.Hashes(b.ID, func(segment.Hash) {}))
		}
	}
}

// indexes prints whether indexes are loaded.
func (w *world) indexes() {
	var n int64
	for _, seg := range w.Versions.Latest().Segments {
		n += seg.Reader.IndexBytes()
	}
	if counted := w.upkeep.IndexBytes(); counted != n {
		w.T.Errorf("%d bytes of indexes are counted, %d are there", counted, n)
	}
	if n > 0 {
		w.Printf("  indexes are loaded\n")
	}
}

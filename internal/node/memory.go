package node

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/host/config"
	"dalmatiner/internal/host/memory"
)

const (
	// heapEvery is the time between two looks at the Go heap.
	heapEvery = 100 * time.Millisecond

	// collectEvery is the least time between two collections that the node asks
	// for while memory is short: what was given up counts until one has seen it.
	// It is collectRest times what the last one took, so that they never cost
	// more than a small part of the time.
	collectEvery = 2 * time.Second
	collectRest  = 20
)

// processMemory is the budget of this process and its tie to the Go runtime.
type processMemory struct {
	budget  *memory.Budget
	queries *memory.Leases
	flushed atomic.Bool // since the last look at the heap
}

const (
	// queryPart of the limit is what all queries together may use.
	queryPart = 4

	// smallQuery runs even when memory is short: an operator must see what is
	// going on.
	smallQuery = 1 << 20
)

// newMemory returns the budget that the configuration asks for.
func newMemory(c *config.Config) *processMemory {
	limit := c.MemoryLimit
	if limit == config.MemoryAuto {
		limit = memory.Default()
	}
	b := memory.New(limit, time.Now, func(bytes int64) { debug.SetMemoryLimit(bytes) })
	queries := b.NewLeases(memory.LeaseOptions{
		Name: "queries", Holds: "plans, rounds and results of queries, lists, answers that are being " +
			"read; refused at the limit",
		Limit: limit / queryPart, Small: smallQuery, Stall: c.ReplyStall,
	})
	return &processMemory{budget: b, queries: queries}
}

// forget takes back what the Go runtime was told.
func (m *processMemory) forget() {
	if m.budget.Limit() > 0 {
		debug.SetMemoryLimit(math.MaxInt64)
	}
}

// follow tells the budget what the Go runtime holds until ctx ends, and calls giveUp while
// memory is short. The function it returns waits for that.
func (m *processMemory) follow(ctx context.Context, giveUp func()) (wait func()) {
	var done sync.WaitGroup
	done.Go(func() {
		t := time.NewTicker(heapEvery)
		defer t.Stop()
		heap := newHeapMeter()
		var collect collector
		var pace heapPace
		defer pace.forget()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-t.C:
				held := heap.held()
				m.budget.SetHeap(held, heap.cycles())
				m.budget.Sweep()
				smaller, flushed := pace.at(now, heap.cycles()), m.flushed.Swap(false)
				if smaller || flushed && pace.rarely() {
					debug.FreeOSMemory() // else what a flush, or many new series, leave would stay for minutes
				}
				if m.budget.Level() > memory.Calm {
					giveUp()
					collect.at(now)
				}
			}
		}
	})
	return done.Wait
}

// collector collects now and then.
type collector struct {
	next time.Time
}

// at collects, and gives free memory back to the system, if it is time.
func (c *collector) at(now time.Time) {
	if now.Before(c.next) {
		return
	}
	debug.FreeOSMemory()
	ended := time.Now()
	c.next = ended.Add(max(collectEvery, collectRest*ended.Sub(now)))
}

// heapMeter reads what the Go runtime holds.
type heapMeter struct{ samples []metrics.Sample }

// The runtime's figures: all that it has from the system, and what of it was
// alive at the last collection.
const (
	runtimeTotal = "/memory/classes/total:bytes"
	runtimeLive  = "/gc/heap/live:bytes"

	runtimeCycles = "/gc/cycles/total:gc-cycles"
)

func newHeapMeter() *heapMeter {
	m := &heapMeter{}
	for _, name := range []string{
		runtimeTotal, runtimeLive, runtimeCycles,
		// What is not overhead but objects, garbage, free or given back.
		"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes",
		"/memory/classes/heap/free:bytes", "/memory/classes/heap/released:bytes",
	} {
		m.samples = append(m.samples, metrics.Sample{Name: name})
	}
	return m
}

// held returns what the last collection found alive, and what the runtime needs
// beside it.
func (m *heapMeter) held() int64 {
	metrics.Read(m.samples)
	overhead := m.samples[0].Value.Uint64()
	for _, s := range m.samples[3:] {
		overhead -= min(s.Value.Uint64(), overhead)
	}
	return int64(m.samples[1].Value.Uint64() + overhead)
}

// cycles returns how often the heap was collected, as of the last call of held.
func (m *heapMeter) cycles() uint64 { return m.samples[2].Value.Uint64() }

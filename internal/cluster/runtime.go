package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// data are the copies that this node has: a *replica.Replica.
type data interface {
	replication.Store
	NextBatch(bucket uint64)
	HintKeys(bucket uint64) [][]byte
	Durable(ctx context.Context, upTo replication.Position) error
	// Adopt puts the chunks that wait for that into files, and returns the number of the last one.
	Adopt(ctx context.Context) (upTo uint64, err error)
	// AdoptDue reports whether that is worth a file by now, or has waited long.
	AdoptDue() bool
	Boot() uint64
	Close() error
}

// runtime runs the protocol: it gives it what comes in, one input at a time, and sends what comes
// out.
type runtime struct {
	data  data
	self  ring.ID
	pace  Pace
	start time.Time
	now   func() time.Time
	fatal func(error)
	send  func(to ring.ID, m replication.Message) // returns at once
	reply func(r replication.Reply)

	latest atomic.Pointer[replication.HintView]

	throttle throttle // of what comparisons move

	mu   sync.Mutex
	core *replication.Core
	// closed: inputs come too late.
	closed bool

	found  chan difference // that reads have met
	toSync chan struct{}   // holds one while something waits for the log
	toFile chan struct{}   // holds one while chunks are to be adopted
	toSum  chan struct{}   // holds one while digests are to be made
	ctx    context.Context
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// time is the time of an input.
func (r *runtime) time() replication.Time {
	wall := r.now().UnixNano()
	return replication.Time{Steady: time.Since(r.start).Milliseconds(), Wall: uint64(max(wall, 0))}
}

// input gives the protocol one input, and does what follows. What the node sends to itself does not
// leave the lock: nothing else comes between.
func (r *runtime) input(do func(t replication.Time, core *replication.Core)) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	t := r.time()
	do(t, r.core)
	var out []replication.Send
	var replies []replication.Reply
	for {
		sends, done := r.core.Take()
		replies = append(replies, done...)
		own := false
		for _, s := range sends {
			if s.To != r.self {
				out = append(out, s)
				continue
			}
			own = true
			r.core.Receive(t, r.self, s.Message)
		}
		if !own {
			break
		}
	}
	r.publish()
	adopt, prepare := r.core.Background().AwaitsFiles() || r.data.AdoptDue(),
		r.core.Background().AwaitsDigests()
	r.mu.Unlock()
	wake(r.toFile, adopt)
	wake(r.toSum, prepare)
	wake(r.toSync, true)
	for _, s := range out {
		r.send(s.To, s.Message)
	}
	for _, done := range replies {
		r.reply(done)
	}
}

// wake wakes who waits for a channel that holds one, if he is to look.
func wake(who chan struct{}, look bool) {
	if !look {
		return
	}
	select {
	case who <- struct{}{}:
	default: // he will look
	}
}

// publish lets reads and events see what this node has heard of the others, before anything is sent
// that follows from it.
func (r *runtime) publish() {
	if h := r.core.HintView(r.latest.Load()); h != nil {
		r.latest.Store(h)
	}
}

// mayKeep returns the members that may keep hints of a partition.
func (r *runtime) mayKeep(partition int) []ring.ID { return r.latest.Load().Holders[partition] }

// agreed reports whether all members that are up know a ring, or a later one: else nothing is
// acknowledged under it.
func (r *runtime) agreed(v *ring.View) bool {
	h := r.latest.Load()
	return h.Agreed && h.Version == v.Version()
}

// run starts what goes on by itself. While this node waits for others, no time passes for the
// protocol.
func (r *runtime) run(waits *atomic.Bool) {
	r.done.Go(r.syncLog)
	r.done.Go(r.adoptChunks)
	r.done.Go(r.makeDigests)
	r.done.Go(func() {
		tick := time.NewTicker(r.pace.Tick)
		defer tick.Stop()
		for {
			if !waits.Load() {
				r.tick()
			}
			select {
			case <-tick.C:
			case <-r.ctx.Done():
				return
			}
		}
	})
}

// tick lets time pass for the protocol.
func (r *runtime) tick() {
	r.input(func(t replication.Time, core *replication.Core) {
		r.tellDifferences(t)
		core.Background().Pace(r.throttle.next(time.Duration(t.Steady)*time.Millisecond,
			core.Background().MovedPoints()))
		core.Tick(t)
	})
}

// difference is a series, n of whose bucket is copies, of which the copies differ.
type difference struct {
	id     metric.SeriesID
	copies int
}

// differ notes what a read has met. A read does not wait for the protocol.
func differ(c *Cluster, bucket uint64, id metric.SeriesID) {
	select {
	case c.found <- difference{id, c.buckets.copies(bucket)}:
	default:
	}
}

// tellDifferences tells the protocol what reads have met.
func (r *runtime) tellDifferences(t replication.Time) {
	for {
		select {
		case d := <-r.found:
			r.core.Differs(t, d.id, d.copies)
		default:
			return
		}
	}
}

// syncLog tells the protocol what is on disk. While it waits for the disk more is written: one sync
// is for all of that.
func (r *runtime) syncLog() {
	var synced replication.Position
	for {
		select {
		case <-r.toSync:
		case <-r.ctx.Done():
			return
		}
		r.mu.Lock()
		upTo := r.core.AwaitedPosition()
		r.mu.Unlock()
		if upTo == synced {
			continue
		}
		if err := r.data.Durable(r.ctx, upTo); err != nil {
			if !errors.Is(err, context.Canceled) {
				// Nothing would be acknowledged any more, and everything be taken.
				r.fatal(fmt.Errorf("copies cannot be made durable: %w", err))
			}
			return
		}
		synced = upTo
		r.input(func(t replication.Time, core *replication.Core) { core.SyncedUpTo(t, upTo) })
	}
}

// adoptChunks tells the protocol which chunks of other nodes are in files. What cannot be put
// there, on a full disk for instance, waits, and what follows from it with it.
func (r *runtime) adoptChunks() {
	for {
		select {
		case <-r.toFile:
		case <-r.ctx.Done():
			return
		}
		upTo, err := r.data.Adopt(r.ctx)
		if err != nil {
			if r.ctx.Err() != nil {
				return
			}
			select {
			case <-time.After(adoptAgain):
			case <-r.ctx.Done():
				return
			}
			continue
		}
		r.input(func(t replication.Time, core *replication.Core) {
			core.Background().AdoptedUpTo(t,
				upTo)
		})
	}
}

// makeDigests makes digests that the protocol waits for, some at a time: others come in between.
func (r *runtime) makeDigests() {
	for {
		select {
		case <-r.toSum:
			r.input(func(t replication.Time, core *replication.Core) { core.Background().PrepareSome(t) })
		case <-r.ctx.Done():
			return
		}
	}
}

// adoptAgain is the time from a failure to put chunks into a file to the next try.
const adoptAgain = time.Second

// close ends everything that runs. Nothing is given to the protocol afterwards.
func (r *runtime) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.done.Wait()
}

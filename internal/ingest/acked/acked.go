// Package acked is shared by the protocols that answer each request: the points of a request go
// into a bucket, its series get their tags, and the answer comes when all of that is durable. It
// says what became of every point, and whether the sender should try again.
package acked

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/ingest/appender"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write"
)

// Options configure the writers of a listener. All but Monitor are required.
type Options struct {
	Listener string // stands before every reason in the account
	Points   write.Target
	Tags     write.Tagger
	Memory   *memory.Budget
	Account  *account.Account // that refused input is counted in
	Logger   *slog.Logger
	Monitor  *monitor.Recorder // may be nil
	Now      func() time.Time
}

// Writers are the ways of a listener's requests into buckets. The methods may be called
// concurrently.
type Writers struct {
	o        Options
	log      *loglimit.Logger
	refusals *unacked.Refusals
	tagger   *labels.Tagger
	ctx      context.Context // ends waits for the store of tags at Close
	cancel   context.CancelFunc

	mu     sync.Mutex
	idle   []*Writer // the one that was used last comes last
	closed bool
}

// idleWriters is how many writers wait for the next request. Each keeps its stream open, because
// the next request most likely has the same series in the same order.
func idleWriters() int { return 8 * runtime.GOMAXPROCS(0) }

// New returns the writers of a listener. Close must be called.
func New(o Options) *Writers {
	ws := &Writers{o: o, log: loglimit.New(o.Logger, time.Now)}
	ws.refusals = unacked.NewRefusals(o.Listener, o.Account, ws.log)
	ws.tagger = labels.NewTagger(o.Tags, o.Memory, o.Listener, ws.refusals)
	ws.ctx, ws.cancel = context.WithCancel(context.Background())
	o.Memory.Add(memory.Pool{
		Name:  o.Listener + "-writers",
		Holds: "points of requests, 92 KiB each, kept for the next ones",
		Use:   ws.bytes,
	})
	return ws
}

func (ws *Writers) bytes() int64 {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return int64(len(ws.idle)) * appender.Size
}

// Close ends the streams that wait for requests. What was answered is durable already.
func (ws *Writers) Close() error {
	ws.cancel()
	ws.mu.Lock()
	idle := ws.idle
	ws.idle, ws.closed = nil, true
	ws.mu.Unlock()
	var err error
	for _, w := range idle {
		err = cmp.Or(err, w.Close())
	}
	ws.log.Close()
	return err
}

// Begin returns a writer for the points of one request into a bucket. The bucket is created, with
// slots of a second and timestamps, where it is missing and auto-creation is on. End must be
// called. An error is of the sender's bucket, as unacked.Refused says: then the request is counted
// as refused. Any other error means that nothing can be stored any more.
func (ws *Writers) Begin(bucket string, peer netip.AddrPort) (*Writer, error) {
	w := ws.take(bucket)
	if w == nil {
		w = ws.newWriter(bucket)
	}
	w.counts = account.Counts{}
	if err := w.Appender.Begin(ws.o.Now(), peer); err != nil {
		if reason, ok := unacked.Refused(err); ok {
			ws.Refuse(reason, peer, []byte(err.Error()))
		}
		return nil, cmp.Or(w.Close(), err)
	}
	return w, nil
}

// take returns an idle writer of a bucket, or nil.
func (ws *Writers) take(bucket string) *Writer {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for i, w := range slices.Backward(ws.idle) {
		if w.name == bucket {
			ws.idle = slices.Delete(ws.idle, i, i+1)
			return w
		}
	}
	return nil
}

// giveBack keeps a writer for the next request of its bucket, in place of the one that waits
// longest where there are too many.
func (ws *Writers) giveBack(w *Writer) error {
	ws.mu.Lock()
	over := w
	if !ws.closed {
		ws.idle, over = append(ws.idle, w), nil
		if len(ws.idle) > idleWriters() {
			over = ws.idle[0]
			ws.idle = slices.Delete(ws.idle, 0, 1)
		}
	}
	ws.mu.Unlock()
	if over == nil {
		return nil
	}
	return over.Close()
}

// Refuse counts one refused input of a peer under a reason. input is a sample for the log.
func (ws *Writers) Refuse(reason string, peer netip.AddrPort, input []byte) {
	ws.refusals.Count(reason, peer, input)
}

// Count counts what of a request is not kept, under a reason.
func (ws *Writers) Count(reason string, n int) {
	ws.o.Account.RefuseRequests(ws.o.Listener+"_"+reason, uint64(n))
}

// Refusal is the error of points that were not stored.
type Refusal struct {
	Counts account.Counts // of the request
}

// Retry reports whether the same request may be stored later: what is stored already is a
// duplicate then, and changes nothing.
func (r *Refusal) Retry() bool {
	for _, reason := range []account.Reason{account.DiskFull, account.BucketDeleted,
		account.SeriesLimit, account.Memory, account.Overload, account.Unconfirmed} {
		if r.Counts.Refused[reason] > 0 {
			return true
		}
	}
	return false
}

// Error names the reasons with their numbers.
func (r *Refusal) Error() string {
	text := fmt.Sprintf("%d of %d points were not stored", r.Counts.RefusedTotal(),
		r.Counts.ReceivedPoints())
	for _, reason := range account.Reasons() {
		if n := r.Counts.Refused[reason]; n > 0 {
			text += fmt.Sprintf(", %d: %s", n, remedies[reason])
		}
	}
	return text
}

// remedies say why points are refused, and what to do.
var remedies = [account.NumReasons]string{
	account.Future: "future, further ahead of the node's clock than ingest.max_future: set the " +
		"clock of the sender",
	account.Expired:       "expired, older than the lifetime of the bucket",
	account.BadType:       "bad_type, no value",
	account.DiskFull:      "disk_full, less than storage.min_free is left",
	account.EmptyName:     "empty_name, a series without name and labels",
	account.BucketDeleted: "bucket_deleted, the bucket was deleted meanwhile",
	account.SeriesLimit:   "series_limit, the node can hold no more series",
	account.Memory:        "memory, new series wait until memory is free",
	account.Overload:      "overload, new series wait",
	account.BadTimestamp:  "bad_timestamp, more than 417 days from the slot",
	account.SameHash:      "same_hash, another series has the hash of this one",
	account.TooLarge:      "too_large",
	account.Unconfirmed:   "unconfirmed, too few nodes have confirmed them in time",
}

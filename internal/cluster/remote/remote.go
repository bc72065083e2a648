// Package remote reads series from the nodes that have copies of them: it asks as many as a read
// needs, lays the copies over each other, and looks like one store. DESIGN.md beside it has the
// requests and the rules.
package remote

import (
	"cmp"
	"context"
	"errors"
	"time"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/store"
)

// Options are what reads need of a node. All functions may be called concurrently.
type Options struct {
	Self ring.ID
	View func() *ring.View
	Up   func(ring.ID) bool // whether a node is asked for what it owns; false for Self in maintenance
	// Reaches reports whether a node can be asked for the hints that it keeps; nil: those that are up
	// can be.
	Reaches func(ring.ID) bool
	R       func(v *ring.View, bucket uint64) int // copies that have to answer under a ring

	// Holders returns the members that may keep hints of a partition, be they up or not:
	// replication.Core.Holders. The slice is the callee's.
	Holders func(partition int) []ring.ID
	// Copies returns the n of a bucket that has one of its own, else 0; nil: none has.
	Copies func(bucket uint64) int

	Now func() time.Time

	// Ready reports whether this node may answer for its copies, and knows whom to ask: it has reached
	// the others, or waited for them, and has learnt the deletions that it missed.
	Ready func() bool
	// Member returns an error while this node belongs to no cluster: then it does not know its
	// buckets. nil: it always does.
	Member func() error
	// Ask is call.Calls.Ask.
	Ask func(ctx context.Context, to ring.ID, request []byte, part func([]byte) error) error

	Local source.Source // the store, as queries of one node read it
	// Private are buckets that belong to this node alone: other nodes have no copies. nil: there are
	// none.
	Private func(name string) bool
	Store   *store.Store
	// Incarnation returns the clock of the last deletion of a series, 0 for none.
	Incarnation func(bucket uint64, id metric.SeriesID) uint64
	// Hints returns what this node keeps for others of the slots [from, past) of a series.
	Hints func(id metric.SeriesID, from, past uint64) []replication.Row
	// HintKeys returns the keys of the series of a bucket that this node keeps something of for
	// others.
	HintKeys func(bucket uint64) [][]byte
	// Differs is told of chunks [from, past), older than Delay, in which the copies of a series of a
	// bucket differ. It returns at once.
	Differs func(bucket uint64, id metric.SeriesID, from, past int64)
	// Delay is how old points are at most when all copies have them, as a guess: the digests of
	// younger chunks stand apart. 0 is 15 s.
	Delay time.Duration
}

// Remote reads from all nodes. Its methods may be called concurrently.
type Remote struct {
	o       Options
	latency latency
}

// New returns what reads from all nodes.
func New(o Options) (*Remote, error) {
	if o.View == nil || o.Up == nil || o.R == nil || o.Now == nil || o.Ready == nil || o.Ask == nil ||
		o.Local == nil || o.Store == nil ||
		o.Incarnation == nil || o.Hints == nil || o.HintKeys == nil || o.Holders == nil ||
		o.Differs == nil {
		return nil, errors.New("reads of a cluster need a ring, a store and a way to ask")
	}
	if o.Reaches == nil {
		o.Reaches = o.Up
	}
	o.Delay = cmp.Or(o.Delay, 15*time.Second)
	if o.Copies == nil {
		o.Copies = func(uint64) int { return 0 }
	}
	return &Remote{o: o}, nil
}

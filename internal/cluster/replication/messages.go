package replication

import (
	"cmp"
	"slices"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/metric"
)

// Row is one point on its way between nodes.
type Row struct {
	Series      metric.SeriesID
	Incarnation uint64 // of the series, as the sender knows it
	Slot        uint64
	Value       Value
}

// Deletion raises the incarnation of a series: what it had is gone.
type Deletion struct {
	Series      metric.SeriesID
	Incarnation uint64
}

// Change is what a batch does to one partition.
type Change struct {
	Partition int
	Rows      []Row
	Deletions []Deletion
}

// BatchID names a batch of a coordinator. Boot grows with every start, so numbers begin anew.
type BatchID struct {
	Coordinator  ring.ID
	Boot, Number uint64
}

// Key names what a node does once: a batch in one partition, for one owner. A new attempt has
// other content.
type Key struct {
	Batch     BatchID
	Partition int
	Attempt   int
	For       ring.ID // the owner; another than the node: it keeps a hint
}

// Counts say what became of points. Each point is in one of them.
type Counts struct {
	Accepted    int // the slot was unset
	Duplicate   int // it held this value
	Conflicting int // it held another one; the larger one stays
	Unconfirmed int // fewer than W copies are known to be on disk; the point may be stored
}

func (c *Counts) add(o Counts) {
	c.Accepted += o.Accepted
	c.Duplicate += o.Duplicate
	c.Conflicting += o.Conflicting
	c.Unconfirmed += o.Unconfirmed
}

// Points returns the number of all points.
func (c Counts) Points() int { return c.Accepted + c.Duplicate + c.Conflicting + c.Unconfirmed }

// Refusal says why a node did not take a write.
type Refusal uint8

// The refusals.
const (
	Taken     Refusal = iota // no refusal
	OtherRing                // its ring is another one, or it has not caught up yet: send again later
	NotMine                  // it does not own the partition and is not asked to stand in
	Stale                    // it knows of later deletions, which the answer names: send again with these
	Full                     // its disk or its hint log has no room
)

// Message is what nodes send each other. All may come late, twice, in another order, or never.
type Message interface{ message() }

// Write asks for a copy. It is repeated until it is answered or the batch is settled.
type Write struct {
	Key
	Version ring.Version
	Settled uint64 // batches of this boot below it are never sent again
	Change  Change
}

// Written answers a Write, after the copy is on disk.
type Written struct {
	Key
	Refusal Refusal
	Counts  Counts     // what it was for this copy
	Later   []Deletion // with Stale: incarnations that the receiver knows
}

// HintID names a hint of the node that keeps it, since its last start.
type HintID struct {
	Node         ring.ID
	Boot, Number uint64
}

// Deliver brings an owner what it missed.
type Deliver struct {
	ID      HintID
	Version ring.Version
	Change  Change
}

// Delivered says that a hint is on the owner's disk.
type Delivered struct{ ID HintID }

// Learn asks for all deletions that a node knows of: first thing after a start.
type Learn struct{}

// Known answers Learn.
type Known struct{ Deletions []Deletion }

// ChunkID names a piece of a series whose digest is compared.
type ChunkID struct {
	Series metric.SeriesID
	Number uint64
}

// ChunkDigest is the digest of what a node holds of a chunk, after resolution.
type ChunkDigest struct {
	ID     ChunkID
	Digest uint64
}

// Compare shows what the sender holds of a partition.
type Compare struct {
	Round     uint64 // of the sender, returned in the answers
	Partition int
	Version   ring.Version
	Chunks    []ChunkDigest // in ascending order
	Deletions []Deletion
}

// Difference answers Compare with all that the sender may lack, and asks for the rest.
type Difference struct {
	Round     uint64
	Partition int
	Version   ring.Version
	Rows      []Row
	Deletions []Deletion
	Want      []ChunkID
}

// Fill gives what a Difference asked for.
type Fill struct {
	Round   uint64
	Version ring.Version
	Change  Change
}

// Filled says that a Fill is on disk.
type Filled struct {
	Round     uint64
	Partition int
}

// Fetch asks for the slots of a series.
type Fetch struct {
	Request    uint64
	Version    ring.Version
	Partition  int
	Series     metric.SeriesID
	From, Past uint64
}

// Fetched answers Fetch.
type Fetched struct {
	Request     uint64
	Ready       bool // false: the node cannot answer now
	Incarnation uint64
	Slots       []Slot
}

// Slot is what a copy says of a slot. Unknown is no unset: damage took what was there.
type Slot struct {
	Value   Value
	Unknown bool
}

func (Write) message()      {}
func (Written) message()    {}
func (Deliver) message()    {}
func (Delivered) message()  {}
func (Learn) message()      {}
func (Known) message()      {}
func (Compare) message()    {}
func (Difference) message() {}
func (Fill) message()       {}
func (Filled) message()     {}
func (Fetch) message()      {}
func (Fetched) message()    {}

// Compare orders chunks by series and number.
func (id ChunkID) Compare(o ChunkID) int {
	return cmp.Or(slices.Compare(id.Series[:], o.Series[:]), cmp.Compare(id.Number, o.Number))
}

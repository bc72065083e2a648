package replication

import (
	"cmp"
	"slices"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// Row is one point on its way between nodes.
type Row struct {
	Series      metric.SeriesID
	Incarnation uint64 // of the series, as the sender knows it
	Slot        uint64
	Value       Value
}

// Chunk is all that a node has of a chunk, encoded by its store.
type Chunk struct {
	ID           ChunkID
	Incarnation  uint64 // of the series, as the sender knows it
	Points       int
	Words, Times []byte // Times: of a bucket with timestamps, else empty
}

// Deletion raises the incarnation of a series: what it had is gone.
type Deletion struct {
	Series      metric.SeriesID
	Incarnation uint64
}

// Change is what a batch does to one partition, or, in a Write, to several of the same owners.
// Messages and stores share it: nobody changes it.
type Change struct {
	Partition int
	Further   []int    // partitions beside it, ascending
	Copies    int      // n of the bucket; 0: that of the ring
	Columns   []Column // of a Write; they come before the rows
	Chunks    []Chunk  // of a Merge alone, ascending; they come before the rows
	Rows      []Row
	Deletions []Deletion
}

// Share is a partition of the buckets that have the same n: they have the same owners.
type Share struct {
	Partition int
	Copies    int // n; 0: that of the ring
}

func (c *Change) share() Share { return Share{c.Partition, c.Copies} }
func (s *Step) share() Share   { return Share{s.Partition, s.Copies} }

// BatchID names a batch of a coordinator. Boot grows with every start, so numbers begin anew.
type BatchID struct {
	Coordinator  ring.ID
	Boot, Number uint64
}

// Key names what a node does once: a change of a batch, for one owner. A new attempt has other
// content.
type Key struct {
	Batch     BatchID
	Partition int // of the change: no other one of the batch with as many partitions has it
	Further   int // how many partitions the change has beside it
	Attempt   int
	For       ring.ID // the owner; another than the node: it keeps a hint
}

// Counts say what became of points. Each point is in one of them.
type Counts struct {
	Accepted    int // the slot was unset
	Duplicate   int // it held this value
	Conflicting int // it held another one; the larger one stays
	Unconfirmed int // fewer than W copies are known to be on disk; the point may be stored
	Deleted     int // an owner knows that the bucket was deleted; that is for the coordinator to say
}

func (c *Counts) add(o Counts) {
	c.Accepted += o.Accepted
	c.Duplicate += o.Duplicate
	c.Conflicting += o.Conflicting
	c.Unconfirmed += o.Unconfirmed
	c.Deleted += o.Deleted
}

// Points returns the number of all points.
func (c Counts) Points() int {
	return c.Accepted + c.Duplicate + c.Conflicting + c.Unconfirmed + c.Deleted
}

// Refusal says why a node did not take a write.
type Refusal uint8

// The refusals.
const (
	Taken Refusal = iota // no refusal
	// its ring is another one, it has not caught up yet, or lacks the bucket: send again later
	OtherRing
	NotMine // it does not own the partition and is not asked to stand in
	// it knows of later deletions, which the answer names: send again with these
	Stale
	Full        // its disk or its hint log has no room
	StaleBucket // it knows that the bucket was deleted: nobody takes this any more
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

// WriteReply answers a Write, after the copy is on disk.
type WriteReply struct {
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

// DeliverReply says that a hint is on the owner's disk.
type DeliverReply struct{ ID HintID }

// Keeps says in which partitions a node keeps hints, and which ring it knows. A later list of a
// node replaces an earlier one.
type Keeps struct {
	Node         ring.ID // the sender, or one that is down and has said so to the sender
	Boot, Number uint64  // of the list: of two, the higher one is later
	Partitions   []byte  // a bit for each, the lowest first; empty: none
	Version      ring.Version
}

// KeepsReply answers Keeps of the sender, once this node knows its ring or a later one.
type KeepsReply struct{ Boot, Number uint64 }

// AskKeeps asks a node for what it keeps, and for what it has heard of nodes that are down.
type AskKeeps struct{}

// Learn asks for all deletions that a node knows of, page by page: first thing after a start.
type Learn struct{ After metric.SeriesID }

// LearnReply answers Learn with the deletions of series behind After and up to Through, all of
// them.
type LearnReply struct {
	After, Through metric.SeriesID // Through is LastSeries() in the last page
	Deletions      []Deletion      // ascending
}

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

// WindowDigest is what a node holds of a partition in a window, all series together.
type WindowDigest struct {
	Number uint64 // that of a chunk / WindowChunks
	// the sum of the digests of its chunks, each mixed with series, incarnation and number
	Digest uint64
}

// Step says to which step of a pass a message belongs. A pass compares all that two nodes have of a
// partition, a message and its answer after the other; the answer has the Step of its question.
type Step struct {
	Boot, Pass uint64 // of the node that asks
	Number     uint64 // of the message in the pass
	Partition  int
	Copies     int // n of the buckets; 0: that of the ring
	Version    ring.Version
}

// Compare shows what the sender holds in a range of windows.
type Compare struct {
	Step
	Deletions uint64 // digest of the deletions of the partition
	// numbers of windows: the list is complete between them, both included
	From, Through uint64
	Windows       []WindowDigest // ascending
}

// CompareReply answers Compare.
type CompareReply struct {
	Step
	Deletions bool     // they differ
	Through   uint64   // the answer speaks of windows up to this one
	Windows   []uint64 // that differ, ascending
	Left      int      // windows that it holds behind Through
}

// ShareDeletions gives deletions of series behind After and up to Through, all that the sender
// knows.
type ShareDeletions struct {
	Step
	After, Through metric.SeriesID
	Deletions      []Deletion // ascending
}

// ShareDeletionsReply answers it, once they are on disk, with all that are known here up to
// Through.
type ShareDeletionsReply struct {
	Step
	Through   metric.SeriesID // at most that of the question
	Deletions []Deletion      // ascending
}

// CompareChunks shows what the sender holds of a window: chunks of series behind After and up to
// Through.
type CompareChunks struct {
	Step
	Window         uint64
	After, Through metric.SeriesID
	Chunks         []ChunkDigest // ascending
}

// Difference answers CompareChunks.
type Difference struct {
	Step
	Through metric.SeriesID // the answer speaks of series up to this one
	Chunks  int             // how many it holds in the range
	Want    []ChunkID       // of which the sender has something else, or which only it has
	Have    []ChunkID       // of which the other side has something else, or which only it has
}

// Fill gives chunks and asks for others.
type Fill struct {
	Step
	Chunks []Chunk   // ascending
	Want   []ChunkID // ascending
}

// FillReply answers it, once the chunks are on disk, with the first ones that were asked for.
type FillReply struct {
	Step
	Chunks []Chunk // ascending; those that have no points are left out
	Given  int     // chunks; at least one, if any was asked for
}

// Fetch asks for the slots of a series, at most MaxRows.
type Fetch struct {
	Request    uint64
	Version    ring.Version
	Partition  int
	Series     metric.SeriesID
	From, Past uint64
}

// FetchReply answers Fetch.
type FetchReply struct {
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

func (Write) message()               {}
func (WriteReply) message()          {}
func (Deliver) message()             {}
func (DeliverReply) message()        {}
func (Keeps) message()               {}
func (KeepsReply) message()          {}
func (AskKeeps) message()            {}
func (Learn) message()               {}
func (LearnReply) message()          {}
func (Compare) message()             {}
func (CompareReply) message()        {}
func (ShareDeletions) message()      {}
func (ShareDeletionsReply) message() {}
func (CompareChunks) message()       {}
func (Difference) message()          {}
func (Fill) message()                {}
func (FillReply) message()           {}
func (Fetch) message()               {}
func (FetchReply) message()          {}

// Compare orders chunks by series and number.
func (id ChunkID) Compare(o ChunkID) int {
	return cmp.Or(slices.Compare(id.Series[:], o.Series[:]), cmp.Compare(id.Number, o.Number))
}

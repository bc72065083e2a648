// Package damage names and counts what was found damaged and is therefore not served (I5).
package damage

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/metric"
)

// maxNames bounds the list of names: the count goes on.
const maxNames = 1000

// Notes is what was found damaged since the start of a store. Its methods may be called
// concurrently.
type Notes struct {
	Logger *slog.Logger // takes each name once; set before use

	mu         sync.Mutex
	names      []string // newest last
	count      uint64
	readErrors int64
	inSegments map[uint64]uint64 // of the count, that in segments, by their buckets
	elsewhere  uint64            // the rest of the count
}

// Report names, counts and logs damage in what, and counts what a device could not read.
func (n *Notes) Report(what string, err error) { n.report(what, err, nil) }

// report is Report of damage in a segment, nil for elsewhere.
func (n *Notes) report(what string, err error, seg *version.Segment) {
	// once, however often it is met
	if n.add(fmt.Sprintf("%s: %v", what, err), segment.ReadFailed(err), seg) {
		n.Logger.Error("damaged data was found and is not served", "what", what, "err", err)
	}
}

// Add counts damage and reports whether its name is new to the list. unread says that a device
// could not read it.
func (n *Notes) Add(name string, unread bool) bool { return n.add(name, unread, nil) }

func (n *Notes) add(name string, unread bool, seg *version.Segment) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count++
	n.locate(seg)
	if unread {
		n.readErrors++
	}
	if len(n.names) == maxNames || slices.Contains(n.names, name) {
		return false
	}
	n.names = append(n.names, name)
	return true
}

// NoteReadError takes what a method of a segment's reader returned. Damage is reported, and the
// caller leaves out what it hit: then the result is nil. Any other error is returned with the
// name of the segment.
func (n *Notes) NoteReadError(seg *version.Segment, err error) error {
	if err == nil {
		return nil
	}
	damages := segment.Damages(err)
	if len(damages) == 0 {
		return fmt.Errorf("reading segment %s: %w", seg.Name(), err)
	}
	for _, d := range damages {
		n.report("segment "+seg.Name(), d, seg)
	}
	return nil
}

// locate counts damage for the buckets that may have lost something. Under the lock.
func (n *Notes) locate(seg *version.Segment) {
	if seg == nil || len(seg.Meta.Ranges) == 0 {
		n.elsewhere++
		return
	}
	if n.inSegments == nil {
		n.inSegments = make(map[uint64]uint64)
	}
	for _, r := range seg.Meta.Ranges {
		n.inSegments[r.Bucket]++
	}
}

// NoteUndecodable reports a chunk whose checksum is right and whose content is not.
func (n *Notes) NoteUndecodable(seg *version.Segment, id metric.SeriesID, number int64, err error) {
	n.report("segment "+seg.Name(), seg.Reader.UndecodableError(segment.Hash(id), number, err), seg)
}

// Names returns what was found damaged, newest last, and how often damage was met. The list is
// the caller's.
func (n *Notes) Names() (names []string, count uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.names), n.count
}

// CountOf returns a number that grows whenever damage is met by which a bucket may have lost
// something, and whether any was met at all.
func (n *Notes) CountOf(bucket uint64) (here uint64, any bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.elsewhere + n.inSegments[bucket], n.count > 0
}

// ReadErrors returns how often a device could not read: a part of the count of Names.
func (n *Notes) ReadErrors() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.readErrors
}

// Package damage names and counts what was found damaged and is therefore not served (I5).
package damage

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"dalmatiner/internal/metric"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/version"
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
}

// Report names, counts and logs damage in what, and counts what a device could not read.
func (n *Notes) Report(what string, err error) {
	if n.Add(fmt.Sprintf("%s: %v", what, err), segment.ReadFailed(err)) { // once, however often it is met
		n.Logger.Error("damaged data was found and is not served", "what", what, "err", err)
	}
}

// Add counts damage and reports whether its name is new to the list. unread says that a device
// could not read it.
func (n *Notes) Add(name string, unread bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count++
	if unread {
		n.readErrors++
	}
	if len(n.names) == maxNames || slices.Contains(n.names, name) {
		return false
	}
	n.names = append(n.names, name)
	return true
}

// Unreadable takes what a method of a segment's reader returned. Damage is reported, and the
// caller leaves out what it hit: then the result is nil. Any other error is returned with the
// name of the segment.
func (n *Notes) Unreadable(seg *version.Segment, err error) error {
	if err == nil {
		return nil
	}
	damages := segment.Damages(err)
	if len(damages) == 0 {
		return fmt.Errorf("reading segment %s: %w", seg.Name(), err)
	}
	for _, d := range damages {
		n.Report("segment "+seg.Name(), d)
	}
	return nil
}

// Undecodable reports a chunk whose checksum is right and whose content is not.
func (n *Notes) Undecodable(seg *version.Segment, id metric.SeriesID, number int64, err error) {
	n.Report("segment "+seg.Name(), seg.Reader.Undecodable(segment.Hash(id), number, err))
}

// Names returns what was found damaged, newest last, and how often damage was met. The list is
// the caller's.
func (n *Notes) Names() (names []string, count uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.names), n.count
}

// ReadErrors returns how often a device could not read: a part of the count of Names.
func (n *Notes) ReadErrors() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.readErrors
}

// Package wal is a log of opaque records. Many goroutines append, one writes and fsyncs,
// and a restart replays.
//
// The LSN of a record is the position of its first byte in the whole history of the log.
// The log promises that every record that was fsynced is replayed unchanged after any
// crash (I1), that nothing is replayed that was not appended (I2), that the order is
// kept, and that damage is named and never returned (I5, I6). The caller gives records
// their meaning. DESIGN.md has the format and the reasons.
package wal

import (
	"errors"
	"fmt"
)

// LSN is the position of a record's first byte in the whole history of a log.
// It never decreases, not even over restarts. The first record of a new log
// has LSN 1; 0 means none.
type LSN uint64

// SyncMode says when the log fsyncs by itself.
type SyncMode uint8

// The modes. Sync works in all of them.
const (
	Interval SyncMode = iota // at most Options.Interval after an append
	Always                   // after every write; waiters start one at once
	Off                      // only when a file is full, in Sync and in Close
)

var modeNames = [...]string{Interval: "interval", Always: "always", Off: "off"}

// String returns the word ParseSyncMode takes.
func (m SyncMode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("SyncMode(%d)", uint8(m))
}

// ParseSyncMode reads always, interval or off.
func ParseSyncMode(s string) (SyncMode, error) {
	for m, name := range modeNames {
		if s == name {
			return SyncMode(m), nil
		}
	}
	return 0, fmt.Errorf("sync mode %q: want always, interval or off", s)
}

// Errors to branch on.
var (
	// ErrNotDurable is the answer of WaitDurable in mode Off.
	ErrNotDurable = errors.New("wal: not durable: sync mode is off")
	// ErrClosed is returned for a log that was closed.
	ErrClosed = errors.New("wal: log is closed")
)

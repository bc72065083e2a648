// Package wal is a log of opaque records. Many goroutines append, one writes and fsyncs,
// and a restart replays. The caller gives records their meaning.
//
// The log promises that
//
//   - every record that was fsynced is replayed unchanged after any crash (I1);
//   - nothing is replayed that was not appended (I2), and the order is kept;
//   - damage is named, and damaged records are never returned (I5, I6).
//
// DESIGN.md has the format of the files and the reasons for it.
package wal

import (
	"errors"
	"fmt"
)

// LSN is the position of a record's first byte in the whole history of a log, in bytes.
// It never decreases, not even over restarts. Between two records lie bytes of the log's
// own. 0 is no LSN.
type LSN uint64

// SyncMode says when the log fsyncs by itself.
type SyncMode uint8

// The modes. Log.Sync works in all of them.
const (
	Interval SyncMode = iota // about Options.Interval after an append, at most
	Always                   // after every write; WaitDurable starts one at once
	Off                      // only when a file is full, in Log.Sync and in Log.Close
)

var modeNames = [...]string{Interval: "interval", Always: "always", Off: "off"}

// String returns the word that ParseSyncMode takes for the mode.
func (m SyncMode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("SyncMode(%d)", uint8(m))
}

// ParseSyncMode returns the mode of the words always, interval and off. Any other text is
// an error.
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
	// ErrNotDurable is the answer of Log.WaitDurable in mode Off.
	ErrNotDurable = errors.New("wal: not durable: sync mode is off")
	// ErrClosed is returned by calls that need the writer after Log.Close.
	ErrClosed = errors.New("wal: log is closed")
)

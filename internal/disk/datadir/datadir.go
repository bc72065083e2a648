// Package datadir says what lies where in a data directory, of which format it is, and which
// process has it in use. A snapshot has the same layout.
package datadir

import (
	"fmt"
	"path/filepath"
	"slices"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/host/durable"
)

// The parts of a data directory, beside the two copies of the MANIFEST.
const (
	WAL       = "wal"
	Flush     = "flush"
	Catalogue = "catalogue"
	LostFound = "lost+found" // what was set aside
	Snapshots = "snapshots"  // each under its name
	Lock      = "LOCK"
	Version   = "VERSION"

	TempSuffix    = ".tmp" // of what does not count yet
	SegmentSuffix = ".seg"

	// Restore is where a restore builds the content of a directory: a start refuses one
	// that holds it.
	Restore = "restore" + TempSuffix
)

// SegmentDirs are the directories of segments, by kind.
var SegmentDirs = [...]string{manifest.Flush: Flush, manifest.Window: "window",
	manifest.Overlay: "overlay"}

// Segment is the path of a segment below the data directory.
func Segment(kind manifest.Kind, seq uint64) string {
	return fmt.Sprintf("%s/%016x%s", SegmentDirs[min(int(kind), len(SegmentDirs)-1)], seq,
		SegmentSuffix)
}

// IsStore reports whether the names in a directory tell that it holds a store.
func IsStore(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return name == Version || name == manifest.FirstName || name == manifest.SecondName ||
			name == WAL || name == Flush
	})
}

// Holder returns the process that has a data directory in use, or 0 when none is known.
func Holder(dir string) (pid int) { return durable.LockHolder(filepath.Join(dir, Lock)) }

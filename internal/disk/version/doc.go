// Package version holds what readers see of a data directory beside the head: immutable
// versions of the set of committed segments, with the tombstones and holes that hide parts of
// them. A reader pins the current version; a segment that no version has any more is retired.
// DESIGN.md tells why, and what a reader may rely on.
package version

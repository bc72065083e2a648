// Package manifest keeps the list of what is committed: segments, buckets, the
// replay positions of the log and the account, as two copies of a file of fsynced edits.
//
// A Commit is the commit point of a flush. After any crash the state is that
// of the last Commit that returned, or of the one under way, never a mix. The
// format, and what becomes of a damaged copy, are in DESIGN.md.
package manifest

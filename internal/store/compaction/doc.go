// Package compaction merges segments into windows and overlays, drops what has expired or was
// deleted, and lets series go of which nothing is left. A merge writes its outputs, commits them by
// one edit of the MANIFEST and publishes a version that has them. It leaves the replaced files to
// the readers that still have them. DESIGN.md tells the order of its steps and what they rely on.
package compaction

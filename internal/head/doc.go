// Package head holds the recent points of all series until a segment has them. A
// sender's flush is written as one contiguous run of cells into an open block, which
// lies in memory row by row. Full and idle blocks are encoded (sealed), and wait for the
// next flush beside the late points. Everything is readable in every state. DESIGN.md
// has the layout and the rules.
package head

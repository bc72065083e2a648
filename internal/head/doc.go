// Package head holds the recent points of all series: open blocks, row-major,
// where a sender's flush lands as one contiguous run of cells, and the sealed
// sealed blocks and late points that wait for the next flush. DESIGN.md has the layout
// and the rules.
package head

// Package head holds the recent points of all series until a segment has them. It knows
// nothing of files.
//
// A Group has up to 256 series. A run of points of a sender goes into an open block, which
// lies in memory row by row, as one run of cells. Full and idle blocks are closed, and a
// Sealer encodes them. Sealed blocks and late points wait for the next flush, which a Flusher
// turns into chunks. Points are readable in every state.
//
// Points are words (package point). A slot is a time divided by the resolution of the bucket.
// Times of the coarse clock are in nanoseconds. DESIGN.md has the layout and the rules.
package head

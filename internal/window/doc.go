// Package window decides which segments are merged and merges them: flushes
// into windows of two hours and of a day (at one second a slot), late points
// into overlays until they are worth a rewrite. Encoded chunks are copied byte
// for byte; only chunks that come in several pieces are decoded. DESIGN.md has
// the rules.
package window

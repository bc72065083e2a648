// Package window decides which segments are merged, and merges them. Flushes become windows
// of two hours and of a day (at one second a slot). Late points go into overlays until
// they are worth a rewrite of their window. Encoded chunks are copied byte for byte; only
// chunks that come in several pieces are decoded. DESIGN.md has the rules.
package window

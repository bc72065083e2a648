// Package replay takes a store to where its log ends. The first reading of the log gives it all
// that is no point, and counts; then the store is in use, and the points follow: those of groups
// that somebody wants to write to or to read at once, all others in the background. What damage
// took from the log is counted, and hidden where something older would show. DESIGN.md has the
// rules.
package replay

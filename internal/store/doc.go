// Package store is one node's storage: the way of a point from a session to a
// segment, and back to a reader. It puts together the head, the log, the
// segments, the catalogue, the MANIFEST and the account, and owns the order of
// their steps. DESIGN.md has the rules.
package store

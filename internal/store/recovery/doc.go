// Package recovery decides at a start what becomes of every file of segments: which
// counts, which is taken in, set aside or removed, and what the state is to go on
// with. Look reads what there is and changes nothing; Decide, which does no I/O, makes the
// plan. A start and a check of a directory call both and so say the same. DESIGN.md
// has the rules as a table.
package recovery

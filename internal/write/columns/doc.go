// Package columns assigns the series of the node to the columns of column groups: Locate finds the
// column of a series, Define gives it one, and Delete takes series away. It knows the names of all
// series, with a column or not, and keeps what the next flush has to tell the catalogue and the
// MANIFEST of all that. DESIGN.md says who gets whose column, and when.
package columns

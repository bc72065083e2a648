// Package columns says which series of the node has which column of which column group:
// Locate finds it, Define gives one to a series, and Delete takes series away. It knows the
// names of all series, with a column or not, and keeps what the next flush has to tell the
// catalogue and the MANIFEST of all that. DESIGN.md says who gets whose column, and when.
package columns

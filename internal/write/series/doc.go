// Package series finds the series of a node: a hash index from id to column, the
// column groups, and the names of series that have no column. The index and the
// names hold no pointer per series, so that the collector has nothing to scan.
package series

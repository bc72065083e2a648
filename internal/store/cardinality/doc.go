// Package cardinality says what has most series, and what most new ones: buckets and beginnings of
// metrics of all series, names and values of tags of those that have tags. DESIGN.md says what it
// costs.
package cardinality

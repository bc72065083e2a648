// Package reader reads a series: what the head holds of it, laid over the segments of a
// version. It gives words, pairs of words and timestamps, aggregates and digests, and names
// what damage took. DESIGN.md has the protocol that makes a read see each point once.
package reader

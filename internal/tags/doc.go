// Package tags is the dimension index: the series of each collection with their metrics and tags.
// It lies in memory; whoever keeps it durable writes down the changes.
package tags

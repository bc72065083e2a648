// Package tags is the dimension index: which series belong to which collection, as which
// metric, with which tags. It lies in memory; whoever keeps it durable writes down the changes.
package tags

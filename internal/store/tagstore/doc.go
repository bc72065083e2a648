// Package tagstore makes tags durable: the index of tags stands in memory, changes of it in the log
// and in files of two copies. DESIGN.md has the rules.
package tagstore

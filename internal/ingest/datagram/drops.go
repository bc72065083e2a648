package datagram

import (
	"bytes"
	"strconv"
)

// Columns of /proc/net/udp; the pairs tx:rx and tr:when are one column each.
const (
	columnInode = 9
	columnDrops = 12
)

// parseDrops finds the socket of the inode in the table and returns its drops.
func parseDrops(table []byte, inode string) (drops uint64, ok bool) {
	for line := range bytes.Lines(table) {
		columns := bytes.Fields(line)
		if len(columns) <= columnDrops || string(columns[columnInode]) != inode {
			continue
		}
		n, err := strconv.ParseUint(string(columns[columnDrops]), 10, 64)
		return n, err == nil
	}
	return 0, false
}

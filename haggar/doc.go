// Package haggar is the load generator behind the published figures. Its agents each send
// a number of metrics, with the names, the rhythm and the bytes of the original program
// of that name, or faster.
//
// Every value is a pure function of the seed, the series and the slot. So a test can
// compute any point that was sent again: see Data and Iter.
package haggar

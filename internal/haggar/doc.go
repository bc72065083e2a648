// Package haggar is the load generator behind the published figures: agents
// that each send a number of metrics, with the names, the rhythm and the bytes
// of the original program of that name, and faster ways to send the same.
//
// Every value is a pure function of the seed, the series and the slot. Whoever
// knows these recomputes any point that was sent: see Data and Iter.
package haggar

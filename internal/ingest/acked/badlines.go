package acked

import (
	"cmp"
	"fmt"
	"strings"
)

// BadLines is the error of a request of which some lines were bad; all others are stored. The zero
// value has none.
type BadLines struct {
	What  string // the word for a line, where the protocol has others
	Count int
	first []string // with their numbers
}

// maxNamed is how many bad lines an error names.
const maxNamed = 5

// Add takes a bad line.
func (e *BadLines) Add(number int, why error) {
	if e.Count++; e.Count <= maxNamed {
		e.first = append(e.first, fmt.Sprintf("%s %d: %v", cmp.Or(e.What, "line"), number, why))
	}
}

// Error names the first lines by number.
func (e *BadLines) Error() string {
	text := strings.Join(e.first, "; ")
	if more := e.Count - len(e.first); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Sprintf("%d bad %ss, all others are stored: %s", e.Count,
		cmp.Or(e.What, "line"), text)
}

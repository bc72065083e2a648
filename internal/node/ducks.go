package node

import (
	"fmt"

	"dalmatiner/internal/api/httpapi/ducksproxy"
)

// openDucks makes what hands requests of the page on to a ducks, if one is known. Nobody is asked
// yet: it may start later.
func (n *node) openDucks() (err error) {
	if n.cfg.Ducks.URL == nil {
		return nil
	}
	if n.ducks, err = ducksproxy.New(n.cfg.Ducks.URL, n.cfg.Ducks.CA); err != nil {
		return fmt.Errorf("ducks.ca: %w", err)
	}
	return nil
}

// ducksAddress is that of the ducks, empty for none.
func (n *node) ducksAddress() string {
	if n.ducks == nil {
		return ""
	}
	return n.cfg.Ducks.URL.String()
}

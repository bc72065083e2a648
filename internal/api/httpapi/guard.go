package httpapi

import (
	"net/http"

	"dalmatiner/internal/api/httpapi/origin"
)

// guard refuses requests for what is not public data that a foreign web page in an operator's browser may have made.
func (a *api) guard(r *http.Request) error {
	if err := origin.Check(r, a.Hosts); err != nil {
		return &statusError{http.StatusForbidden, reasonForbidden, err.Error()}
	}
	return nil
}

package httpapi

import (
	"net/http"
	"strings"
)

// form is a representation of an answer.
type form uint8

const (
	formNone form = iota
	formJSON
	formMsgpack
	formPage
)

const (
	typeJSON    = "application/json"
	typeMsgpack = "application/x-msgpack"
	typePage    = "text/html; charset=utf-8"
)

// formOf returns what an entry of Accept asks for.
func formOf(mediaType string) form {
	switch mediaType {
	case "application/json", "application/*", "*/*":
		return formJSON
	case "application/msgpack", "application/x-msgpack":
		return formMsgpack
	case "text/html", "application/xhtml+xml":
		return formPage
	}
	return formNone
}

// negotiate returns the first form that Accept names and the route offers.
// Like the original it ignores q-values; unlike it, it takes any type for JSON
// and goes on to the next entry when the route has no page. No Accept header
// is JSON.
func negotiate(r *http.Request, offered ...form) (form, error) {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return formJSON, nil
	}
	for entry := range strings.SplitSeq(accept, ",") {
		mediaType, _, _ := strings.Cut(entry, ";")
		asked := formOf(strings.ToLower(strings.TrimSpace(mediaType)))
		for _, f := range offered {
			if asked == f {
				return f, nil
			}
		}
	}
	return formNone, &statusError{http.StatusUnsupportedMediaType, reasonType,
		"none of the types in Accept can be served: ask for application/json"}
}

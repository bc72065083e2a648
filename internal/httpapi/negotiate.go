package httpapi

import (
	"net/http"
	"slices"
	"strings"
)

// form is a representation of an answer.
type form uint8

const (
	formNone form = iota
	formJSON
	formMsgpack
	formText
	formPage
)

const (
	typeJSON    = "application/json"
	typeMsgpack = "application/x-msgpack"
	typeText    = "text/plain; charset=utf-8"
	typePage    = "text/html; charset=utf-8"
)

// String returns what format= calls a form.
func (f form) String() string {
	return [...]string{"", "json", "msgpack", "text", "html"}[f]
}

// formOf returns what an entry of Accept asks for.
func formOf(mediaType string) form {
	switch mediaType {
	case "application/json", "application/*", "*/*":
		return formJSON
	case "application/msgpack", "application/x-msgpack":
		return formMsgpack
	case "text/plain":
		return formText
	case "text/html", "application/xhtml+xml":
		return formPage
	}
	return formNone
}

// negotiate returns the form of an answer: the one that format= names, else
// the first form that Accept names and the route offers. Like the original it
// ignores q-values; unlike it, it takes any type for JSON and goes on to the
// next entry when the route has no page. No Accept header is JSON.
func negotiate(r *http.Request, offered ...form) (form, error) {
	if format := param(r, "format"); format != "" {
		var known []string
		for _, f := range offered {
			if f.String() == format {
				return f, nil
			}
			known = append(known, f.String())
		}
		return formNone, badRequest("format=%s: known here are %s", format, strings.Join(known, ", "))
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return formJSON, nil
	}
	for entry := range strings.SplitSeq(accept, ",") {
		mediaType, _, _ := strings.Cut(entry, ";")
		asked := formOf(strings.ToLower(strings.TrimSpace(mediaType)))
		if asked != formNone && slices.Contains(offered, asked) {
			return asked, nil
		}
	}
	return formNone, &statusError{http.StatusUnsupportedMediaType, reasonType,
		"none of the types in Accept can be served: ask for application/json"}
}

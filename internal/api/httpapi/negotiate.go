package httpapi

import (
	"iter"
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
	if strings.TrimSpace(strings.Join(r.Header.Values("Accept"), ",")) == "" {
		return formJSON, nil
	}
	for mediaType := range entries(r, "Accept") {
		asked := formOf(mediaType)
		if asked != formNone && slices.Contains(offered, asked) {
			return asked, nil
		}
	}
	return formNone, &statusError{http.StatusUnsupportedMediaType, reasonType,
		"none of the types in Accept can be served: ask for application/json"}
}

// entries yields the entries of a list header, such as Accept, in lower case,
// and apart from each the parameters behind it.
func entries(r *http.Request, header string) iter.Seq2[string, string] {
	return func(yield func(name, parameters string) bool) {
		for entry := range strings.SplitSeq(strings.ToLower(strings.Join(r.Header.Values(header), ",")),
			",") {
			name, parameters, _ := strings.Cut(entry, ";")
			if !yield(strings.TrimSpace(name), parameters) {
				return
			}
		}
	}
}

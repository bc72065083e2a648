package taglist

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// Shows reports whether a route shows tags, by its pattern.
func Shows(pattern string) bool {
	return strings.HasPrefix(pattern, "/collections") || strings.HasPrefix(pattern, "/tags/") ||
		pattern == "/admin/tags/export"
}

// Behind returns what serves once ready returns no error.
func Behind(ready func() error, serve func(http.ResponseWriter, *http.Request) error) func(
	http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := ready(); err != nil {
			return err
		}
		return serve(w, r)
	}
}

// Decode64 decodes base64, which may be the form for URLs, with or without padding.
func Decode64(text string) ([]byte, error) {
	return base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_",
		"/").Replace(strings.TrimRight(text, "=")))
}

// Package page holds the page for browsers: the files that `make web` builds
// from web/, and what is shown when nobody built them.
package page

import (
	"bytes"
	"embed"
	"html"
	"io/fs"
	"path"
)

//go:embed all:built
var built embed.FS

//go:embed missing.html
var missing []byte

// Security is the Content-Security-Policy of the page: nothing from another
// host, nothing inline. Only a few marks of the editor are images in data URLs.
const Security = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Index returns the document, or without a built page one that says how to
// build it and which commands reach the node at host, as the browser named it.
func Index(host string) []byte { return indexOf(built, host) }

func indexOf(files fs.FS, host string) []byte {
	index, err := fs.ReadFile(files, "built/app/index.html")
	if err != nil {
		return bytes.ReplaceAll(missing, []byte("{{host}}"), []byte(html.EscapeString(host)))
	}
	return index
}

// types are the media types of what the build writes.
var types = map[string]string{
	".js":  "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}

// Asset is a file that the document names. The name changes with its content.
type Asset struct {
	Body      []byte
	Gzipped   []byte // the same, as the build packed it; nil where that gains nothing
	MediaType string
}

// Find returns the asset of a name.
func Find(name string) (a Asset, ok bool) { return findIn(built, name) }

func findIn(files fs.FS, name string) (a Asset, ok bool) {
	if a.MediaType, ok = types[path.Ext(name)]; !ok {
		return Asset{}, false
	}
	// ReadFile refuses names that leave the directory.
	body, err := fs.ReadFile(files, "built/app/assets/"+name)
	if err != nil {
		return Asset{}, false
	}
	a.Body = body
	a.Gzipped, _ = fs.ReadFile(files, "built/app/assets/"+name+".gz") // not every file has one
	return a, true
}

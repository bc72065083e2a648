// Package page holds the page for browsers: the files that `make web` builds
// from web/, and what is shown when nobody built them.
package page

import (
	"embed"
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
// build it.
func Index() []byte { return indexOf(built) }

func indexOf(files fs.FS) []byte {
	index, err := fs.ReadFile(files, "built/app/index.html")
	if err != nil {
		return missing
	}
	return index
}

// types are the media types of what the build writes.
var types = map[string]string{
	".js":  "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}

// Asset returns a file that the document names, and its media type. The name
// of an asset changes with its content.
func Asset(name string) (body []byte, mediaType string, ok bool) { return assetOf(built, name) }

func assetOf(files fs.FS, name string) (body []byte, mediaType string, ok bool) {
	mediaType, ok = types[path.Ext(name)]
	if !ok {
		return nil, "", false
	}
	// ReadFile refuses names that leave the directory.
	body, err := fs.ReadFile(files, "built/app/assets/"+name)
	return body, mediaType, err == nil
}

package page

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestWithoutABuildThePageSaysHow(t *testing.T) {
	if got := string(indexOf(fstest.MapFS{})); !strings.Contains(got, "make web") {
		t.Errorf("the page does not say how to build it:\n%s", got)
	}
	if _, _, ok := assetOf(fstest.MapFS{}, "x.js"); ok {
		t.Error("there is an asset without a build")
	}
}

func TestBuiltPage(t *testing.T) {
	files := fstest.MapFS{
		"built/app/index.html":    {Data: []byte("<p>page")},
		"built/app/secret.js":     {Data: []byte("no")},
		"built/app/assets/a.js":   {Data: []byte("1")},
		"built/app/assets/a.css":  {Data: []byte("2")},
		"built/app/assets/a.html": {Data: []byte("3")},
	}
	if got := string(indexOf(files)); got != "<p>page" {
		t.Errorf("the document is %q", got)
	}
	for _, c := range []struct{ name, body, mediaType string }{
		{"a.js", "1", "text/javascript; charset=utf-8"},
		{"a.css", "2", "text/css; charset=utf-8"},
		{"a.html", "", ""}, {"b.js", "", ""}, {"../secret.js", "", ""}, {"", "", ""}, {"/a.js", "", ""},
	} {
		body, mediaType, ok := assetOf(files, c.name)
		if string(body) != c.body || ok != (c.body != "") || ok && mediaType != c.mediaType {
			t.Errorf("%q: %q, %q, %v; want %q, %q", c.name, body, mediaType, ok, c.body, c.mediaType)
		}
	}
}

// The policy forbids what is inline, so neither form of the document may have it.
func TestNothingIsInline(t *testing.T) {
	for _, index := range [][]byte{missing, Index()} {
		for _, inline := range []string{"<style", "style=", "<script>", "onclick=", "javascript:", "http-equiv"} {
			if strings.Contains(string(index), inline) {
				t.Errorf("the document has %s, which its own policy forbids", inline)
			}
		}
	}
	if strings.Contains(Security, "unsafe") {
		t.Errorf("policy %s", Security)
	}
}

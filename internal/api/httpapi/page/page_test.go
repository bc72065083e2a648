package page

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestWithoutABuildThePageSaysHow(t *testing.T) {
	got := string(indexOf(fstest.MapFS{}, "node:81"))
	for _, want := range []string{"make web", "ddb query --addr node:81 ", " http://node:81/<"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page does not say %q:\n%s", want, got)
		}
	}
	if got := string(indexOf(fstest.MapFS{}, "<script>")); strings.Contains(got, "<script>") {
		t.Errorf("the name of the host is not escaped:\n%s", got)
	}
	if _, ok := findIn(fstest.MapFS{}, "x.js"); ok {
		t.Error("there is an asset without a build")
	}
}

func TestBuiltPage(t *testing.T) {
	files := fstest.MapFS{
		"built/app/index.html":     {Data: []byte("<p>page")},
		"built/app/secret.js":      {Data: []byte("no")},
		"built/app/assets/a.js":    {Data: []byte("1")},
		"built/app/assets/a.js.gz": {Data: []byte("packed")},
		"built/app/assets/a.css":   {Data: []byte("2")},
		"built/app/assets/a.html":  {Data: []byte("3")},
	}
	if got := string(indexOf(files, "node:81")); got != "<p>page" {
		t.Errorf("the document is %q", got)
	}
	for _, c := range []struct{ name, body, packed, mediaType string }{
		{"a.js", "1", "packed", "text/javascript; charset=utf-8"},
		{"a.css", "2", "", "text/css; charset=utf-8"},
		{"a.html", "", "", ""}, {"a.js.gz", "", "", ""}, {"b.js", "", "", ""},
		{"../secret.js", "", "", ""}, {"", "", "", ""}, {"/a.js", "", "", ""},
	} {
		a, ok := findIn(files, c.name)
		if string(a.Body) != c.body || string(a.Gzipped) != c.packed || a.MediaType != c.mediaType ||
			ok != (c.body != "") {
			t.Errorf("%q: %+v, %v; want %+v", c.name, a, ok, c)
		}
	}
}

// The policy forbids what is inline, so neither form of the document may have it.
func TestNothingIsInline(t *testing.T) {
	for _, index := range [][]byte{missing, Index("node:81")} {
		for _, inline := range []string{"<style", "style=", "<script>", "onclick=", "javascript:",
			"http-equiv"} {
			if strings.Contains(string(index), inline) {
				t.Errorf("the document has %s, which its own policy forbids", inline)
			}
		}
	}
	if strings.Contains(Security, "unsafe") {
		t.Errorf("policy %s", Security)
	}
}

package api

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the description")

// TestDescription: the document says what the API is; a change of it shows. All that it refers to
// is in it.
func TestDescription(t *testing.T) {
	b, err := json.MarshalIndent(describe(routes()), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	const file = "testdata/openapi.json"
	if *update {
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != string(b) {
		t.Errorf("%s is not the description (%v): run with -update when the change is meant", file, err)
	}
	for _, ref := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllSubmatch(b, -1) {
		if !strings.Contains(string(b), `"`+string(ref[1])+`": {`) {
			t.Errorf("%s is not described", ref[1])
		}
	}
}

// Every route has a text and a role, and its changes are in the trail.
func TestRoutes(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range routes() {
		method, path, _ := strings.Cut(r.pattern, " ")
		if seen[r.pattern] || !strings.HasPrefix(path, "/api/v1/") || r.text == "" ||
			(r.role == "") != (path == "/api/v1/login") || method != "GET" && r.what == "" {
			t.Errorf("%+v", r)
		}
		seen[r.pattern] = true
	}
}

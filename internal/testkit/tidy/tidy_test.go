// Package tidy holds the rules of this repository that a machine can check.
package tidy

import (
	"bufio"
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	root         = "../../.."
	maxFuncLines = 70
)

// bannedPackages are names that say nothing about what is inside.
var bannedPackages = map[string]bool{
	"util": true, "utils": true, "common": true, "helper": true, "helpers": true, "types": true, "models": true, "misc": true,
}

func goFiles(t *testing.T, visit func(path string, src []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Contains(src, []byte("// Code generated ")) {
			visit(path, src)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// floors returns the rank of every folder of internal/, the lowest first, as the headings of
// ARCHITECTURE.md name them.
func floors(t *testing.T) map[string]int {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Packages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rank := make(map[string]int)
	for _, m := range regexp.MustCompile(`(?m)^### ([a-z]+): `).FindAllStringSubmatch(section, -1) {
		if _, twice := rank[m[1]]; twice {
			t.Errorf("ARCHITECTURE.md names the floor %s twice", m[1])
		}
		rank[m[1]] = len(rank)
	}
	if len(rank) < 10 {
		t.Fatalf("found the floors %v only: the headings of ARCHITECTURE.md are not where they were", rank)
	}
	return rank
}

// TestArrowsPointDown keeps every folder of internal/ from importing what does not stand above it
// in ARCHITECTURE.md, and from being left out there.
func TestArrowsPointDown(t *testing.T) {
	rank := floors(t)
	for name := range rank {
		if stat, err := os.Stat(filepath.Join(root, "internal", name)); err != nil || !stat.IsDir() {
			t.Errorf("ARCHITECTURE.md names the floor %s, which is not there: %v", name, err)
		}
	}
	unknown := make(map[string]bool)
	goFiles(t, func(path string, src []byte) {
		rel, inside := strings.CutPrefix(relative(t, path), "internal/")
		if !inside {
			return
		}
		from, _, _ := strings.Cut(rel, "/")
		own, ok := rank[from]
		if !ok && !unknown[from] {
			unknown[from] = true
			t.Errorf("internal/%s is no heading of ARCHITECTURE.md: put it where it belongs", from)
		}
		if !ok || strings.HasSuffix(path, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		for _, imp := range f.Imports {
			to, found := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), "dalmatiner/internal/")
			to, _, _ = strings.Cut(to, "/")
			if found && rank[to] > own {
				t.Errorf("%s imports of internal/%s, which stands below internal/%s in ARCHITECTURE.md", path, to, from)
			}
		}
	})
}

// TestPackagesAreNamed keeps every package in the paragraph of its floor in ARCHITECTURE.md.
func TestPackagesAreNamed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	goFiles(t, func(path string, src []byte) {
		rel, inside := strings.CutPrefix(filepath.ToSlash(filepath.Dir(relative(t, path))), "internal/")
		floor, name, below := strings.Cut(rel, "/")
		if !inside || !below || strings.Contains(name, "/") || seen[rel] {
			return
		}
		seen[rel] = true
		_, text, _ := strings.Cut(string(page), "\n### "+floor+": ")
		text, _, _ = strings.Cut(text, "\n##")
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("ARCHITECTURE.md does not name internal/%s among the packages of %s", rel, floor)
		}
	})
}

// unfinished marks and waits on time are found by their text.
func TestBannedText(t *testing.T) {
	unfinished := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	sleep := []byte("time." + "Sleep(")
	goFiles(t, func(path string, src []byte) {
		sc := bufio.NewScanner(bytes.NewReader(src))
		for line := 1; sc.Scan(); line++ {
			if unfinished.Match(sc.Bytes()) {
				t.Errorf("%s:%d: unfinished by its own word: %s", path, line, strings.TrimSpace(sc.Text()))
			}
			if strings.HasSuffix(path, "_test.go") && bytes.Contains(sc.Bytes(), sleep) {
				t.Errorf("%s:%d: a test sleeps: wait on a condition with a deadline", path, line)
			}
		}
	})
}

// TestDucksUsesTheClientOnly keeps the module of ducks out of the store's inside.
func TestDucksUsesTheClientOnly(t *testing.T) {
	files := 0
	goFiles(t, func(path string, src []byte) {
		if !strings.HasPrefix(relative(t, path), "ducks/") {
			return
		}
		files++
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		for _, imp := range f.Imports {
			if strings.HasPrefix(imp.Path.Value, `"dalmatiner/internal/`) {
				t.Errorf("%s imports %s: ducks uses the store through client", path, imp.Path.Value)
			}
		}
	})
	if files < 20 {
		t.Fatalf("found %d files of ducks: the rule looked in the wrong place", files)
	}
}

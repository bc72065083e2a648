// Package tidy holds the rules of this repository that a machine can check.
package tidy

import (
	"bufio"
	"bytes"
	"go/ast"
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
	maxFileLines = 500
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

func TestSizes(t *testing.T) {
	files := 0
	goFiles(t, func(path string, src []byte) {
		files++
		if n := bytes.Count(src, []byte("\n")); n > maxFileLines {
			t.Errorf("%s has %d lines, the limit is %d: split it by what its parts do", path, n, maxFileLines)
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, src, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1
			if n > maxFuncLines {
				t.Errorf("%s: %s has %d lines, the limit is %d", set.Position(fn.Pos()), fn.Name.Name, n, maxFuncLines)
			}
		}
		if bannedPackages[f.Name.Name] {
			t.Errorf("%s: package %s: name it after what it holds", path, f.Name.Name)
		}
	})
	if files < 20 {
		t.Fatalf("found %d Go files: the rule looked in the wrong place", files)
	}
}

// layers returns the packages of internal/ from the lowest to the highest, as the table of
// ARCHITECTURE.md names them.
func layers(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| package | what it holds |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var names []string
	for row := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for name := range strings.SplitSeq(first, ",") {
			names = append(names, strings.Trim(name, " `"))
		}
	}
	if len(names) < 20 {
		t.Fatalf("found %q only: the table of packages in ARCHITECTURE.md is not where it was", names)
	}
	return names
}

// TestArrowsPointDown keeps every package from importing what does not stand above it in the
// table of ARCHITECTURE.md.
func TestArrowsPointDown(t *testing.T) {
	rank := make(map[string]int)
	for i, name := range layers(t) {
		if _, twice := rank[name]; twice {
			t.Errorf("ARCHITECTURE.md names package %s twice", name)
		}
		if stat, err := os.Stat(filepath.Join(root, "internal", name)); err != nil || !stat.IsDir() {
			t.Errorf("ARCHITECTURE.md names package %s, which is not there: %v", name, err)
		}
		rank[name] = i
	}
	unknown := make(map[string]bool)
	goFiles(t, func(path string, src []byte) {
		rel, err := filepath.Rel(filepath.Join(root, "internal"), filepath.Dir(path))
		if err != nil || strings.HasPrefix(rel, "..") {
			return
		}
		from := filepath.ToSlash(rel)
		own, ok := rank[from]
		if !ok && !unknown[from] {
			unknown[from] = true
			t.Errorf("internal/%s is not in the table of ARCHITECTURE.md: put it where it belongs", from)
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
			if found && rank[to] >= own {
				t.Errorf("%s imports internal/%s, which does not stand above internal/%s in the table of ARCHITECTURE.md", path, to, from)
			}
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

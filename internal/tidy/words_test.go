package tidy

import (
	"bytes"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const maxColumns = 100

// retired are identifiers that have given way to the field's words.
var retired = regexp.MustCompile(`^(stamps?|badStamp|BadStamp|tiles?|[a-z]+Tiles?|(Add|Append|Write|Verify|Copy|Parse)Levels?|` +
	`LevelRow|LevelDigests?|[a-zA-Z]*Composites?[A-Za-z]*|FloorOf|Floors|floors|lowestFloor|doors?|openDoors|inlet|newInlet|oneway|` +
	`graves?|doomed|bury|nowhere|Park(ed|ing|ings)?|parked|Parkings|hurry|Hurry|hasty|seldom|exhume|tally|relost|backlogs?|nameless|bindings|bring[A-Z][a-z]+|notCreated|parkedNames?)$`)

// unclean are the parts of the tree that still use retired identifiers, and how
// often at most. A number only falls.
var unclean = map[string]int{"internal": 123, "test": 7}

// wide are the pages with prose beyond maxColumns, and the lines at most: mostly
// code that cannot be cut. A number only falls.
var wide = map[string]int{
	"CHANGELOG.md":                       60,
	"docs/operations.md":                 1,
	"docs/protocol.md":                   2,
	"docs/reliability.md":                33,
	"internal/ingest/graphite/DESIGN.md": 1,
	"internal/store/DESIGN.md":           19,
}

// TestRetiredIdentifiers keeps words out of the code that docs/glossary.md has not.
func TestRetiredIdentifiers(t *testing.T) {
	found := make(map[string]int)
	goFiles(t, func(path string, src []byte) {
		rel, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		var s scanner.Scanner
		set := token.NewFileSet()
		s.Init(set.AddFile(path, -1, len(src)), src, nil, 0)
		part := strings.Split(filepath.ToSlash(rel), "/")[0]
		for {
			pos, tok, lit := s.Scan()
			if tok == token.EOF {
				return
			}
			if tok == token.IDENT && retired.MatchString(lit) {
				if found[part]++; found[part] > unclean[part] {
					t.Errorf("%s: %s is retired, number %d in %s: use the word of docs/glossary.md", set.Position(pos), lit, found[part], part)
				}
			}
		}
	})
}

// TestProseIsWrapped keeps the prose of pages within maxColumns. Tables, code and
// lines with a link may be longer.
func TestProseIsWrapped(t *testing.T) {
	pages := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == "bin" || d.Name() == "results") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".md") {
			return nil
		}
		pages++
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		n := longLines(src)
		if bound := wide[filepath.ToSlash(rel)]; n > bound {
			t.Errorf("%s has %d lines of prose beyond %d columns, its bound is %d: wrap them", rel, n, maxColumns, bound)
		}
		return nil
	})
	if err != nil || pages < 20 {
		t.Fatalf("found %d pages: %v", pages, err)
	}
}

func longLines(page []byte) (n int) {
	code := false
	for line := range bytes.Lines(page) {
		line = bytes.TrimRight(line, "\n")
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("```")) {
			code = !code
		}
		plain := !code && !bytes.HasPrefix(line, []byte("|")) && !bytes.HasPrefix(line, []byte("    ")) &&
			!bytes.Contains(line, []byte("](")) && !bytes.Contains(line, []byte("://"))
		if plain && utf8.RuneCount(line) > maxColumns {
			n++
		}
	}
	return n
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("word ", 25)
	for page, want := range map[string]int{
		long: 1, long + "\n" + long: 2, "| " + long: 0, "```\n" + long + "\n```\n" + long: 1, "    " + long: 0,
		long + "[x](y.md)": 0, strings.Repeat("ä", maxColumns): 0, strings.Repeat("ä", maxColumns+1): 1,
	} {
		if got := longLines([]byte(page)); got != want {
			t.Errorf("%d long lines, want %d: %q", got, want, page)
		}
	}
}

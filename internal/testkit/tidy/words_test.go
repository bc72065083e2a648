package tidy

import (
	"bytes"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const maxColumns = 100

// retired are identifiers that have given way to the field's words.
var retired = regexp.MustCompile(
	`^(stamps?|badStamp|BadStamp|tiles?|[a-z]+Tiles?|(Add|Append|Write|Verify|Copy|Parse)Levels?|` +
		`LevelRow|LevelDigests?|[a-zA-Z]*Composites?[A-Za-z]*|FloorOf|Floors|floors|lowestFloor|doors?|openDoors|inlet|newInlet|oneway|` +
		`graves?|doomed|bury|nowhere|Park(ed|ing|ings)?|parked|Parkings|hurry|Hurry|hasty|seldom|exhume|tally|relost|backlogs?|nameless|bindings|bring[A-Z][a-z]+|notCreated|parkedNames?)$`)

// wide are the pages with prose beyond maxColumns, and the lines at most: mostly
// code that cannot be cut. A number only falls.
var wide = map[string]int{
	"docs/protocol.md":                   1,
	"internal/ingest/graphite/DESIGN.md": 1,
}

// retiredPhrases are idioms of pages and comments that only their writer understood.
var retiredPhrases = regexp.MustCompile(
	`(?i)\b(thin (groups?|blocks?)|who(ever)? brings|hence with a past|tiles?|` +
		`((senders|clients) (that|who)|whose (senders|clients)) read no (reply|replies)|(the|its|which|whichever) doors?|` +
		`at a glance|exhumed?|parked|doomed|(below|of) the floor|the floor of|left its order|as many as were taken|` +
		`hast(y|ily)|in a hurry|comes late by it|as one does who|oneway|inlets?|(protocol|system|DQL) page)\b`)

// TestRetiredIdentifiers keeps words out of the code that docs/glossary.md has not.
func TestRetiredIdentifiers(t *testing.T) {
	goFiles(t, func(path string, src []byte) {
		var s scanner.Scanner
		set := token.NewFileSet()
		s.Init(set.AddFile(path, -1, len(src)), src, nil, 0)
		for {
			pos, tok, lit := s.Scan()
			if tok == token.EOF {
				return
			}
			if tok == token.IDENT && retired.MatchString(lit) {
				t.Errorf("%s: %s is retired: use the word of docs/glossary.md", set.Position(pos), lit)
			}
		}
	})
}

// TestRetiredPhrases keeps idioms out of pages and comments, also where a line ends
// within one.
func TestRetiredPhrases(t *testing.T) {
	look := func(path, text string) {
		for _, phrase := range phrasesOf(text) {
			t.Errorf("%s: %q is retired: say it in plain words", relative(t, path), phrase)
		}
	}
	pages(t, func(path string, src []byte) { look(path, string(src)) })
	goFiles(t, func(path string, src []byte) { look(path, comments(path, src)) })
}

// maxRelatives is how many relative pronouns a sentence of a comment may have. A demonstrative
// "that" counts as well: telling them apart is not worth a parser, and one more is rarely needed.
const maxRelatives = 2

var (
	relatives   = regexp.MustCompile(`(?i)\b(which|that|who|whose|whom)\b`)
	sentenceEnd = regexp.MustCompile(`[.!?]\s`)
)

// TestSentencesAreSimple keeps comments from hiding their subject behind relative clauses.
func TestSentencesAreSimple(t *testing.T) {
	goFiles(t, func(path string, src []byte) {
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ParseComments)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		for _, group := range f.Comments {
			for _, sentence := range nestedSentences(group.Text()) {
				t.Errorf("%s: more than %d of which, that, who, whose and whom: make it two sentences: %s",
					relative(t, path), maxRelatives, sentence)
			}
		}
	})
}

// nestedSentences returns the sentences of a comment with too many relative pronouns. Indented
// lines are tables.
func nestedSentences(comment string) (nested []string) {
	var text string
	for line := range strings.Lines(comment) {
		if table := line[0] == '\t' || line[0] == '\n'; table {
			line = ". "
		}
		text += line
	}
	for _, sentence := range sentenceEnd.Split(strings.Join(strings.Fields(text), " ")+" ", -1) {
		if len(relatives.FindAllString(sentence, maxRelatives+1)) > maxRelatives {
			nested = append(nested, sentence)
		}
	}
	return nested
}

func TestNestedSentences(t *testing.T) {
	simple := "A node that joins asks one that has it."
	nested := "A node that joins asks one that has what\n// who comes wants that"
	if got := nestedSentences(simple + " " + simple + " " + nested + ". " + simple); len(got) != 1 {
		t.Errorf("found %q, want one sentence", got)
	}
}

// phrasesOf returns the retired phrases of a text.
func phrasesOf(text string) []string {
	return retiredPhrases.FindAllString(strings.Join(strings.Fields(text), " "), -1)
}

// comments returns the text of a file's comments.
func comments(path string, src []byte) string {
	var b strings.Builder
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile(path, -1, len(src)), src, nil, scanner.ScanComments)
	for {
		_, tok, lit := s.Scan()
		switch tok {
		case token.EOF:
			return b.String()
		case token.COMMENT:
			b.WriteString(strings.TrimPrefix(lit, "//") + " ")
		case token.SEMICOLON:
		default:
			b.WriteString(". ") // phrases do not cross code
		}
	}
}

func TestPhrases(t *testing.T) {
	src := "package p\n\n// It waits for whoever\n// brings it.\nvar tile = 1 // a tile\n\nvar s = " +
		"\"the doors\"\n"
	if got, want := phrasesOf(comments("p.go", []byte(src))),
		[]string{"whoever brings", "tile"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if got := phrasesOf("the floor below the tiled doorstep brings who parks"); got != nil {
		t.Errorf("found %q in ordinary words", got)
	}
}

// TestProseIsWrapped keeps the prose of pages within maxColumns. Tables, code and
// lines with a link may be longer.
func TestProseIsWrapped(t *testing.T) {
	pages(t, func(path string, src []byte) {
		rel := relative(t, path)
		n := longLines(src)
		if bound := wide[rel]; n > bound {
			t.Errorf("%s has %d lines of prose beyond %d columns, its bound is %d: wrap them", rel, n,
				maxColumns, bound)
		}
	})
}

// unwritten are directories whose pages nobody has written: programs did, or other people.
var unwritten = []string{".git", "node_modules", "bin", "results", "trial"}

// pages visits all pages of the tree that somebody has written.
func pages(t *testing.T, visit func(path string, src []byte)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains(unwritten, d.Name()) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".md") {
			return nil
		}
		n++
		src, err := os.ReadFile(path)
		if err == nil {
			visit(path, src)
		}
		return err
	})
	if err != nil || n < 20 {
		t.Fatalf("found %d pages: %v", n, err)
	}
}

// relative returns a path as it is named in the bounds.
func relative(t *testing.T, path string) string {
	t.Helper()
	rel, err := filepath.Rel(root, path)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(rel)
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
		long: 1, long + "\n" + long: 2, "| " + long: 0, "```\n" + long + "\n```\n" + long: 1, "    " +
			long: 0,
		long + "[x](y.md)": 0, strings.Repeat("ä", maxColumns): 0, strings.Repeat("ä", maxColumns+1): 1,
	} {
		if got := longLines([]byte(page)); got != want {
			t.Errorf("%d long lines, want %d: %q", got, want, page)
		}
	}
}

// uncut is from how many characters on a string may stand on a line of its own length.
const uncut = 60

// TestGoIsWithin100Columns keeps lines of Go within maxColumns; a tab is one of them. What cannot
// be cut may be longer: raw strings, long literals, and tables in comments, which are indented.
func TestGoIsWithin100Columns(t *testing.T) {
	goFiles(t, func(path string, src []byte) {
		lines := strings.Split(string(src), "\n")
		if !slices.ContainsFunc(lines, tooLong) {
			return
		}
		excused := uncutLines(path, src)
		for i, line := range lines {
			if tooLong(line) && !excused[i+1] && !strings.HasPrefix(strings.TrimSpace(line), "//\t") {
				t.Errorf("%s:%d has %d characters, the limit is %d: break it behind a comma or an operator",
					relative(t, path), i+1, utf8.RuneCountInString(line), maxColumns)
			}
		}
	})
}

func tooLong(line string) bool { return utf8.RuneCountInString(line) > maxColumns }

// uncutLines returns the lines, from 1, that a raw string or a long literal lies on.
func uncutLines(path string, src []byte) map[int]bool {
	lines := make(map[int]bool)
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile(path, -1, len(src)), src, nil, 0)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.STRING && (lit[0] == '`' || len(lit) >= uncut) {
			first := set.Position(pos).Line
			for n := range strings.Count(lit, "\n") + 1 {
				lines[first+n] = true
			}
		}
	}
}

func TestUncutLines(t *testing.T) {
	long := strings.Repeat("z", uncut)
	src := "package p\n\nvar a, b = `x\ny`, \"" + long + "\"\nvar c = \"short\"\n"
	if got := uncutLines("p.go", []byte(src)); len(got) != 2 || !got[3] || !got[4] {
		t.Errorf("lines %v, want 3 and 4", got)
	}
}

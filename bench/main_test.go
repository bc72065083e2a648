package main

import (
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
)

// layers are the packages from the lowest to the highest; those of a line do
// not import each other. A package imports only what stands below it.
var layers = [][]string{
	{"measure", "corpus"},
	{"report", "recorder"},
	{"server"},
	{"load"},
	{"rows", "guard", "steps", "profiling", "compare", "room"},
	{"."},
}

func TestImportsPointDown(t *testing.T) {
	rank := map[string]int{}
	for i, packages := range layers {
		for _, p := range packages {
			rank[p] = i
		}
	}
	files, err := filepath.Glob("*/*.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files were found, %v", len(files), err)
	}
	for _, file := range files {
		from := filepath.Dir(file)
		own, ok := rank[from]
		if !ok {
			t.Errorf("%s is in no layer: put it where it belongs", from)
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			if to, ok := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), "dalmatiner/bench/"); ok &&
				rank[to] >= own {
				t.Errorf("%s imports %s, which does not stand below %s", file, to, from)
			}
		}
	}
}

func TestSubcommands(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"pears",
			`there is no subcommand "pears"; there are ["compare" "corpus" "guard" "profile" "rows" "steps"]`},
		{"rows ingest", `bench rows takes no arguments, there are ["ingest"]`},
		{"-only nothing.of.that.name",
			`-only "nothing.of.that.name" matches none of the rows ["ingest-10k"`},
		{"compare -only nothing.of.that.name",
			`-only "nothing.of.that.name" matches none of ["dalmatiner"`},
		{"steps -only x", "flag provided but not defined: -only"},
	} {
		err := run(strings.Fields(c.args), io.Discard, io.Discard)
		if err == nil || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", c.args, err, c.says)
		}
	}
}

// Only whole runs go where results are kept.
func TestResultsGoWhereTheyBelong(t *testing.T) {
	h := report.Head{Machine: measure.Machine{Commit: "1234567"}}
	for _, c := range []struct {
		command
		dir string
	}{
		{command{}, resultsDir},
		{command{quick: true}, trialDir},
		{command{only: "x"}, trialDir},
		{command{only: "x", results: "mine"}, "mine"},
	} {
		t.Chdir(t.TempDir())
		c.out, c.Log = io.Discard, io.Discard
		if err := c.save(&h, "", nil, nil); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(c.dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range files {
			names = append(names, f.Name())
		}
		if !slices.Contains(names, "0001-01-01-1234567.txt") ||
			!slices.Contains(names, "0001-01-01-1234567.md") {
			t.Errorf("%s has %q", c.dir, names)
		}
	}
}

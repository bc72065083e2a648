package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// The triggers: above them a thing deserves a second look. What is larger for a good reason says
// so in reasons; it is not cut up to come below a number.
const (
	fileLines    = 500
	packageLines = 4000 // without tests
	structFields = 25
	methods      = 40 // of a receiver, and of types that are nothing but a pointer to it
	functions    = 8  // among the fields of a struct: an interface says it better
)

// size is how large something may be, and why.
type size struct {
	most int
	why  string
}

// reasons are for what is above its trigger. Whoever makes one of these smaller lowers its number
// in the same commit; the test asks for it once it is a fifth too large.
var reasons = map[string]size{
	"lines of internal/query/exec":  {4150, "every kind of node beside the engine that runs them"},
	"lines of internal/api/httpapi": {4550, "every form of an answer beside every route"},
	"lines of internal/api/admin": {
		4100, "every command of the operator, with its client and message"},
	"lines of internal/tags": {4100, "one index: its changes, its lookups, its lists"},

	"fields of internal/api/admin Status":    {27, "one for each key of a flat JSON object"},
	"fields of internal/host/config Config":  {48, "one for each key of ddb.conf"},
	"fields of internal/api/httpapi Options": {26, "one for each part of a node that has routes"},
	"fields of haggar Config": {
		26, "one for each flag, and what stands for clock and network"},
	"fields of internal/disk/manifest Edit": {29, "one for each kind of change on disk"},

	"methods of internal/api/httpapi api": {59, "one for each route"},
	"methods of internal/cluster Cluster": {
		59, "what a node of a cluster does for those above it"},
	"methods of internal/cluster/replication Core": {
		58, "one state machine: one for each message and timer"},
	"methods of internal/cluster/sim Cluster": {
		51, "one for each thing that can happen to a cluster"},
	"methods of internal/cluster/eventing Eventing": {
		48, "the store of events of a cluster, and its answers to others"},
	"methods of internal/cluster/remote Remote": {
		42, "one for each question that queries ask of all nodes"},
	"methods of internal/store Store": {
		73, "what a data directory does, for those above and for a cluster (Member)"},
	"methods of internal/tags Index": {
		52, "one index: its changes, its lookups and its lists"},
	"methods of internal/store/events Local": {
		62, "one store in three roles: its own, Side, Copies"},
	"methods of internal/store/tagstore Store": {
		47, "loading, changes, flushes and merges of one state"},
	"methods of internal/query/dql parser": {47, "one for each rule of the grammar"},
	"methods of ducks/internal/room Room": {
		82, "one lock over volumes, groups, devices and networks"},
	"functions of bench/compare competitor": {9, "what differs from store to store"},
	"functions of internal/cluster/eventing Options": {
		17, "what it asks of ring, peers and store, each of them a stub in tests"},
	"functions of internal/cluster/remote Options": {
		15, "what it asks of ring, peers and store, each of them a stub in tests"},
	"functions of internal/store/compaction Options": {
		9, "what a merge asks of the store that it works for"},
	"functions of internal/store/events Options": {
		11, "what it asks of the store that it is part of"},
}

// TestSizes names what is above a trigger without a reason. Functions of more than 70 lines have
// none: they are cut at a joint.
func TestSizes(t *testing.T) {
	sizes := make(map[string]int)
	roles := make(map[string]string) // types that are nothing but a pointer to another
	files := 0
	goFiles(t, func(file string, src []byte) {
		files++
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, src, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			return
		}
		if bannedPackages[f.Name.Name] {
			t.Errorf("%s: package %s: name it after what it holds", file, f.Name.Name)
		}
		rel := relative(t, file)
		dir, lines := path.Dir(rel), bytes.Count(src, []byte("\n"))
		sizes["lines of "+rel] = lines
		if !strings.HasSuffix(rel, "_test.go") {
			sizes["lines of "+dir] += lines
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				lookAtStructs(d, dir, sizes, roles)
			case *ast.FuncDecl:
				n := set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1
				if n > maxFuncLines {
					t.Errorf("%s: %s has %d lines, the limit is %d: cut it at a joint", set.Position(d.Pos()),
						d.Name.Name, n, maxFuncLines)
				}
				if d.Recv != nil && !strings.HasSuffix(rel, "_test.go") {
					sizes["methods of "+dir+" "+typeName(d.Recv.List[0].Type)]++
				}
			}
		}
	})
	if files < 20 {
		t.Fatalf("found %d Go files: the rule looked in the wrong place", files)
	}
	for role, of := range roles {
		sizes["methods of "+of] += sizes["methods of "+role]
	}
	for _, wrong := range judge(sizes, reasons) {
		t.Error(wrong)
	}
}

// lookAtStructs notes the fields and functions of the structs that a declaration names.
func lookAtStructs(d *ast.GenDecl, dir string, sizes map[string]int, roles map[string]string) {
	for _, spec := range d.Specs {
		spec, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		st, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		name := dir + " " + spec.Name.Name
		sizes["fields of "+name] = st.Fields.NumFields()
		for _, field := range st.Fields.List {
			if _, ok := field.Type.(*ast.FuncType); ok {
				sizes["functions of "+name] += max(1, len(field.Names))
			}
			if to, ok := field.Type.(*ast.StarExpr); ok && st.Fields.NumFields() == 1 {
				if of, ok := to.X.(*ast.Ident); ok {
					roles[name] = dir + " " + of.Name
				}
			}
		}
	}
}

// typeName returns the name of a receiver's type.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// trigger returns from where on a thing needs a reason.
func trigger(name string) int {
	kind, _, _ := strings.Cut(name, " ")
	switch kind {
	case "fields":
		return structFields
	case "methods":
		return methods
	case "functions":
		return functions
	}
	if strings.HasSuffix(name, ".go") {
		return fileLines
	}
	return packageLines
}

// judge says what is above its trigger without a reason, or above the number beside it, and which
// reasons are no longer needed.
func judge(sizes map[string]int, reasons map[string]size) (wrong []string) {
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		n, of := sizes[name], trigger(name)
		if n <= of {
			continue
		}
		if r, ok := reasons[name]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s: %d, above %d look again: split it where it has a joint, "+
				"or write down why it is one thing", name, n, of))
		} else if n > r.most {
			wrong = append(wrong, fmt.Sprintf("%s: %d, its number is %d (%s): does the reason still hold?",
				name, n, r.most, r.why))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		switch n, r := sizes[name], reasons[name]; {
		case n <= trigger(name):
			wrong = append(wrong, fmt.Sprintf("%s: %d needs no reason: remove it", name, n))
		case r.most-n > r.most/5:
			wrong = append(wrong, fmt.Sprintf("%s: %d, lower its number from %d", name, n, r.most))
		}
	}
	return wrong
}

func TestJudge(t *testing.T) {
	with := map[string]size{"fields of p Large": {200, "it is one"}}
	for n, wrong := range map[int]int{201: 1, 200: 0, 160: 0, 159: 1, 25: 1, 0: 1} {
		if got := judge(map[string]int{"fields of p Large": n}, with); len(got) != wrong {
			t.Errorf("a reason for 200 with a size of %d: %q", n, got)
		}
	}
	for name, wrong := range map[string]int{"fields of p T": 1, "methods of p T": 0,
		"functions of p T": 1,
		"lines of p":       0, "lines of p/x.go": 0} {
		if got := judge(map[string]int{name: 40}, nil); len(got) != wrong {
			t.Errorf("%s is 40 without a reason: %q", name, got)
		}
	}
}

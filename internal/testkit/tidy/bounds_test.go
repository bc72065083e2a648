package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The bounds of a room: what one reader can hold in mind.
const (
	maxPackageLines = 4000 // without tests
	maxFields       = 25   // of a struct
	maxMethods      = 40   // of a receiver
)

// exceptions are what is beyond its bound today, and how large each may be. A number only
// falls, and one that is no longer needed goes. Whoever makes one of these smaller lowers
// its number in the same commit; the test asks for it once it is a fifth too large.
var exceptions = struct{ lines, fields, methods map[string]int }{
	lines: map[string]int{
		// every kind of node; the nodes of compat are to get a package of their own
		"internal/query/exec": 4050,
		// every form of an answer beside every route; answers are to get a package of their own
		"internal/api/httpapi": 4200,
	},
	fields: map[string]int{
		"internal/api/admin Status":   27, // one field for each key of a flat JSON object
		"internal/host/config Config": 48, // one field for each key of ddb.conf
		// one field for each flag, and what takes the place of clock and network
		"haggar Config":               26,
		"internal/disk/manifest Edit": 29, // one field for each kind of change on disk
	},
	methods: map[string]int{},
}

// TestBounds keeps packages, structs and receivers small.
func TestBounds(t *testing.T) {
	lines, fields, methods := make(map[string]int), make(map[string]int), make(map[string]int)
	goFiles(t, func(path string, src []byte) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.ToSlash(rel)
		lines[dir] += bytes.Count(src, []byte("\n"))
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				structs(d, func(name string, n int) { fields[dir+" "+name] = n })
			case *ast.FuncDecl:
				if d.Recv != nil {
					methods[dir+" "+typeName(d.Recv.List[0].Type)]++
				}
			}
		}
	})
	for _, found := range bounded(lines, exceptions.lines, maxPackageLines) {
		t.Errorf("lines without tests of package %s", found)
	}
	for _, found := range bounded(fields, exceptions.fields, maxFields) {
		t.Errorf("fields of struct %s", found)
	}
	for _, found := range bounded(methods, exceptions.methods, maxMethods) {
		t.Errorf("methods of receiver %s", found)
	}
}

// structs calls fn for every struct type that a declaration names.
func structs(d *ast.GenDecl, fn func(name string, fields int)) {
	for _, spec := range d.Specs {
		if spec, ok := spec.(*ast.TypeSpec); ok {
			if st, ok := spec.Type.(*ast.StructType); ok {
				fn(spec.Name.Name, st.Fields.NumFields())
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

// bounded says what is beyond its bound, and which exceptions must fall.
func bounded(sizes, except map[string]int, limit int) (wrong []string) {
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		n, bound := sizes[name], limit
		if except[name] > 0 {
			bound = except[name]
		}
		if n > bound {
			wrong = append(wrong, fmt.Sprintf("%s: %d, its bound is %d: split it by what its parts do", name,
				n, bound))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(except)) {
		switch n, bound := sizes[name], except[name]; {
		case n <= limit:
			wrong = append(wrong, fmt.Sprintf("%s: %d is within %d: remove its exception", name, n, limit))
		case bound-n > bound/5:
			wrong = append(wrong, fmt.Sprintf("%s: %d, lower its exception from %d to about %d", name, n,
				bound, n+n/50))
		}
	}
	return wrong
}

func TestBounded(t *testing.T) {
	except := map[string]int{"large": 200}
	for n, wrong := range map[int]int{201: 1, 200: 0, 160: 0, 159: 1, 100: 1, 0: 1} {
		if got := bounded(map[string]int{"large": n}, except, 100); len(got) != wrong {
			t.Errorf("an exception of 200 with a size of %d: %q", n, got)
		}
	}
	for n, wrong := range map[int]int{101: 1, 100: 0} {
		if got := bounded(map[string]int{"plain": n}, nil, 100); len(got) != wrong {
			t.Errorf("no exception and a size of %d: %q", n, got)
		}
	}
}

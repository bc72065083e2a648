package tidy

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedFile = regexp.MustCompile("`([a-zA-Z0-9_/-]+\\.go)`")

	// foreign are files of dependencies that pages name.
	foreign = map[string]bool{"file_cache.go": true, "obsolete_files.go": true}
)

// TestPagesNameFilesThatExist finds files that a page of the code names and that have
// another name or another directory by now. The text moves with the code.
func TestPagesNameFilesThatExist(t *testing.T) {
	files := make(map[string]bool) // and every end of their paths
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "node_modules" {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			parts := strings.Split(relative(t, path), "/")
			for i := range parts {
				files[strings.Join(parts[i:], "/")] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	pages(t, func(path string, src []byte) {
		rel := relative(t, path)
		if rel == "CHANGELOG.md" || strings.HasPrefix(rel, "docs/decisions/") {
			return // they tell of their time
		}
		for _, m := range namedFile.FindAllStringSubmatch(string(src), -1) {
			if named++; !files[m[1]] && !foreign[m[1]] {
				t.Errorf("%s names %s, which is not there", rel, m[1])
			}
		}
	})
	if named < 20 {
		t.Errorf("found only %d names of files", named)
	}
}

var (
	namedTest = regexp.MustCompile(`\b((?:Test|Fuzz|Benchmark)[A-Z]\w*)(…)?`)
	aTest     = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
)

// TestPagesNameTestsThatExist finds tests that a page names as proof and that have another
// name by now. An ellipsis stands for the rest of several names.
func TestPagesNameTestsThatExist(t *testing.T) {
	tests := make(map[string]bool)
	goFiles(t, func(path string, src []byte) {
		for _, m := range aTest.FindAllSubmatch(src, -1) {
			tests[string(m[1])] = true
		}
	})
	named := 0
	pages(t, func(path string, src []byte) {
		for _, m := range namedTest.FindAllStringSubmatch(string(src), -1) {
			named++
			found := tests[m[1]]
			for name := range tests {
				found = found || m[2] != "" && strings.HasPrefix(name, m[1])
			}
			if !found {
				t.Errorf("%s names %s, which is no test", relative(t, path), m[1])
			}
		}
	})
	if named < 50 {
		t.Errorf("found only %d names of tests", named)
	}
}

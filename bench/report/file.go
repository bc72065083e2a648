package report

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Save writes the result of a run into a directory, which is made if need be: a
// page as <date>-<commit>[-<kind>].md, and beside it the lines in Go's
// benchmark format as .txt. It returns the path of the latter. A further run of
// the same commit on that day gets a number behind its name: nothing is
// overwritten.
func Save(dir string, h *Head, kind string, page []byte,
	lines []Benchmark) (path string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	name := filepath.Join(dir, h.Begun.UTC().Format(time.DateOnly)+"-"+h.Machine.Commit)
	if kind != "" {
		name += "-" + kind
	}
	var text bytes.Buffer
	writeBenchmarks(&text, h, lines)
	unique := name
	for n := 2; ; n++ {
		err := create(unique+".md", page)
		if errors.Is(err, fs.ErrExist) {
			unique = fmt.Sprintf("%s-%d", name, n)
			continue
		}
		if err != nil {
			return "", err
		}
		return unique + ".txt", os.WriteFile(unique+".txt", text.Bytes(), 0o644)
	}
}

// create writes a file that must not be there.
func create(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

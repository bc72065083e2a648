package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Script is a file of commands and their results under way. Tests embed it in what the
// commands work on.
type Script struct {
	T   *testing.T
	out strings.Builder
}

// Scripts runs each file that the pattern names as a test of its own and compares what
// comes out of it with the file. A line that begins with two spaces is a result, one with #
// a remark, and any other a command; -update rewrites the results. begin returns what does
// the commands of one file, lines of words, and prints to the script.
func Scripts(t *testing.T, pattern string,
	begin func(s *Script) (run func(command string, args []string))) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file is %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &Script{T: t}
			run := begin(s)
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimRight(line, "\n"); strings.HasPrefix(line, "  ") {
					continue
				}
				s.Printf("%s\n", line)
				if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(line, "#") {
					run(fields[0], fields[1:])
				}
			}
			Same(t, file, s.out.String())
		})
	}
}

// Printf prints what belongs to the results; a result begins with two spaces.
func (s *Script) Printf(format string, args ...any) { fmt.Fprintf(&s.out, format, args...) }

// Number is a decimal number in an argument.
func (s *Script) Number(text string) int64 {
	s.T.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.T.Fatal(err)
	}
	return n
}
